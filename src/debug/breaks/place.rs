//! Where a breakpoint stops: `23`, `5..9`, `A1`, `encoder.*.self_attn.weights`, `/norm[12]/`, `op:matmul`,
//! `phase:encoder.1`, `run:inference`, and `not` any of these.

use std::ops::{Range, RangeInclusive};

use globset::{GlobBuilder, GlobMatcher};
use regex::{Regex, RegexBuilder};

use crate::debug::eval_context::EvalContext;
use crate::debug::expr::{ExprError, Fault};
use crate::program::{Name, Node};
use crate::session::locate::Address;
use crate::text::{Msg, escape, nearest};
use crate::walkthrough::{Role, Step, step_number};

/// A word of a breakpoint and where it is, in characters.
pub(super) struct Word {
    pub text: String,
    pub at: Range<usize>,
}

/// LocalizedText of a text; a regular expression between slashes is one, though it may hold spaces.
pub(super) fn words(text: &str) -> Vec<Word> {
    let chars: Vec<char> = text.chars().collect();
    let mut words = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        if chars[i].is_whitespace() {
            i += 1;
            continue;
        }
        let start = i;
        if chars[i] == '/' {
            i += 1;
            while i < chars.len() && chars[i] != '/' {
                i += if chars[i] == '\\' { 2 } else { 1 };
            }
            i += 1;
        }
        while i < chars.len() && !chars[i].is_whitespace() {
            i += 1;
        }
        i = i.min(chars.len());
        words.push(Word { text: chars[start..i].iter().collect(), at: start..i });
    }
    words
}

/// One condition on where one is.
#[derive(Clone, Debug)]
pub(super) enum Term {
    Steps(RangeInclusive<u32>),
    /// What a sub-step computes: the number of its step, and the path.
    SubStep(u32, String),
    /// A symbol or a path.
    Name(String),
    /// What is inside a scope.
    Scope(String),
    Glob(GlobMatcher),
    Regex(Regex),
    Op(String),
    Phase(GlobMatcher),
    Run(usize),
}

fn wrong(word: &Word, msg: Msg) -> ExprError {
    ExprError::new(Fault::Syntax, word.at.clone(), msg)
}

/// With the nearest known name as help.
fn near<'k>(e: ExprError, name: &str, known: impl Iterator<Item = &'k str>) -> ExprError {
    match (name.len() < 80).then(|| nearest(name, known)).flatten() {
        Some(near) => e.help(Msg::new("diagnostic.did_you_mean").arg("name", escape(near))),
        None => e,
    }
}

/// A glob in which `*` denotes one word between points and `**` for any number of them.
fn glob(word: &Word, text: &str) -> Result<GlobMatcher, ExprError> {
    GlobBuilder::new(&text.replace('.', "/"))
        .literal_separator(true)
        .build()
        .map(|g| g.compile_matcher())
        .map_err(|e| wrong(word, Msg::new("break.bad_glob").arg("why", e.kind())))
}

impl Term {
    pub fn parse(word: &Word, here: &EvalContext<'_>) -> Result<Self, ExprError> {
        let text = word.text.as_str();
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return steps(word, here);
        }
        if let Some(rest) = text.strip_prefix('/') {
            let Some(inner) = rest.strip_suffix('/').filter(|r| !r.is_empty()) else {
                return Err(wrong(word, Msg::new("break.open_regex")));
            };
            let regex = RegexBuilder::new(&inner.replace("\\/", "/")).size_limit(1 << 20).build().map_err(|e| {
                // The last line of a report says what is wrong; the others draw it.
                let why = e.to_string();
                let why = why.lines().last().unwrap_or("").trim().to_owned();
                wrong(word, Msg::new("break.bad_regex").arg("why", escape(&why)))
            })?;
            return Term::Regex(regex).known(word, here);
        }
        match text.split_once(':').filter(|(_, rest)| !rest.starts_with(':')) {
            Some(("op", name)) => {
                let ops = here.session.runs.iter().flat_map(|r| r.program.nodes());
                let found = Term::Op(name.to_owned()).known(word, here);
                found.map_err(|e| near(e, name, ops.map(|(_, n)| n.op.name())))
            }
            Some(("phase", name)) => {
                let term = Term::Phase(glob(word, name)?);
                let list = here.steps.list();
                if list.iter().any(|s| term.fits_step(s)) {
                    return Ok(term);
                }
                let e = wrong(word, Msg::new("break.no_phase").arg("name", escape(name)));
                Err(near(e, name, list.iter().map(|s| s.phase.as_str())))
            }
            Some(("run", name)) => {
                if let Some(run) = here.session.run_named(name) {
                    return Ok(Term::Run(run));
                }
                let e = wrong(word, Msg::new("break.no_run").arg("name", escape(name)));
                let runs = here.session.runs.iter();
                Err(near(e, name, runs.map(|r| r.name.as_str())))
            }
            Some(("path", name)) => named(word, name, here),
            Some((kind, _)) => Err(wrong(word, Msg::new("break.unknown_kind").arg("kind", escape(kind)))),
            None if text.contains(['*', '?', '{', '[']) => Term::Glob(glob(word, text)?).known(word, here),
            None => named(word, text, here),
        }
    }

    /// The term, where some tensor of some run fits it.
    fn known(self, word: &Word, here: &EvalContext<'_>) -> Result<Self, ExprError> {
        let shown = || here.steps.list().iter().flat_map(|s| &s.views).any(|v| self.fits(here, &Address::of_view(v)));
        let hidden = || {
            here.session.runs.iter().any(|r| {
                let mut nodes = r.program.nodes();
                nodes.any(|(_, n)| self.fits_node(n, &n.path))
            })
        };
        if shown() || hidden() {
            return Ok(self);
        }
        let text = &word.text;
        let e = wrong(word, Msg::new("break.fits_nothing").arg("what", escape(text)));
        if let Term::Scope(name) = &self {
            let paths = here.session.runs[here.run()].program.nodes();
            let known = here.steps.symbols().chain(paths.map(|(_, n)| &*n.path));
            return Err(near(e, name, known));
        }
        Err(e)
    }

    /// Whether it is about tensors, not about steps.
    pub fn is_of_tensors(&self) -> bool {
        !matches!(self, Term::Steps(_) | Term::Phase(_) | Term::Run(_))
    }

    pub fn fits_step(&self, step: &Step) -> bool {
        match self {
            Term::Steps(range) => step.number.first().is_some_and(|n| range.contains(n)),
            Term::SubStep(number, _) => step.number.first() == Some(number),
            // `phase:decoder.1` is also `decoder.1 (training)`.
            Term::Phase(glob) => {
                let whole = step.phase.replace('.', "/");
                let first = whole.split(' ').next().unwrap_or("");
                glob.is_match(&whole) || glob.is_match(first)
            }
            Term::Run(run) => step.run == *run,
            _ => true,
        }
    }

    pub fn fits(&self, here: &EvalContext<'_>, target: &Address) -> bool {
        let node = here.session.runs[target.run].program.node(target.node);
        self.fits_node(node, &target.name)
    }

    fn fits_node(&self, node: &Node, symbol: &str) -> bool {
        let path = &*node.path;
        match self {
            Term::Name(name) => symbol == name || path == name,
            Term::SubStep(_, of) => path == of,
            Term::Scope(name) => node.name.is_inside(&Name::parse(name)),
            Term::Glob(glob) => glob.is_match(path.replace('.', "/")) || glob.is_match(symbol),
            Term::Regex(regex) => regex.is_match(path) || regex.is_match(symbol),
            Term::Op(name) => node.op.name() == name,
            _ => true,
        }
    }
}

/// What is called so; else the scope of this name.
fn named(word: &Word, name: &str, here: &EvalContext<'_>) -> Result<Term, ExprError> {
    let exact = Term::Name(name.to_owned()).known(word, here);
    exact.or_else(|_| Term::Scope(name.to_owned()).known(word, here))
}

fn steps(word: &Word, here: &EvalContext<'_>) -> Result<Term, ExprError> {
    let text = word.text.as_str();
    if let Some([step, inner @ ..]) = step_number(text).as_deref()
        && !inner.is_empty()
    {
        let msg = || wrong(word, Msg::new("break.no_sub_step").arg("text", escape(text)));
        return sub_step(*step, inner, here).ok_or_else(msg);
    }
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let last = here.steps.list().iter().filter_map(|s| s.number.first());
    let last = last.max().copied().unwrap_or(0);
    let number = |t: &str, open: u32| {
        if t.is_empty() {
            return Ok(open);
        }
        t.parse::<u32>().map_err(|_| wrong(word, Msg::new("break.bad_steps").arg("text", escape(text))))
    };
    let (from, to) = (number(from, 0)?, number(to, last)?);
    let term = Term::Steps(from..=to);
    if here.steps.list().iter().any(|s| term.fits_step(s)) {
        return Ok(term);
    }
    let msg = Msg::new("break.no_steps").arg("text", escape(text));
    Err(wrong(word, msg.arg("last", last)))
}

/// The sub-step `inner` of a step, `40.2`: the tensor that it computes.
fn sub_step(number: u32, inner: &[u32], here: &EvalContext<'_>) -> Option<Term> {
    let mut step = here.steps.list()[here.steps.position(number)?].clone();
    for n in inner {
        let at = (*n as usize).checked_sub(1)?;
        let mut inside = here.session.expand(&step);
        if at >= inside.len() {
            return None;
        }
        step = inside.swap_remove(at);
    }
    let result = step.views.iter().rfind(|v| v.role == Role::Result)?;
    let path = &here.session.runs[result.run].program.node(result.node).path;
    Some(Term::SubStep(number, path.to_string()))
}
