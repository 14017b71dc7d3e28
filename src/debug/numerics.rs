//! What a smaller number type makes of a run: where rounding matters first, what it loses, and which kind of
//! operation should keep its numbers.

use std::sync::Arc;

use crate::program::{Leaf, NodeId, Op, Program, ScopeKind};
use crate::session::Session;
use crate::tensor::DType;
use crate::text::{Lang, Msg, NumberFormat, escape, tr};
use crate::trace::{AnyTrace, Lost, NodeRounding, Rounder, Rounding, RunError};

/// Rounding matters in a node from so many times of what rounding that node alone would make of it.
pub const MATTERS: f64 = 10.0;

/// At most this is what hides a score.
const HIDDEN: f64 = -1e4;

/// A kind of operation that could keep its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// Parameters.
    Parameters,
    /// Rows of tables.
    Embeddings,
    /// Matrix products with their biases.
    Products,
    /// Largest score, exponentials, sums and weights.
    Softmax,
    /// Means, variances and normalised rows.
    Norms,
    /// Activation functions.
    Activations,
    /// Sums of the residual stream.
    Residuals,
    /// The loss.
    Loss,
    /// Gradients and updates.
    Backward,
    /// What is none of them.
    Rest,
}

impl Kind {
    /// The kind of a node.
    pub fn of(program: &Program, id: NodeId) -> Self {
        let node = program.node(id);
        if matches!(node.op, Op::Leaf(Leaf::Parameter)) {
            return Self::Parameters;
        }
        let mut scope = Some(node.scope);
        let mut inner = None;
        while let Some(id) = scope {
            let found = match &program.scope(id).kind {
                ScopeKind::Backward | ScopeKind::Update => return Self::Backward,
                ScopeKind::Softmax { .. } => Some(Self::Softmax),
                ScopeKind::LayerNorm { .. } | ScopeKind::RmsNorm { .. } => Some(Self::Norms),
                ScopeKind::Activation { .. } => Some(Self::Activations),
                ScopeKind::CrossEntropy { .. } => Some(Self::Loss),
                ScopeKind::Residual => Some(Self::Residuals),
                ScopeKind::Linear => Some(Self::Products),
                ScopeKind::Embedding => Some(Self::Embeddings),
                ScopeKind::Group
                | ScopeKind::Stack
                | ScopeKind::Layer
                | ScopeKind::Attention
                | ScopeKind::Tile
                | ScopeKind::FeedForward
                | ScopeKind::Output
                | ScopeKind::Generation => None,
            };
            inner = inner.or(found);
            scope = program.scope(id).parent;
        }
        inner.unwrap_or(match node.op {
            Op::MatMul { .. } => Self::Products,
            Op::Gather(_) => Self::Embeddings,
            _ => Self::Rest,
        })
    }

    /// Key of its name in the catalogue.
    pub fn key(self) -> &'static str {
        match self {
            Self::Parameters => "numerics.kind.parameters",
            Self::Embeddings => "numerics.kind.embeddings",
            Self::Products => "numerics.kind.products",
            Self::Softmax => "numerics.kind.softmax",
            Self::Norms => "numerics.kind.norms",
            Self::Activations => "numerics.kind.activations",
            Self::Residuals => "numerics.kind.residuals",
            Self::Loss => "numerics.kind.loss",
            Self::Backward => "numerics.kind.backward",
            Self::Rest => "numerics.kind.rest",
        }
    }

    /// Its name for programs.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A node as rounded and exact.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeError {
    /// Which.
    pub node: NodeId,
    /// Its path.
    pub path: String,
    /// The first step that shows it.
    pub step: Option<String>,
    /// Root mean square of the difference, relative to that of the exact numbers; infinite where one is ±∞ or NaN
    /// that is not so in the exact run.
    pub rms: f64,
    /// The same where only this node is rounded.
    pub alone: f64,
    /// Largest difference, relative to the largest exact number.
    pub largest: f64,
    /// What rounding lost.
    pub lost: Lost,
    /// Numbers that are ±∞ or NaN here and not in the exact run, from wherever they came.
    pub not_finite: u64,
    /// Cells that are decisions (ids, choices) and differ.
    pub decided: u64,
    /// Its cells.
    pub cells: usize,
}

impl NodeError {
    /// Whether rounding matters here: more than this node's own, several times, or a number that is no more finite, or
    /// another decision.
    pub fn matters(&self) -> bool {
        self.rms > MATTERS * self.alone || self.decided > 0
    }
}

/// The error of the result where a kind of operation keeps its numbers in f32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kept {
    /// Which.
    pub kind: Kind,
    /// Nodes of this kind that are rounded otherwise.
    pub nodes: usize,
    /// RMS of the error of the result then.
    pub rms: f64,
    /// Numbers of the whole run that overflow then.
    pub overflow: u64,
}

/// What a rounding makes of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Lens {
    /// The run.
    pub run: usize,
    /// To what.
    pub rounding: Rounding,
    /// Every rounded node that is shown, and every decision, in order.
    pub nodes: Vec<NodeError>,
    /// The result that kinds of operations are judged by: logits where there are some.
    pub result: NodeId,
    /// Each kind that the run has, the best first.
    pub kept: Vec<Kept>,
}

impl Lens {
    /// Computes run `run` exactly and rounded, and once more for each kind of operation where `kinds` says so.
    ///
    /// # Errors
    /// Where it cannot run.
    pub fn of(session: &Session, run: usize, rounding: Rounding, kinds: bool) -> Result<Self, RunError> {
        let exact = session.trace(run).map_err(Clone::clone)?;
        let rounded = session.rounded(run, rounding)?;
        let program = &session.runs[run].program;
        let rounder = Rounder::from(rounding);
        let steps = session.steps_of(run);
        let mut nodes = Vec::new();
        for (id, node) in program.nodes() {
            let shown = node.dtype == DType::Float && rounder.rounds(program, id);
            let decides = matches!(node.op, Op::ArgMax | Op::ArgSort | Op::Sample);
            if !(shown || decides) || !rounded.reached(id) || !exact.reached(id) {
                continue;
            }
            let step = steps.first_showing(run, id).map(|at| steps.list()[at].label());
            nodes.push(error(program, exact, &rounded, &rounder, id, step));
        }
        let result = result(session, run);
        let mut kept = Vec::new();
        if kinds {
            let of: Vec<Kind> = program.nodes().map(|(id, _)| Kind::of(program, id)).collect();
            for kind in <Kind as strum::IntoEnumIterator>::iter() {
                let exempt: Arc<[bool]> = of.iter().map(|k| *k == kind).collect();
                let is_rounded = |(id, n): &(NodeId, &crate::program::Node)| {
                    of[id.index()] == kind && n.dtype == DType::Float && rounder.rounds(program, *id)
                };
                let count = program.nodes().filter(is_rounded).count();
                if count == 0 {
                    continue;
                }
                let trace = session.rounded_with(run, &Rounder { to: rounding, exempt })?;
                let rms = error(program, exact, &trace, &rounder, result, None).rms;
                let overflow = program.nodes().map(|(id, _)| trace.lost(id).overflow).sum();
                kept.push(Kept { kind, nodes: count, rms, overflow });
            }
            // Fewest that overflow, then the least error; a NaN is the worst.
            let key = |k: &Kept| (k.overflow, if k.rms.is_nan() { f64::INFINITY } else { k.rms });
            kept.sort_by(|a, b| key(a).0.cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1)));
        }
        Ok(Self { run, rounding, nodes, result, kept })
    }

    /// The first node in which rounding matters.
    pub fn first(&self) -> Option<&NodeError> {
        self.nodes.iter().find(|n| n.matters())
    }

    /// The first node of which a number overflows.
    pub fn first_overflow(&self) -> Option<&NodeError> {
        self.nodes.iter().find(|n| n.lost.overflow > 0)
    }

    /// The first node of which a number is flushed to zero.
    pub fn first_flush(&self) -> Option<&NodeError> {
        self.nodes.iter().find(|n| n.lost.flushed > 0)
    }

    /// The first decision that is another.
    pub fn first_decision(&self) -> Option<&NodeError> {
        self.nodes.iter().find(|n| n.decided > 0)
    }

    /// What was lost in all.
    pub fn lost(&self) -> Lost {
        let add = |a: Lost, n: &NodeError| Lost {
            overflow: a.overflow + n.lost.overflow,
            flushed: a.flushed + n.lost.flushed,
        };
        self.nodes.iter().fold(Lost::default(), add)
    }

    /// The error of the result.
    pub fn result_rms(&self) -> f64 {
        self.nodes.iter().find(|n| n.node == self.result).map_or(0.0, |n| n.rms)
    }

    /// The kind that should keep its numbers, where one makes the error of the result clearly smaller, or keeps numbers
    /// from overflowing.
    pub fn should_keep(&self) -> Option<&Kept> {
        let best = self.kept.first()?;
        let all = self.lost().overflow;
        let helps = best.overflow < all || best.rms < 0.8 * self.result_rms();
        helps.then_some(best)
    }
}

/// The node by which a run is judged.
fn result(session: &Session, run: usize) -> NodeId {
    let r = &session.runs[run];
    let o = &r.outputs;
    let main = [o.logits, o.classes, o.pooled, o.hidden, o.memory].into_iter().flatten().next();
    let last = || {
        let shown = r.program.nodes().filter(|(_, n)| n.dtype == DType::Float && !n.inline && !n.op.moves_only());
        shown.map(|(id, _)| id).next_back()
    };
    main.or_else(last).unwrap_or(NodeId(0))
}

fn error(
    program: &Program,
    exact: &AnyTrace,
    rounded: &AnyTrace,
    rounder: &Rounder,
    id: NodeId,
    step: Option<String>,
) -> NodeError {
    let (a, b) = (exact.value(id), rounded.value(id));
    let cells = a.shape().len();
    let node = program.node(id);
    let of_node = rounder.of(program, id);
    let round = |x: f64| of_node.as_ref().map_or(x, |r| r.round(x));
    let (mut far, mut own, mut size, mut largest, mut widest) = (0.0f64, 0.0f64, 0.0f64, 0.0f64, 0.0f64);
    let (mut not_finite, mut decided) = (0, 0);
    for i in 0..cells {
        let (x, y) = (a.get(i), b.get(i));
        if node.dtype != DType::Float {
            decided += u64::from(x != y);
            continue;
        }
        // What hides a score is another number in each type.
        if !x.is_finite() || x <= HIDDEN && of_node.as_ref().is_some_and(NodeRounding::hides_scores) {
            continue;
        }
        if !y.is_finite() {
            not_finite += 1;
            continue;
        }
        let (d, e) = (y - x, round(x) - x);
        far += d * d;
        own += if e.is_finite() { e * e } else { 0.0 };
        size += x * x;
        largest = largest.max(d.abs());
        widest = widest.max(x.abs());
    }
    let relative = |d: f64, of: f64| if d == 0.0 { 0.0 } else { d / of };
    // Numbers that the type has are rounded to themselves; their like are not.
    let least = match rounder.to {
        Rounding::Type(t) => t.roundoff() / 3f64.sqrt(),
        Rounding::Decimals(digits) => {
            let scale = (size / cells.max(1) as f64).sqrt();
            relative(10f64.powi(-i32::from(digits)) / 12f64.sqrt(), scale)
        }
    };
    NodeError {
        node: id,
        path: node.path.to_string(),
        step,
        rms: if not_finite > 0 { f64::INFINITY } else { relative(far.sqrt(), size.sqrt()) },
        alone: relative(own.sqrt(), size.sqrt()).max(least),
        largest: relative(largest, widest),
        lost: rounded.lost(id),
        not_finite,
        decided,
        cells,
    }
}

/// The words of a report.
impl Lens {
    /// What was rounded, and how much in all was lost.
    pub fn title(&self, run: &str) -> Msg {
        let lost = self.lost();
        let of = match self.rounding {
            Rounding::Decimals(digits) => Msg::new("numerics.title_decimals").arg("digits", digits),
            Rounding::Type(t) => Msg::new("numerics.title").arg("type", t),
        };
        of.arg("run", escape(run)).arg("overflow", lost.overflow).arg("flushed", lost.flushed)
    }

    /// What was found, with the node that it is about.
    pub fn findings(&self, session: &Session, lang: Lang) -> Vec<(Msg, Option<&NodeError>)> {
        let size = |x: f64| NumberFormat::Scientific(1).format(x);
        let about = |key: &'static str, n: &NodeError| {
            Msg::new(key)
                .arg("step", n.step.as_deref().unwrap_or("-"))
                .arg("path", escape(&n.path))
                .arg("rms", size(n.rms))
                .arg("times", (n.rms / n.alone).round())
                .arg("overflow", n.lost.overflow)
                .arg("flushed", n.lost.flushed)
                .arg("differing", n.decided)
                .arg("cells", n.cells)
        };
        let mut out = Vec::new();
        match self.first() {
            Some(n) if n.decided > 0 => out.push((about("numerics.first_decision", n), Some(n))),
            Some(n) if n.not_finite > 0 => out.push((about("numerics.first_infinite", n), Some(n))),
            Some(n) => out.push((about("numerics.first", n), Some(n))),
            None => out.push((Msg::new("numerics.nowhere"), None)),
        }
        out.extend(self.first_overflow().map(|n| (about("numerics.first_overflow", n), Some(n))));
        out.extend(self.first_flush().map(|n| (about("numerics.first_flush", n), Some(n))));
        let decision = self.first_decision().filter(|d| self.first().is_none_or(|f| f.node != d.node));
        out.extend(decision.map(|n| (about("numerics.first_decision", n), Some(n))));
        let path = escape(&session.runs[self.run].program.node(self.result).path).into_owned();
        let result = self.nodes.iter().find(|n| n.node == self.result);
        if let Some(kept) = self.should_keep() {
            let msg = Msg::new("numerics.keep")
                .arg("kind", tr(lang, kept.kind.key()))
                .arg("path", path)
                .arg("rms", size(kept.rms))
                .arg("before", size(self.result_rms()))
                .arg("overflow", kept.overflow);
            out.push((msg, result));
        } else if !self.kept.is_empty() {
            let msg = Msg::new("numerics.keep_none").arg("path", path).arg("rms", size(self.result_rms()));
            out.push((msg, result));
        }
        out
    }
}

impl NodeError {
    /// One line: step, path, error, what was lost.
    pub fn line(&self, number: NumberFormat) -> Msg {
        Msg::new("numerics.row")
            .arg("step", self.step.as_deref().unwrap_or("-"))
            .arg("path", escape(&self.path))
            .arg("rms", number.format(self.rms))
            .arg("largest", number.format(self.largest))
            .arg("overflow", self.lost.overflow)
            .arg("flushed", self.lost.flushed)
    }
}
