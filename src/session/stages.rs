//! Training next to inference, stage by stage, filled in from what the two runs did.

use super::{RunKind, Session};
use crate::program::{self, Block, Leaf, Name, Op, Program, Role, Site, Stack};
use crate::text::{Lang, Msg, NumberFormat, tr};
use crate::trace::{AnyTrace, RunError};

/// A table of texts for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Headings.
    pub columns: Vec<String>,
    /// Rows, each as long as the headings.
    pub rows: Vec<Vec<String>>,
}

/// One of the two runs.
struct Side<'a> {
    session: &'a Session,
    program: &'a Program,
    trace: &'a AnyTrace,
    /// One pass, or one a call of inference.
    passes: Vec<Option<u32>>,
    lang: Lang,
}

/// The table of the stages of a training run and an inference run: `here` where it is one of the two (or a training's
/// backward pass or update), else the first of its kind; `None` where one is missing.
///
/// # Errors
/// Where a run cannot run.
pub fn stages(session: &Session, here: usize, lang: Lang) -> Result<Option<Table>, RunError> {
    let here = session.forward_of(here).unwrap_or(here);
    let find = |kind: RunKind| {
        let first = || session.runs.iter().position(|r| r.kind == kind);
        Some(here).filter(|r| session.runs.get(*r).is_some_and(|r| r.kind == kind)).or_else(first)
    };
    let (Some(training), Some(inference)) = (find(RunKind::Training), find(RunKind::Inference)) else {
        return Ok(None);
    };
    let side = |run: usize, passes: Vec<Option<u32>>| -> Result<Side<'_>, RunError> {
        Ok(Side {
            session,
            program: &session.runs[run].program,
            trace: session.trace(run).map_err(Clone::clone)?,
            passes,
            lang,
        })
    };
    let left = side(training, vec![None])?;
    let calls = session.calls_made(inference);
    let right = side(inference, (0..calls as u32).map(Some).collect())?;
    let mut rows = Vec::new();
    let mut row = |stage: &str, left: String, right: String| {
        rows.push(vec![tr(lang, &format!("stage.{stage}")).to_owned(), left, right]);
    };
    let say = |msg: Msg| msg.render(lang);

    let fed = |s: &Side<'_>| {
        let texts = s.passes.iter().map(|p| s.tokens(*p));
        texts.map(|t| format!("[{}]", t.join(" "))).collect::<Vec<_>>().join(", ")
    };
    let source = session.runs[training].inputs.source.as_ref().map(|_| (left.source(), right.source()));
    if let Some((left, right)) = source.filter(|(l, r)| !l.is_empty() || !r.is_empty()) {
        row("source", left, right);
    }
    row("tokens", fed(&left), fed(&right));
    row("rows", left.rows(), right.rows());
    row("embedding", left.embedding(), right.embedding());
    if let Some(memory) = session.runs[training].outputs.memory {
        let name = &left.program.node(memory).name;
        if session.model_of(training).decoder.is_some() && right.program.named(name).is_some() {
            let same = same_bits(&left, &right, name);
            let bits = say(Msg::new(if same { "stage.same_bits" } else { "stage.other_bits" }));
            row(
                "encoder",
                left.shape(name),
                say(Msg::new("stage.once").arg("shape", right.shape(name)).arg("calls", calls).arg("bits", bits)),
            );
        }
    }
    let embedded = Name::of(Site::Embedding(Some(program::Side::Target))).then(Role::Out);
    row("decoder_input", left.shapes(&embedded), right.shapes(&embedded));
    if let Some(mask) = left.first(Block::SelfAttention, &Role::Mask) {
        row("mask", left.masks(&mask), right.masks(&mask));
    }
    if let Some(cross) = left.first(Block::CrossAttention, &Role::Weights) {
        row("cross", left.shapes(&cross), right.shapes(&cross));
    }
    row("output", left.words(false), right.words(true));
    row("used", say(Msg::new("stage.all_rows").arg("count", left.row_count(0))), tr(lang, "stage.last_row").to_owned());
    let cached = session.calls_of(inference).is_some_and(|(_, cached)| cached);
    let again =
        say(Msg::new(if cached { "stage.with_cache" } else { "stage.without_cache" })
            .arg("again", right.computed_again()));
    row("cache", tr(lang, "stage.one_pass").to_owned(), again);
    let data = left.tokens(None).get(1..).unwrap_or_default().join(", ");
    row("next", say(Msg::new("stage.from_data").arg("tokens", data)), right.next_inputs());
    row("gradient", gradient(session, training, lang), left_without(&right, lang));
    let columns = vec![
        tr(lang, "stage.stage").to_owned(),
        session.runs[training].name.clone(),
        session.runs[inference].name.clone(),
    ];
    Ok(Some(Table { columns, rows }))
}

/// The name in one pass.
fn in_pass(name: &Name, call: Option<u32>) -> Name {
    Name { call, ..name.clone() }
}

fn same_bits(left: &Side<'_>, right: &Side<'_>, name: &Name) -> bool {
    let value = |s: &Side<'_>| s.program.named(name).and_then(|id| s.trace.get(id));
    match (value(left), value(right)) {
        (Some(a), Some(b)) => a.shape().same_dims(b.shape()) && (0..a.shape().len()).all(|i| a.bits(i) == b.bits(i)),
        _ => false,
    }
}

/// Parameters that have a gradient, and the loss it is of.
fn gradient(session: &Session, training: usize, lang: Lang) -> String {
    let backward = (0..session.runs.len()).find(|r| session.forward_of(*r) == Some(training));
    let Some(program) = backward.map(|r| &session.runs[r].program) else {
        return tr(lang, "stage.no_gradient").to_owned();
    };
    let with = |path: &str| program.named(&Name::parse(path).gradient()).is_some();
    let count = session.specs.iter().filter(|s| with(&s.path)).count();
    let loss = session.runs[training]
        .outputs
        .loss
        .and_then(|id| session.trace(training).ok()?.get(id))
        .map_or_else(String::new, |v| NumberFormat::default().format(v.get(0)));
    Msg::new("stage.gradients").arg("count", count).arg("loss", loss).render(lang)
}

fn left_without(side: &Side<'_>, lang: Lang) -> String {
    let nodes = side.program.nodes();
    let count = nodes.filter(|(_, n)| n.name.is_gradient()).count();
    Msg::new("stage.gradient_nodes").arg("count", count).render(lang)
}

impl Side<'_> {
    /// Lengths of the axes of a node; a batch of 1 is not shown.
    fn shape(&self, name: &Name) -> String {
        let Some(id) = self.program.named(name) else {
            return "—".to_owned();
        };
        let dims = self.program.node(id).shape;
        let dims = dims.dims();
        let shown = if dims.len() > 2 && dims[0] == 1 { &dims[1..] } else { dims };
        shown.iter().map(usize::to_string).collect::<Vec<_>>().join("×")
    }

    /// The shape in each pass.
    fn shapes(&self, name: &Name) -> String {
        let each = self.passes.iter().map(|call| self.shape(&in_pass(name, *call)));
        each.collect::<Vec<_>>().join(", ")
    }

    /// Ids and words of the source.
    fn source(&self) -> String {
        let name = Name::of(Site::Embedding(Some(program::Side::Source))).then(Role::Ids);
        let Some(value) = self.program.named(&name).and_then(|id| self.trace.get(id)) else {
            return String::new();
        };
        let row = value.shape().dims().last().copied().unwrap_or(0);
        let ids: Vec<i64> = (0..row).map(|i| value.get(i) as i64).collect();
        let words: Vec<String> = ids.iter().map(|id| self.session.source_words.word(*id)).collect();
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        format!("[{}] {}", ids.join(", "), words.join(" "))
    }

    /// Rows that the decoder computes in a pass.
    fn row_count(&self, pass: usize) -> usize {
        let name = Name::of(Site::Embedding(Some(program::Side::Target))).then(Role::Out);
        let id = self.passes.get(pass).and_then(|call| self.program.named(&in_pass(&name, *call)));
        id.map_or(0, |id| self.program.node(id).shape.dims().iter().rev().nth(1).copied().unwrap_or(0))
    }

    /// Rows that the decoder computes, in each pass.
    fn rows(&self) -> String {
        let each: Vec<String> = (0..self.passes.len()).map(|p| self.row_count(p).to_string()).collect();
        let all: usize = (0..self.passes.len()).map(|p| self.row_count(p)).sum();
        let key = if self.passes.len() > 1 { "stage.rows_of_calls" } else { "stage.rows_at_once" };
        Msg::new(key).arg("each", each.join(", ")).arg("all", all).arg("calls", each.len()).render(self.lang)
    }

    /// Rows that calls compute although an earlier one did.
    fn computed_again(&self) -> usize {
        let all: usize = (0..self.passes.len()).map(|p| self.row_count(p)).sum();
        let last = self.passes.last().map_or(0, |call| self.tokens(*call).len());
        all.saturating_sub(last)
    }

    fn embedding(&self) -> String {
        let lookup = |side| Name::of(Site::Embedding(Some(side))).then(Role::Lookup);
        let target = self.shapes(&lookup(program::Side::Target));
        let source = lookup(program::Side::Source);
        if self.program.named(&source).is_none() {
            return target;
        }
        Msg::new("stage.two_sides").arg("source", self.shape(&source)).arg("target", target).render(self.lang)
    }

    /// The first of a quantity in these blocks of the decoder.
    fn first(&self, of: Block, role: &Role) -> Option<Name> {
        let fits = |name: &&Name| {
            matches!(name.site, Site::Layer(Stack::Decoder, _, block) if block == of)
                && name.role == *role
                && name.inner.is_empty()
                && !name.is_gradient()
        };
        self.program.nodes().map(|(_, n)| &n.name).find(fits).cloned()
    }

    /// All tokens that a pass sees.
    fn tokens(&self, pass: Option<u32>) -> Vec<String> {
        let names = [(Site::Root, Role::Tokens), (Site::Embedding(Some(program::Side::Target)), Role::Ids)];
        let id =
            names.into_iter().find_map(|(site, role)| self.program.named(&in_pass(&Name::of(site).then(role), pass)));
        let Some(value) = id.and_then(|id| self.trace.get(id)) else {
            return Vec::new();
        };
        let row = value.shape().dims().last().copied().unwrap_or(0);
        (0..row).map(|i| self.session.target_words.word(value.get(i) as i64)).collect()
    }

    /// Size of the mask in each pass and how many cells it hides.
    fn masks(&self, name: &Name) -> String {
        let each = self.passes.iter().map(|call| {
            let name = in_pass(name, *call);
            let hidden = self.program.named(&name).and_then(|id| self.trace.get(id));
            let hidden = hidden.map_or(0, |v| (0..v.shape().len()).filter(|i| v.get(*i) != 0.0).count());
            Msg::new("stage.mask_size").arg("shape", self.shape(&name)).arg("hidden", hidden).render(self.lang)
        });
        each.collect::<Vec<_>>().join(", ")
    }

    /// Predicted words and their probabilities: of every position, or of the last one.
    fn words(&self, last: bool) -> String {
        let mut words = Vec::new();
        for pass in &self.passes {
            let at = |role: Role| {
                let id = self.program.named(&in_pass(&Name::of(Site::Output).then(role), *pass))?;
                self.trace.get(id)
            };
            let (Some(ids), Some(probs)) = (at(Role::Argmax), at(Role::PredictedProbs)) else {
                continue;
            };
            let n = ids.shape().dims().last().copied().unwrap_or(0);
            for i in if last { n.saturating_sub(1) } else { 0 }..n {
                let word = self.session.target_words.word(ids.get(i) as i64);
                words.push(format!("{word} {}", NumberFormat::default().format(probs.get(i))));
            }
        }
        words.join(", ")
    }

    /// The newest token of each call after the first, and whether it was given or chosen.
    fn next_inputs(&self) -> String {
        let later = self.passes.get(1..).unwrap_or_default();
        let newest: Vec<String> = later.iter().filter_map(|p| self.tokens(*p).pop()).collect();
        let given = later.iter().any(|p| {
            let id = self.program.named(&in_pass(&Name::default().then(Role::Tokens), *p));
            id.is_some_and(|id| matches!(self.program.node(id).op, Op::Leaf(Leaf::Constant(_))))
        });
        let key = if given { "stage.from_prefix" } else { "stage.from_itself" };
        Msg::new(key).arg("tokens", newest.join(", ")).render(self.lang)
    }
}
