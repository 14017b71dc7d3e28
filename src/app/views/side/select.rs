//! Which two runs are side by side: from what was requested to two traces and how their paths fit.

use crate::trace::Rounding;
use std::sync::Arc;

use super::state::{Pane, Side};
use crate::app::args::Sides;
use crate::app::navigator::{Navigator, rounded_words};
use crate::debug::side::{Align, Mapping, pair};
use crate::program::{Block, Name, NodeId, Program, Site, Stack};
use crate::session::generation::frames;
use crate::session::{RunKind, Session};
use crate::tensor::Axis;
use crate::text::{Msg, escape};
use crate::trace::AnyTrace;

/// Decimals of the rounded side where none are given.
const DIGITS: u8 = 4;

/// Where one is, as far as it decides what is side by side: a thread can take it along.
#[derive(Clone, Debug)]
pub struct Here {
    session: Arc<Session>,
    /// The run of the step.
    run: usize,
    round: Option<Rounding>,
    /// Run and node that are looked at.
    node: Option<(usize, NodeId)>,
}

impl Here {
    /// The place that is looked at.
    pub fn of(nav: &Navigator) -> Self {
        Self {
            session: Arc::clone(&nav.session),
            run: nav.step().map_or(0, |s| s.run),
            round: nav.round(),
            node: nav.view().map(|v| (v.run, v.node)),
        }
    }

    /// Numbers that are compared where nothing else is there to compare: those of the run, rounded too.
    pub(super) fn cells(&self) -> usize {
        self.session.runs[self.run].program.nodes().map(|(_, n)| n.shape.len()).sum()
    }
}

/// Two runs side by side, at the path that is looked at now.
///
/// # Errors
/// What the scenario lacks for it.
pub fn select(nav: &Here, what: &Sides) -> Result<Side, Msg> {
    let (panes, mapping, align) = match what {
        Sides::Usual => {
            let usual = [Sides::TrainingInference, Sides::Cached];
            let fits = usual.iter().find_map(|w| select(nav, w).ok());
            return fits.map_or_else(|| select(nav, &Sides::Rounded(None)), Ok);
        }
        Sides::TrainingInference => {
            let training = run_of(nav, &RunKind::Training, "training")?;
            let inference = run_of(nav, &RunKind::Inference, "inference")?;
            let last = nav.session.calls_made(inference).saturating_sub(1);
            beside_call(nav, training, inference, last)?
        }
        Sides::Cached => with_and_without_cache(nav)?,
        Sides::Rounded(rounding) => {
            let run = nav.run;
            let rounding = rounding.or(nav.round).unwrap_or(Rounding::Decimals(DIGITS));
            let rounded = nav.session.rounded(run, rounding).map_err(cannot)?;
            let name = rounded_words(rounding);
            let exact = pane(nav, run, Msg::new("side.exact"))?;
            let rounded = Pane::made(name, run, rounded);
            ([exact, rounded], Mapping::Same, Align::First)
        }
        Sides::Heads(left, right) => {
            let run = nav.run;
            let heads = heads(&nav.session.runs[run].program);
            if let Some(head) = [*left, *right].into_iter().find(|h| *h >= heads) {
                let msg = Msg::new("side.no_head").arg("head", head);
                return Err(msg.arg("count", heads));
            }
            let name = |head| Msg::new("side.head").arg("head", head);
            let panes = [pane(nav, run, name(*left))?, pane(nav, run, name(*right))?];
            let (left, right) = (*left, *right);
            (panes, Mapping::Heads { left, right }, Align::First)
        }
        Sides::Layers(left, right) => {
            let run = nav.run;
            let (from, to) = (layer(nav, run, left)?, layer(nav, run, right)?);
            let name = |layer: &Name| Msg::new("side.layer").arg("layer", escape(&layer.to_string()));
            let panes = [pane(nav, run, name(&from))?, pane(nav, run, name(&to))?];
            (panes, Mapping::Scopes { from: Box::new(from), to: Box::new(to) }, Align::First)
        }
        Sides::Runs(left, right) => {
            let find = |name: &str| nav.session.run_named(name).ok_or_else(|| no_run(name));
            let (left, right) = (find(left)?, find(right)?);
            let kind = |r: usize| &nav.session.runs[r].kind;
            if (kind(left), kind(right)) == (&RunKind::Training, &RunKind::Inference) {
                let last = nav.session.calls_made(right).saturating_sub(1);
                beside_call(nav, left, right, last)?
            } else {
                let panes = [named(nav, left)?, named(nav, right)?];
                (panes, Mapping::Same, Align::First)
            }
        }
    };
    compare(nav, what.clone(), panes, mapping, align)
}

/// Compares all paths.
fn compare(nav: &Here, what: Sides, panes: [Pane; 2], mapping: Mapping, align: Align) -> Result<Side, Msg> {
    let session = nav.session.as_ref();
    let missing = || Msg::new("side.no_common");
    let left = panes[0].trace(session).ok_or_else(missing)?;
    let right = panes[1].trace(session).ok_or_else(missing)?;
    let program = left.program();
    let mut pairs = pair(left, right, &mapping, align);
    // What a written derivation looks through is not stepped to.
    pairs.retain(|p| !program.node(p.left).inline && p.cells > 0);
    if pairs.is_empty() {
        return Err(missing());
    }
    let worst = |a: &usize, b: &usize| {
        // NaN against a number is the largest difference there is.
        let size = |i: usize| {
            let d = pairs[i].max_difference;
            if d.is_nan() { f64::INFINITY } else { d }
        };
        size(*a).total_cmp(&size(*b)).then(b.cmp(a))
    };
    let here = nav.node.map(|(run, node)| session.runs[run].program.node(node).path.to_string());
    let at = here.and_then(|here| {
        let right = right.program();
        pairs.iter().position(|p| p.path == here || *right.node(p.right).path == *here)
    });
    let mut side = Side {
        differing: pairs.iter().filter(|p| p.differing > 0).count(),
        worst: (0..pairs.len()).filter(|i| pairs[*i].differing > 0).max_by(worst),
        what,
        panes,
        mapping,
        align,
        pairs,
        at: 0,
        index: Vec::new(),
        ranges: Arc::default(),
    };
    let first = || side.pairs.iter().position(|p| p.differing > 0);
    let at = at.or_else(first).unwrap_or(0);
    side.go(at, session);
    Ok(side)
}

/// The next (or previous) of what is on the right: another call, head or layer.
pub(super) fn turn_right(nav: &Here, side: &Side, forward: bool) -> Option<Result<Side, Msg>> {
    let step = |at: usize, n: usize| (at + if forward { 1 } else { n.max(1) - 1 }) % n.max(1);
    let [left, right] = &side.panes;
    let program = &nav.session.runs[right.run].program;
    let (panes, mapping, align) = match &side.mapping {
        Mapping::Call(call) => {
            let calls = nav.session.calls_made(right.run);
            match beside_call(nav, left.run, right.run, step(*call, calls)) {
                Ok(parts) => parts,
                Err(e) => return Some(Err(e)),
            }
        }
        Mapping::Heads { left: l, right: r } => {
            let r = step(*r, heads(program));
            let what = Sides::Heads(*l, r);
            return Some(select(nav, &what));
        }
        Mapping::Scopes { from, to } => {
            let (stack, layer) = to.site.layer()?;
            let of = |layer: u32| Name { call: to.call, ..Name::of(Site::Layer(stack, layer, Block::Layer)) };
            let has = |layer: &u32| program.nodes().any(|(_, n)| n.name.is_inside(&of(*layer)));
            let layers = (0..program.len() as u32).take_while(has).count();
            let to = of(step(layer as usize, layers) as u32).to_string();
            return Some(select(nav, &Sides::Layers(from.to_string(), to)));
        }
        Mapping::Same => return None,
    };
    Some(compare(nav, side.what.clone(), panes, mapping, align))
}

/// A training run next to one call of a decoding. A cached call computes its last position only: it is shown there
/// as it is without the cache, whose bits are the same.
fn beside_call(nav: &Here, training: usize, inference: usize, call: usize) -> Result<([Pane; 2], Mapping, Align), Msg> {
    let s = &nav.session;
    let name = |cached: bool| {
        let key = if cached { "side.call_uncached" } else { "side.call" };
        let calls = s.calls_made(inference);
        Msg::new(key).arg("run", escape(&s.runs[inference].name)).arg("call", call + 1).arg("calls", calls)
    };
    let right = match s.calls_of(inference) {
        Some((_, true)) => {
            let trace = decoded(nav, inference, false)?;
            Pane::made(name(true), inference, trace)
        }
        _ => pane(nav, inference, name(false))?,
    };
    Ok(([named(nav, training)?, right], Mapping::Call(call), Align::First))
}

fn with_and_without_cache(nav: &Here) -> Result<([Pane; 2], Mapping, Align), Msg> {
    let s = &nav.session;
    let here = Some(nav.run);
    let is = |r: &usize| s.runs[*r].kind == RunKind::Inference;
    let run = here.filter(is).or_else(|| (0..s.runs.len()).find(is));
    let run = run.ok_or_else(|| Msg::new("side.no_such").arg("what", "inference"))?;
    let own = s.calls_of(run).is_some_and(|(_, cached)| cached);
    let of_cache = |cached: bool| {
        let key = if cached { "side.cached" } else { "side.uncached" };
        let name = Msg::new(key).arg("run", escape(&s.runs[run].name));
        if cached == own { pane(nav, run, name) } else { Ok(Pane::made(name, run, decoded(nav, run, cached)?)) }
    };
    Ok(([of_cache(true)?, of_cache(false)?], Mapping::Same, Align::Last))
}

/// The decoding of an inference run with or without a cache, all numbers kept.
fn decoded(nav: &Here, run: usize, cached: bool) -> Result<Arc<AnyTrace>, Msg> {
    let s = &nav.session;
    let (calls, _) = s.calls_of(run).ok_or_else(|| Msg::new("side.no_such").arg("what", "inference"))?;
    let program = s.generation(run, &calls, cached)?;
    let trace = s.run_program(&program, |_| true, &mut ());
    trace.map(Arc::new).map_err(cannot)
}

/// The run of a kind: the one called so, else the first.
fn run_of(nav: &Here, kind: &RunKind, name: &str) -> Result<usize, Msg> {
    let runs = &nav.session.runs;
    let named = nav.session.run_named(name).filter(|r| runs[*r].kind == *kind);
    named
        .or_else(|| runs.iter().position(|r| r.kind == *kind))
        .ok_or_else(|| Msg::new("side.no_such").arg("what", name))
}

fn named(nav: &Here, run: usize) -> Result<Pane, Msg> {
    let name = Msg::new("report.plain").arg("text", escape(&nav.session.runs[run].name));
    pane(nav, run, name)
}

fn pane(nav: &Here, run: usize, name: Msg) -> Result<Pane, Msg> {
    nav.session.trace(run).map_err(cannot)?;
    Ok(Pane::of_run(name, run))
}

/// The scope of a layer: `1` is of the stack (and the call) that is looked at, `encoder.1` says which.
fn layer(nav: &Here, run: usize, layer: &str) -> Result<Name, Msg> {
    let program = &nav.session.runs[run].program;
    let has = |scope: &Name| program.nodes().any(|(_, n)| n.name.is_inside(scope));
    let here = nav.node.filter(|(of, _)| *of == run).map(|(_, node)| &program.node(node).name);
    let last = || frames(program).checked_sub(1).map(|call| call as u32);
    let call = here.and_then(|name| name.call).or_else(last);
    let names: Vec<Name> = match layer.parse::<u32>() {
        Ok(layer) => {
            let here = here.and_then(|name| name.site.stack());
            let stacks = here.into_iter().chain([Stack::Decoder, Stack::Encoder]);
            stacks.map(|stack| Name::of(Site::Layer(stack, layer, Block::Layer))).collect()
        }
        Err(_) => vec![Name::parse(layer)],
    };
    let in_calls = |name: Name| {
        let inside = call.map(|call| name.in_call(call));
        inside.into_iter().chain([name])
    };
    let found = names.into_iter().flat_map(in_calls).find(has);
    found.ok_or_else(|| Msg::new("side.no_layer").arg("layer", escape(layer)))
}

/// Most heads that an attention of the program has; 0 where it has none.
fn heads(program: &Program) -> usize {
    let of = program.nodes().flat_map(|(_, n)| {
        let head = |d: &usize| n.shape.axes()[*d] == Axis::Head;
        (0..n.shape.rank()).filter(head).map(|d| n.shape.dims()[d])
    });
    of.max().unwrap_or(0)
}

fn cannot(e: impl std::fmt::Display) -> Msg {
    Msg::new("cli.cannot_run").arg("why", e)
}

fn no_run(name: &str) -> Msg {
    Msg::new("tui.said.no_run").arg("name", escape(name))
}
