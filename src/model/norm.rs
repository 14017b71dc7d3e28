//! Norms of the residual stream, of embeddings, and of queries and keys.

use super::config::{EpsAt, NormConfig, NormKind};
use crate::program::composite::{self, Norm};
use crate::program::{BuildError, Builder, Name, NodeId, ParamRole};
use crate::tensor::{Axis, Shape};

/// A norm over the last axis, with parameters at `base`.
pub(super) fn norm(b: &mut Builder, name: &str, base: &str, x: NodeId, cfg: &NormConfig) -> Result<NodeId, BuildError> {
    let s = b.shape(x);
    let d = s.dims().last().copied().unwrap_or(1);
    norm_of(b, name, base, x, cfg, Shape::named(&[(Axis::DModel, d)]))
}

/// As [`norm`], with parameters of shape `shape`; one of two axes holds a row for each head of `x [batch, head, …]`.
pub(super) fn norm_of(
    b: &mut Builder,
    name: &str,
    base: &str,
    x: NodeId,
    cfg: &NormConfig,
    shape: Shape,
) -> Result<NodeId, BuildError> {
    let mut parameter = |name: &str, role: ParamRole, present: bool| -> Result<Option<NodeId>, BuildError> {
        if !present {
            return Ok(None);
        }
        let id = b.declare(format!("{base}.{name}"), shape, role, 1)?;
        if shape.rank() < 2 {
            return Ok(Some(id));
        }
        let ((head, heads), (axis, width)) = ((shape.axes()[0], shape.dims()[0]), (shape.axes()[1], shape.dims()[1]));
        let rows = Shape::named(&[(head, heads), (Axis::One, 1), (axis, width)]);
        let rows = b.reshape(format!("{}.{name}_rows", Name::parse(base).tail(1)), id, rows)?;
        Ok(Some(b.inline(rows)))
    };
    let how = Norm {
        eps: cfg.eps,
        inside_root: cfg.eps_at == EpsAt::InsideRoot,
        unbiased: cfg.unbiased,
        gamma: parameter("gamma", ParamRole::Gamma, cfg.has_gamma())?,
        beta: parameter("beta", ParamRole::Beta, cfg.has_beta())?,
        unit_offset: cfg.unit_offset,
    };
    match cfg.kind {
        NormKind::LayerNorm => composite::layer_norm(b, name, x, &how),
        NormKind::RmsNorm => composite::rms_norm(b, name, x, &how),
        NormKind::None => Ok(x),
    }
}
