//! What every head does, over the real tokens of a sentence: how much it looks at the token itself and elsewhere, how
//! evenly, and where it tends to look.

use crate::program::{Name, NodeId, Role, Side};
use crate::session::Session;
use crate::tensor::Axis;
use crate::trace::RunError;

/// Where a head looks more than anywhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tendency {
    /// Everywhere nearly alike.
    Even,
    /// At the token itself.
    Itself,
    /// At other tokens than itself.
    Others,
    /// At the token before.
    Previous,
    /// At the token after.
    Next,
    /// At the first token.
    First,
}

impl Tendency {
    /// Its name in JSON, and the end of its catalogue key.
    pub fn name(self) -> &'static str {
        match self {
            Tendency::Even => "even",
            Tendency::Itself => "itself",
            Tendency::Others => "others",
            Tendency::Previous => "previous",
            Tendency::Next => "next",
            Tendency::First => "first",
        }
    }
}

/// One head over one sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadRow {
    /// Run.
    pub run: usize,
    /// The attention's weights.
    pub node: NodeId,
    /// Path of the attention.
    pub attention: String,
    /// Which head, from 0.
    pub head: usize,
    /// Which sentence, from 0.
    pub sentence: usize,
    /// Real queries and keys.
    pub size: (usize, usize),
    /// Mean weight of the diagonal cells; NaN for attention to another sequence.
    pub diagonal: f64,
    /// Mean weight of the other cells that the mask leaves.
    pub elsewhere: f64,
    /// Mean entropy of the rows, as a share of that of even weights.
    pub entropy: f64,
    /// Where it tends to look.
    pub tendency: Tendency,
}

/// A cell's weight counts as more than even from this multiple of the even share on.
const CLEAR: f64 = 1.25;

/// Every head of every attention of a run, over each of its sentences; of decoding calls those of `call`.
///
/// # Errors
/// Where the run cannot run.
pub fn table(s: &Session, run: usize, call: Option<u32>) -> Result<Vec<HeadRow>, RunError> {
    let trace = s.trace(run).map_err(Clone::clone)?;
    let program = &s.runs[run].program;
    let mut out = Vec::new();
    for (id, node) in program.nodes() {
        let name = &node.name;
        let weights = name.site.is_attention() && name.role == Role::Weights && name.inner.is_empty();
        let (axes, dims) = (node.shape.axes(), node.shape.dims());
        if !weights || name.is_gradient() || name.call != call || node.shape.rank() != 4 || axes[3] != Axis::Key {
            continue;
        }
        let Some(value) = trace.get(id) else { continue };
        let own = s.sentence_of(run, id, 2).0 == s.sentence_of(run, id, 3).0;
        for sentence in 0..dims[0] {
            let (queries, keys) = (real(s, run, id, 2, sentence), real(s, run, id, 3, sentence));
            for head in 0..dims[1] {
                let at = |q: usize, k: usize| value.get(node.shape.flat(&[sentence, head, q, k]));
                let facts = Facts::of(&queries, &keys, own, &at);
                out.push(HeadRow {
                    run,
                    node: id,
                    attention: Name::of(name.site).to_string(),
                    head,
                    sentence,
                    size: (queries.len(), keys.len()),
                    diagonal: facts.diagonal,
                    elsewhere: facts.elsewhere,
                    entropy: facts.entropy,
                    tendency: facts.tendency,
                });
            }
        }
    }
    Ok(out)
}

/// The places of a sentence that are no padding.
fn real(s: &Session, run: usize, node: NodeId, axis: usize, sentence: usize) -> Vec<usize> {
    let len = s.runs[run].program.node(node).shape.dims()[axis];
    let (side, call) = s.sentence_of(run, node, axis);
    let inputs = &s.runs[run].inputs;
    let sequences = match side {
        Side::Source => inputs.source.as_ref(),
        Side::Target => inputs.target.as_ref().filter(|_| call.is_none()),
    };
    let real = sequences.and_then(|q| q.real.as_ref().filter(|r| r.len() == q.batch * len));
    (0..len).filter(|i| real.is_none_or(|r| r[sentence * len + i])).collect()
}

struct Facts {
    diagonal: f64,
    elsewhere: f64,
    entropy: f64,
    tendency: Tendency,
}

impl Facts {
    fn of(queries: &[usize], keys: &[usize], own: bool, at: &dyn Fn(usize, usize) -> f64) -> Self {
        let (mut diagonal, mut elsewhere) = (Mean::default(), Mean::default());
        let (mut previous, mut next, mut first) = (Mean::default(), Mean::default(), Mean::default());
        let (mut entropy, mut even) = (Mean::default(), Mean::default());
        for &q in queries {
            let mut h = 0.0;
            // What a mask hides has no weight at all.
            let open = keys.iter().filter(|k| at(q, **k) > 0.0).count();
            for &k in keys {
                let p = at(q, k);
                if p <= 0.0 {
                    continue;
                }
                h -= p * p.ln();
                if own && k == q {
                    diagonal.add(p);
                } else {
                    elsewhere.add(p);
                }
                if own && k + 1 == q {
                    previous.add(p);
                }
                if own && k == q + 1 {
                    next.add(p);
                }
                if k == keys[0] && k != q {
                    first.add(p);
                }
            }
            if open > 1 {
                entropy.add(h / (open as f64).ln());
                even.add(1.0 / open as f64);
            }
        }
        let even = even.value();
        let kinds = [
            (diagonal.value(), Tendency::Itself),
            (previous.value(), Tendency::Previous),
            (next.value(), Tendency::Next),
            (first.value(), Tendency::First),
        ];
        let known = kinds.into_iter().filter(|(p, _)| !p.is_nan());
        let best = known.max_by(|a, b| a.0.total_cmp(&b.0));
        let tendency = match best {
            Some((p, kind)) if p > CLEAR * even => kind,
            _ if own && diagonal.value() * CLEAR < elsewhere.value() => Tendency::Others,
            _ => Tendency::Even,
        };
        Self { diagonal: diagonal.value(), elsewhere: elsewhere.value(), entropy: entropy.value(), tendency }
    }
}

/// A running mean; NaN of nothing.
#[derive(Default)]
struct Mean {
    sum: f64,
    count: usize,
}

impl Mean {
    fn add(&mut self, x: f64) {
        self.sum += x;
        self.count += 1;
    }

    fn value(&self) -> f64 {
        if self.count == 0 { f64::NAN } else { self.sum / self.count as f64 }
    }
}
