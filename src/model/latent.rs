//! Multi-head latent attention (DeepSeek-V2): queries, keys and values from narrow latents, and a part of queries and
//! keys that alone is rotated.

use serde::{Deserialize, Serialize};

use super::attention::{Projected, Projection, projection};
use super::norm::norm;
use super::params::{self, ResolvedLayer};
use super::positions::Rotation;
use crate::program::composite;
use crate::program::{BuildError, Builder, NodeId};
use crate::tensor::{Axis, Shape};

/// Widths of the latents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LatentConfig {
    /// Width of the latent that queries come from; unless given, they come from the hidden states.
    #[serde(default)]
    pub q_rank: Option<usize>,
    /// Width of the latent that keys and values come from.
    pub kv_rank: usize,
    /// Components of a query and of a key that rotate; the first `d_k - rope` do not. All heads share those of the key.
    pub rope: usize,
}

type Built = Result<NodeId, BuildError>;

/// `x·Wᵀ + b` with parameters at `base`.
fn dense(b: &mut Builder, name: &str, base: &str, x: NodeId, out: usize, bias: bool) -> Built {
    let d = b.shape(x).dims()[2];
    let (weight, bias) = params::dense(b, base, (out, d), bias, 1)?;
    composite::linear(b, name, x, weight, bias, Axis::Other)
}

fn rotate(b: &mut Builder, name: &str, x: NodeId, rotation: Option<Rotation>, width: usize) -> Built {
    match rotation {
        Some(r) => composite::rotary(b, name, x, (r.sin, r.cos), width, r.interleaved),
        None => Ok(x),
    }
}

/// Queries `[batch, head, token, d_k]`: from a latent where there is one, their last components rotated.
pub(super) fn queries(
    b: &mut Builder,
    base: &str,
    l: &ResolvedLayer,
    c: &LatentConfig,
    x: NodeId,
    rotation: Option<Rotation>,
) -> Built {
    let [bias, ..] = l.attention.biases();
    let heads = Projection { heads: (Axis::Head, l.heads), width: (Axis::DK, l.d_k), bias, clip: None, norm: None };
    let (name, from, heads) = match c.q_rank {
        Some(rank) => {
            let latent = dense(b, "q_a", &format!("{base}.q_a"), x, rank, bias)?;
            let latent = norm(b, "q_a_norm", &format!("{base}.q_a_norm"), latent, &l.norm)?;
            ("q_b", latent, Projection { bias: false, ..heads })
        }
        None => ("q", x, heads),
    };
    let q = projection(b, "q", &format!("{base}.{name}"), from, &heads)?;
    let still = l.d_k - c.rope;
    let turning = b.slice("q_rotating", q, 3, still, c.rope)?;
    let turned = rotate(b, "q_rotated_part", turning, rotation, c.rope)?;
    let kept = b.slice("q_still", q, 3, 0, still)?;
    b.inline(turning);
    b.inline(kept);
    b.concat("q_rotated", 3, &[kept, turned])
}

/// Keys `[batch, head, token, d_k]` and values `[batch, head, token, d_v]` from one latent.
pub(super) fn keys_values(
    b: &mut Builder,
    base: &str,
    l: &ResolvedLayer,
    c: &LatentConfig,
    x: NodeId,
    rotation: Option<Rotation>,
) -> Result<Projected, BuildError> {
    let [_, bias, _] = l.attention.biases();
    let both = dense(b, "kv_a", &format!("{base}.kv_a"), x, c.kv_rank + c.rope, bias)?;
    let latent = b.slice("kv_latent", both, 2, 0, c.kv_rank)?;
    let latent = norm(b, "kv_a_norm", &format!("{base}.kv_a_norm"), latent, &l.norm)?;
    let still = l.d_k - c.rope;
    let heads = Projection {
        heads: (Axis::Head, l.heads),
        width: (Axis::Other, still + l.d_v),
        bias: false,
        clip: None,
        norm: None,
    };
    let kv = projection(b, "kv", &format!("{base}.kv_b"), latent, &heads)?;
    let v = b.slice("v", kv, 3, still, l.d_v)?;
    let axes = [Axis::Batch, Axis::Head, Axis::Token];
    b.name_axes(v, &[axes[0], axes[1], axes[2], Axis::DV]);
    let kept = b.slice("k_still", kv, 3, 0, still)?;
    // The rotating part of a key is one row a token, and every head has it.
    let turning = b.slice("k_rotating_row", both, 2, c.kv_rank, c.rope)?;
    b.inline(turning);
    let s = b.shape(turning);
    let column = [(Axis::Batch, s.dims()[0]), (Axis::One, 1), (Axis::Token, s.dims()[1]), (Axis::DK, c.rope)];
    let turning = b.reshape("k_rotating", turning, Shape::named(&column))?;
    let turned = rotate(b, "k_rotated_part", turning, rotation, c.rope)?;
    let copies = vec![turned; l.heads];
    let turned = b.concat("k_rotated_all", 1, &copies)?;
    b.name_axes(turned, &[axes[0], axes[1], axes[2], Axis::DK]);
    for id in [kept, turned] {
        b.inline(id);
    }
    let k = b.concat("k_rotated", 3, &[kept, turned])?;
    b.name_axes(k, &[axes[0], axes[1], axes[2], Axis::DK]);
    Ok((k, v))
}
