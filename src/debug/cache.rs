//! Decoding with a KV cache and without must give the same bits. Both ways are run; of each call, the last positions
//! of every path that both have are compared, and the rows of the cache with the keys and values computed anew.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::generate::Calls;
use crate::program::{Block, Node, NodeId, Program, Role};
use crate::session::Session;
use crate::session::generation::{Failed, frame_flops, frame_of, frames};
use crate::tensor::{Precision, Real, Shape, Value};
use crate::trace::{Flow, Sink};

/// Where the two ways part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The decoding call.
    pub frame: usize,
    /// Path in the cached run.
    pub path: String,
    /// Index of the first cell that differs, in the cached run.
    pub index: Vec<usize>,
}

/// What comparing both ways found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Decoding calls.
    pub frames: usize,
    /// Paths that were compared, all calls together.
    pub paths: usize,
    /// Cells that were compared.
    pub cells: u64,
    /// Calls in which something differs.
    pub different: Vec<usize>,
    /// The first place that differs.
    pub first: Option<Difference>,
    /// Floating-point operations of each call with the cache.
    pub flops_cached: Vec<u64>,
    /// And without.
    pub flops_uncached: Vec<u64>,
    /// Bytes of keys and values that each call leaves in the cache.
    pub cache_bytes: Vec<u64>,
}

/// Runs `calls` with the model of run `run` both ways and compares. `tamper` sees the nodes of the cached run and may replace them: that is how
/// the check itself is checked; `()` leaves all as it is.
///
/// # Errors
/// Where a run cannot be built or run.
pub fn compare<S: Sink<f32> + Sink<f64>>(
    session: &Session,
    run: usize,
    calls: &Calls,
    tamper: &mut S,
) -> Result<Report, Failed> {
    let whole = session.generation(run, calls, false).map_err(Failed::Build)?;
    let cached = session.generation(run, calls, true).map_err(Failed::Build)?;
    let mut pairs: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    for (id, node) in cached.nodes() {
        if frame_of(node).is_some()
            && let Some(other) = partner(&whole, node)
            && fits(&whole.node(other).shape, &node.shape)
            && whole.node(other).dtype == node.dtype
        {
            pairs.entry(other).or_default().push(id);
        }
    }
    let mut recorder = Recorder { pairs: &pairs, cached: &cached, bits: HashMap::new() };
    session.run_program(&whole, |_| false, &mut recorder).map_err(Failed::Run)?;
    let mut comparer = Comparer {
        bits: recorder.bits,
        tamper,
        report: Report {
            frames: frames(&cached),
            flops_cached: frame_flops(&cached, session.precision),
            flops_uncached: frame_flops(&whole, session.precision),
            cache_bytes: cache_bytes(&cached, session.precision),
            ..Report::default()
        },
    };
    session.run_program(&cached, |_| false, &mut comparer).map_err(Failed::Run)?;
    Ok(comparer.report)
}

/// The node of the uncached run that holds what `path` of the cached one does: the same path, and for a cache the
/// keys or values of all positions.
fn partner(whole: &Program, node: &Node) -> Option<NodeId> {
    let name = &node.name;
    let sibling = |role: Role| name.sibling(role);
    let all = match name.last() {
        // Keys go into the cache as the scores read them.
        Role::KeyCache => vec![sibling(Role::KeyRotated), sibling(Role::KeyNorm).then(Role::Out), sibling(Role::Key)],
        Role::ValueCache => vec![sibling(Role::Value)],
        // All else has the same path with a cache and without.
        _ => return whole.find(&node.path),
    };
    all.iter().find_map(|name| whole.named(name))
}

/// Whether the last cells of `whole` along each axis can be compared with all of `part`.
fn fits(whole: &Shape, part: &Shape) -> bool {
    whole.rank() == part.rank() && whole.dims().iter().zip(part.dims()).all(|(w, p)| w >= p)
}

/// Flat positions of the last cells of `whole`, in the order of `part`.
fn tail(whole: Shape, part: Shape) -> impl Iterator<Item = usize> {
    let strides = whole.strides();
    (0..part.len()).map(move |flat| {
        let at = part.unflat(flat);
        (0..part.rank()).map(|d| (at[d] + whole.dims()[d] - part.dims()[d]) * strides[d]).sum()
    })
}

/// Bytes of keys and values after each call, cross-attention's included.
pub fn cache_bytes(program: &Program, precision: Precision) -> Vec<u64> {
    let each = match precision {
        Precision::F32 => 4,
        Precision::F64 => 8,
    };
    let mut bytes = vec![0; frames(program)];
    let mut fixed = 0;
    for (_, node) in program.nodes() {
        let Some(frame) = frame_of(node).filter(|f| *f < bytes.len()) else {
            continue;
        };
        let name = &node.name;
        if !name.inner.is_empty() {
            continue;
        }
        let size = node.shape.len() as u64 * each;
        let has = |role: Role| program.named(&name.sibling(role)).is_some();
        match (name.site.block(), &name.role) {
            (Some(Block::CrossAttention), Role::Key | Role::Value) => fixed += size,
            (Some(Block::SelfAttention), Role::KeyCache | Role::ValueCache) => bytes[frame] += size,
            (Some(Block::SelfAttention), Role::Key) if !has(Role::KeyCache) => bytes[frame] += size,
            (Some(Block::SelfAttention), Role::Value) if !has(Role::ValueCache) => bytes[frame] += size,
            _ => {}
        }
    }
    bytes.iter().map(|b| b + fixed).collect()
}

struct Recorder<'a> {
    pairs: &'a HashMap<NodeId, Vec<NodeId>>,
    cached: &'a Arc<Program>,
    /// By node of the cached run: what it must be.
    bits: HashMap<NodeId, Vec<u64>>,
}

impl<T: Real> Sink<T> for Recorder<'_> {
    fn node(&mut self, _: &Program, id: NodeId, value: &Value<T>) -> Flow<T> {
        for &part in self.pairs.get(&id).into_iter().flatten() {
            let cells = tail(*value.shape(), self.cached.node(part).shape);
            self.bits.insert(part, cells.map(|i| value.bits(i)).collect());
        }
        Flow::Go
    }
}

struct Comparer<'a, S> {
    bits: HashMap<NodeId, Vec<u64>>,
    tamper: &'a mut S,
    report: Report,
}

impl<T: Real, S: Sink<T>> Sink<T> for Comparer<'_, S> {
    fn node(&mut self, program: &Program, id: NodeId, value: &Value<T>) -> Flow<T> {
        let flow = self.tamper.node(program, id, value);
        let value = match &flow {
            Flow::Replace(other) => other,
            _ => value,
        };
        if let Some(wanted) = self.bits.remove(&id) {
            let node = program.node(id);
            self.report.paths += 1;
            self.report.cells += wanted.len() as u64;
            // What kind of NaN comes out is no part of the contract.
            let same = |(i, bits): (usize, &u64)| value.bits(i) == *bits || value.get(i).is_nan() && is_nan::<T>(*bits);
            let far = wanted.iter().enumerate().position(|pair| !same(pair));
            if let (Some(flat), Some(frame)) = (far, frame_of(node)) {
                if self.report.different.last() != Some(&frame) {
                    self.report.different.push(frame);
                }
                self.report.first.get_or_insert_with(|| Difference {
                    frame,
                    path: node.path.to_string(),
                    index: node.shape.unflat(flat)[..node.shape.rank()].to_vec(),
                });
            }
        }
        flow
    }
}

fn is_nan<T: Real>(bits: u64) -> bool {
    match T::PRECISION {
        Precision::F32 => f32::from_bits(bits as u32).is_nan(),
        Precision::F64 => f64::from_bits(bits).is_nan(),
    }
}
