//! The model along its depth: how long the rows of the residual stream are, what each sublayer adds, and how large the
//! gradients of each layer's parameters are. Padded rows are left out.

use crate::program::{Block, Name, NodeId, OnStream, Side, Site};
use crate::session::{RunKind, Session};
use crate::tensor::Axis;
use crate::trace::RunError;

/// A tensor of the residual stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamRow {
    /// Path.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Mean Euclidean norm of its real rows.
    pub norm: f64,
    /// Root of the mean square of their numbers.
    pub rms: f64,
    /// Rows that counted.
    pub rows: usize,
}

/// What a tensor of the stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The embedding that enters the first layer.
    Embedding,
    /// What a sublayer adds.
    Added,
    /// The sum after it.
    Residual,
    /// A norm's output.
    Norm,
}

impl Kind {
    /// Its name in JSON, and the end of its catalogue key.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Embedding => "embedding",
            Kind::Added => "added",
            Kind::Residual => "residual",
            Kind::Norm => "norm",
        }
    }
}

/// What a node of the stream is.
fn kind(name: &Name) -> Option<Kind> {
    match name.on_stream()? {
        OnStream::Scaled | OnStream::Embedding => Some(Kind::Embedding),
        OnStream::Added => Some(Kind::Added),
        OnStream::Residual(_) => Some(Kind::Residual),
        OnStream::Norm(_) | OnStream::FinalNorm => Some(Kind::Norm),
        OnStream::EmbeddingNorm => None,
    }
}

/// The residual stream of a run, in the order of the program; of decoding calls that of `call`.
///
/// # Errors
/// Where the run cannot run.
pub fn stream(s: &Session, run: usize, call: Option<u32>) -> Result<Vec<StreamRow>, RunError> {
    let trace = s.trace(run).map_err(Clone::clone)?;
    let program = &s.runs[run].program;
    let mut out = Vec::new();
    for (id, node) in program.nodes() {
        let Some(kind) = kind(&node.name).filter(|_| node.name.call.is_none() || node.name.call == call) else {
            continue;
        };
        let (Some(value), Some(width)) = (trace.get(id), node.shape.dims().last().copied()) else { continue };
        let (mut norms, mut squares, mut rows) = (0.0, 0.0, 0);
        for row in 0..node.shape.len() / width.max(1) {
            if !is_real(s, run, id, row) {
                continue;
            }
            let square: f64 = (0..width).map(|i| value.get(row * width + i).powi(2)).sum();
            norms += square.sqrt();
            squares += square / width as f64;
            rows += 1;
        }
        let n = f64::from(u32::try_from(rows.max(1)).unwrap_or(u32::MAX));
        out.push(StreamRow { path: node.path.to_string(), kind, norm: norms / n, rms: (squares / n).sqrt(), rows });
    }
    Ok(out)
}

/// Whether a row `[batch, token]` of a node is no padding.
fn is_real(s: &Session, run: usize, node: NodeId, row: usize) -> bool {
    let shape = s.runs[run].program.node(node).shape;
    let Some(axis) = shape.axes().iter().position(|a| *a == Axis::Token) else { return true };
    let (side, call) = s.sentence_of(run, node, axis);
    let inputs = &s.runs[run].inputs;
    let sequences = match side {
        Side::Source => inputs.source.as_ref(),
        Side::Target => inputs.target.as_ref().filter(|_| call.is_none()),
    };
    let real = sequences.and_then(|q| q.real.as_ref());
    real.is_none_or(|real| real.get(row).copied().unwrap_or(true))
}

/// Norm of the gradients of a layer's parameters together.
#[derive(Clone, Debug, PartialEq)]
pub struct GradientRow {
    /// Path of the layer.
    pub layer: String,
    /// √(Σ g²) over all its parameters.
    pub norm: f64,
    /// Numbers in them.
    pub parameters: usize,
}

/// Gradient norms by layer of the training run that `run` is, or is the backward pass or update of; nothing where it is
/// not trained.
///
/// # Errors
/// Where the run cannot run.
pub fn gradients(s: &Session, run: usize) -> Result<Vec<GradientRow>, RunError> {
    let forward = s.forward_of(run).unwrap_or(run);
    let backward =
        (0..s.runs.len()).find(|r| s.runs[*r].kind == RunKind::Backward && s.forward_of(*r) == Some(forward));
    let Some(run) = backward else { return Ok(Vec::new()) };
    let trace = s.trace(run).map_err(Clone::clone)?;
    let program = &s.runs[run].program;
    let mut out: Vec<(Site, GradientRow)> = Vec::new();
    for spec in &s.specs {
        let name = Name::parse(&spec.path);
        let Some(value) = program.named(&name.gradient()).and_then(|id| trace.get(id)) else { continue };
        let site = match name.site {
            Site::Layer(stack, layer, _) => Site::Layer(stack, layer, Block::Layer),
            Site::Embedding(_) => Site::Embedding(None),
            other => other,
        };
        let square: f64 = (0..value.shape().len()).map(|i| value.get(i).powi(2)).sum();
        let at = out.iter().position(|(of, _)| *of == site).unwrap_or_else(|| {
            out.push((site, GradientRow { layer: Name::of(site).to_string(), norm: 0.0, parameters: 0 }));
            out.len() - 1
        });
        out[at].1.norm += square;
        out[at].1.parameters += value.shape().len();
    }
    Ok(out.into_iter().map(|(_, row)| GradientRow { norm: row.norm.sqrt(), ..row }).collect())
}
