//! Which parameters a model has: their paths, shapes and roles, in the order in which the model uses them.
//!
//! Nothing here allocates numbers: a [`ParamSpec`] is what a weight source must fill.

use crate::tensor::{Axis, Shape};

use super::config::{
    AttentionConfig, FfnConfig, ModelConfig, NormConfig, NormPosition, Positions, ProjectAt, QkNorm, StackConfig,
};
use super::embedding::summed_width;
use super::heads::{embedding_width, head_width};
use super::moe;
use super::positions::positions_of;

/// Sizes of the two vocabularies. A model with one side reads only that side's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VocabSizes {
    /// Words the encoder may read.
    pub source: usize,
    /// Words the decoder may read and write.
    pub target: usize,
}

/// What a parameter is for; initialisers ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ParamRole {
    /// A matrix `[out, in]`, y = x·Wᵀ.
    Weight {
        /// Its columns.
        fan_in: usize,
        /// Its rows.
        fan_out: usize,
    },
    /// Added to a product; `fan_in` is that of the matrix it goes with.
    Bias {
        /// Columns of its matrix.
        fan_in: usize,
    },
    /// Factor of a norm.
    Gamma,
    /// Offset of a norm.
    Beta,
    /// A token table `[vocab, d_model]`.
    Embedding,
    /// A learned position table `[position, d_model]`.
    Position,
    /// A token-type table `[type, d_model]`.
    TokenType,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ParamSpec {
    /// Its path, such as `encoder.0.self_attn.q.weight`.
    pub path: String,
    /// Its shape: `[out, in]` for matrices.
    pub shape: Shape,
    /// What it is for.
    pub role: ParamRole,
    /// Heads whose rows (`q`, `k`, `v`) stand one after the other in it; 1 where it is not split.
    pub heads: usize,
}

/// One layer with every setting filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedLayer {
    /// Query heads.
    pub heads: usize,
    /// Key/value heads.
    pub kv_heads: usize,
    /// Width of a query or key of one head.
    pub d_k: usize,
    /// Width of a value of one head.
    pub d_v: usize,
    /// Width inside the feed-forward network.
    pub d_ff: usize,
    /// Normalisation.
    pub norm: NormConfig,
    /// Attention.
    pub attention: AttentionConfig,
    /// Whether self-attention hides later positions.
    pub causal: bool,
    /// Feed-forward network.
    pub ffn: FfnConfig,
    /// Whether there is a feed-forward network.
    pub has_ffn: bool,
    /// Whether there is self-attention.
    pub has_attention: bool,
    /// Whether a sublayer's input is added to its output.
    pub residual: bool,
    /// Whether there is attention to the encoder.
    pub cross: bool,
}

impl ResolvedLayer {
    /// The norm of queries and keys.
    pub fn qk_norm(&self) -> NormConfig {
        let bias = self.attention.qk_norm_bias.unwrap_or(self.norm.bias);
        NormConfig { bias, ..self.norm.clone() }
    }
}

/// A model with every layer written out.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// Encoder layers; empty where there is no encoder.
    pub encoder: Vec<ResolvedLayer>,
    /// Decoder layers; empty where there is no decoder.
    pub decoder: Vec<ResolvedLayer>,
    /// Whether there is an encoder (it may have no layers).
    pub has_encoder: bool,
    /// Whether there is a decoder.
    pub has_decoder: bool,
    /// Whether a norm follows the last encoder layer.
    pub encoder_final_norm: bool,
    /// Whether a norm follows the last decoder layer.
    pub decoder_final_norm: bool,
    /// Sets of weights that the encoder's layers share, where they do.
    pub encoder_groups: Option<Shared>,
    /// Sets of weights that the decoder's layers share, where they do.
    pub decoder_groups: Option<Shared>,
}

/// Sets of weights that the layers of a stack share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// How many.
    pub sets: usize,
    /// Layers of a set.
    pub layers: usize,
}

impl Shared {
    /// The sets of a stack, where its layers share any.
    pub fn of(stack: &StackConfig) -> Option<Self> {
        let layers = stack.weight_group_layers.unwrap_or(1).max(1);
        stack.weight_groups.map(|sets| Self { sets, layers })
    }
}

/// The weights of layer `i` of `layers`, by their number: its own, or those of its set, which is that of its neighbours too.
pub fn weight_group(i: usize, layers: usize, shared: Option<Shared>) -> usize {
    let Some(Shared { sets, layers: each }) = shared else {
        return i;
    };
    i / each * sets / (layers / each).max(1) * each + i % each
}

/// Fills in every layer's settings. Call [`super::validate::validate`] first: this expands `repeat`.
pub fn resolve(config: &ModelConfig) -> Resolved {
    let has_encoder = config.encoder.is_some();
    let expand = |stack: &Option<StackConfig>, decoder: bool| {
        let mut layers = Vec::new();
        for group in stack.iter().flat_map(|s| &s.layers) {
            let heads = group.heads.unwrap_or(config.heads);
            let d_k = group.d_k.or(config.d_k).unwrap_or_else(|| config.d_model.checked_div(heads).unwrap_or(0));
            let own = group.attention.clone().unwrap_or_default();
            let attention = own.over(&config.attention);
            let layer = ResolvedLayer {
                heads,
                kv_heads: group.kv_heads.or(config.kv_heads).unwrap_or(heads),
                d_k,
                d_v: group.d_v.or(config.d_v).unwrap_or(d_k),
                d_ff: group.d_ff.unwrap_or(config.d_ff),
                norm: group.norm.clone().unwrap_or_default().over(&config.norm),
                causal: attention.causal.unwrap_or(decoder),
                attention,
                ffn: group.ffn.clone().unwrap_or_default().over(&config.ffn),
                has_ffn: group.has_ffn,
                has_attention: group.has_attention,
                residual: group.residual,
                cross: decoder && has_encoder && group.cross_attention.unwrap_or(true),
            };
            layers.extend(std::iter::repeat_n(layer, group.repeat));
        }
        layers
    };
    Resolved {
        encoder: expand(&config.encoder, false),
        decoder: expand(&config.decoder, true),
        has_encoder,
        has_decoder: config.decoder.is_some(),
        encoder_final_norm: config.encoder.as_ref().is_some_and(|s| s.final_norm),
        decoder_final_norm: config.decoder.as_ref().is_some_and(|s| s.final_norm),
        encoder_groups: config.encoder.as_ref().and_then(Shared::of),
        decoder_groups: config.decoder.as_ref().and_then(Shared::of),
    }
}

/// Whether earlier keys and values stay as they are when a token is added: no layer of the decoder may let one token
/// read what comes after it, and positions may not depend on the length of the text.
pub fn cacheable(config: &ModelConfig) -> bool {
    !turns_with_length(config) && resolve(config).decoder.iter().all(|l| l.causal)
}

/// Whether the angles of a layer of the decoder depend on how long the text is.
pub fn turns_with_length(config: &ModelConfig) -> bool {
    resolve(config).decoder.iter().any(|l| {
        matches!(positions_of(&config.positions, l),
            Positions::Rotary { scaling, .. } if scaling.depends_on_length())
    })
}

/// Every parameter of a model, in the order in which the model uses them.
pub fn parameters(config: &ModelConfig, vocab: VocabSizes) -> Vec<ParamSpec> {
    let resolved = resolve(config);
    let mut list = List { specs: Vec::new(), d_model: config.d_model };
    list.embeddings(config, &resolved, vocab);
    list.stack("encoder", &resolved.encoder, resolved.encoder_groups, &config.positions);
    if resolved.encoder_final_norm {
        list.norm("encoder.final_norm", &config.norm);
    }
    list.stack("decoder", &resolved.decoder, resolved.decoder_groups, &config.positions);
    if resolved.decoder_final_norm {
        list.norm("decoder.final_norm", &config.norm);
    }
    if config.pooler.is_some() {
        list.linear("pooler", config.d_model, config.d_model, true, 1);
    }
    if let Some(c) = &config.classifier {
        list.linear("classifier", c.labels, config.d_model, c.bias, 1);
    }
    if !config.output.none {
        list.head(config, if resolved.has_decoder { vocab.target } else { vocab.source });
    }
    list.specs
}

/// Path of the token table that `side` (`source` or `target`) reads.
pub fn embedding_path(config: &ModelConfig, side: &str) -> String {
    if config.embedding.shared { "embed.weight".to_owned() } else { format!("embed.{side}.weight") }
}

/// The side whose tokens carry types: the source, or the target of a model that is only a decoder.
pub fn typed_side(config: &ModelConfig) -> &'static str {
    if config.encoder.is_some() { "source" } else { "target" }
}

struct List {
    specs: Vec<ParamSpec>,
    d_model: usize,
}

impl List {
    fn push(&mut self, path: String, shape: Shape, role: ParamRole, heads: usize) {
        self.specs.push(ParamSpec { path, shape, role, heads });
    }

    /// The output head over `words` words.
    fn head(&mut self, config: &ModelConfig, words: usize) {
        let width = head_width(config);
        if let Some(t) = &config.output.transform {
            self.linear("output.transform", width, config.d_model, t.bias, 1);
            if t.norm {
                self.norm_of("output.transform_norm", &config.norm, Shape::named(&[(Axis::DModel, width)]));
            }
        }
        if !config.output.tied {
            let axis = if width == config.d_model { Axis::DModel } else { Axis::Other };
            self.push(
                "output.weight".into(),
                Shape::named(&[(Axis::Vocab, words), (axis, width)]),
                ParamRole::Weight { fan_in: width, fan_out: words },
                1,
            );
        }
        if config.output.bias {
            let shape = Shape::named(&[(Axis::Vocab, words)]);
            self.push("output.bias".into(), shape, ParamRole::Bias { fan_in: width }, 1);
        }
    }

    fn stack(&mut self, side: &str, layers: &[ResolvedLayer], groups: Option<Shared>, model: &Positions) {
        let mut listed = 0;
        let shared = layers.iter().find_map(|l| match positions_of(model, l) {
            Positions::Relative { buckets, shared: true, .. } => Some((*buckets, l.heads)),
            _ => None,
        });
        if let Some((buckets, heads)) = shared {
            self.relative(side, buckets, heads);
        }
        for (i, layer) in layers.iter().enumerate() {
            let group = weight_group(i, layers.len(), groups);
            if group >= listed {
                let own = match positions_of(model, layer) {
                    Positions::Relative { buckets, shared: false, .. } => Some(*buckets),
                    _ => None,
                };
                self.layer(&format!("{side}.{group}"), layer, own);
                listed = group + 1;
            }
        }
    }

    fn embeddings(&mut self, config: &ModelConfig, resolved: &Resolved, vocab: VocabSizes) {
        let (wide, summed) = (embedding_width(config), summed_width(config));
        let axis = |width: usize| if width == config.d_model { Axis::DModel } else { Axis::Other };
        let table = |rows: usize| Shape::named(&[(Axis::Vocab, rows), (axis(wide), wide)]);
        let project = |list: &mut Self, side: &str| {
            list.linear(&format!("embed.{side}.project"), config.d_model, wide, config.embedding.project_bias, 1);
        };
        let projects = |at: ProjectAt| config.embedding.width.is_some() && config.embedding.project == at;
        if config.embedding.shared {
            let words = if resolved.has_encoder { vocab.source } else { vocab.target };
            self.push("embed.weight".into(), table(words), ParamRole::Embedding, 1);
        }
        for (side, present, words) in
            [("source", resolved.has_encoder, vocab.source), ("target", resolved.has_decoder, vocab.target)]
        {
            if !present {
                continue;
            }
            if !config.embedding.shared {
                self.push(format!("embed.{side}.weight"), table(words), ParamRole::Embedding, 1);
            }
            if projects(ProjectAt::AfterLookup) {
                project(self, side);
            }
            if let Positions::Learned { max_len, .. } = config.positions {
                self.push(
                    format!("embed.{side}.positions.weight"),
                    Shape::named(&[(Axis::Token, max_len), (axis(summed), summed)]),
                    ParamRole::Position,
                    1,
                );
            }
            if config.embedding.token_types > 0 && side == typed_side(config) {
                self.push(
                    format!("embed.{side}.token_types.weight"),
                    Shape::named(&[(Axis::Other, config.embedding.token_types), (axis(summed), summed)]),
                    ParamRole::TokenType,
                    1,
                );
            }
            if config.embedding.norm {
                let shape = Shape::named(&[(Axis::DModel, summed)]);
                self.norm_of(&format!("embed.{side}.norm"), &config.norm, shape);
            }
            if projects(ProjectAt::AfterNorm) {
                project(self, side);
            }
        }
    }

    fn layer(&mut self, path: &str, layer: &ResolvedLayer, own_buckets: Option<usize>) {
        let mut n = 0;
        for (name, present) in [("self_attn", layer.has_attention), ("cross_attn", layer.cross)] {
            if present {
                n += 1;
                let own_buckets = own_buckets.filter(|_| name == "self_attn");
                self.sublayer(path, n, &layer.norm, layer.norm.on_attention, |list| {
                    if let Some(buckets) = own_buckets {
                        list.relative(&format!("{path}.{name}"), buckets, layer.heads);
                    }
                    list.attention(&format!("{path}.{name}"), layer);
                });
            }
        }
        if layer.has_ffn {
            let normed = layer.norm.position != NormPosition::Parallel;
            self.sublayer(path, n + 1, &layer.norm, normed, |list| {
                list.ffn(&format!("{path}.ffn"), layer);
            });
        }
    }

    fn sublayer(&mut self, path: &str, n: usize, norm: &NormConfig, normed: bool, inside: impl FnOnce(&mut Self)) {
        let at = format!("{path}.norm{n}");
        match norm.position {
            NormPosition::Pre | NormPosition::Parallel | NormPosition::ParallelNorms => {
                if normed {
                    self.norm(&at, norm);
                }
                inside(self);
            }
            NormPosition::Sandwich => {
                if normed {
                    self.norm(&at, norm);
                }
                inside(self);
                self.norm(&format!("{path}.post_norm{n}"), norm);
            }
            NormPosition::Post | NormPosition::Output => {
                inside(self);
                self.norm(&at, norm);
            }
        }
    }

    fn norm(&mut self, path: &str, norm: &NormConfig) {
        self.norm_of(path, norm, Shape::named(&[(Axis::DModel, self.d_model)]));
    }

    /// A norm with parameters of this shape; one of two axes has a row for each head.
    fn norm_of(&mut self, path: &str, norm: &NormConfig, shape: Shape) {
        if norm.has_gamma() {
            self.push(format!("{path}.gamma"), shape, ParamRole::Gamma, 1);
        }
        if norm.has_beta() {
            self.push(format!("{path}.beta"), shape, ParamRole::Beta, 1);
        }
    }

    fn linear(&mut self, path: &str, out: usize, width: usize, bias: bool, heads: usize) {
        self.push(
            format!("{path}.weight"),
            Shape::named(&[(Axis::Out, out), (Axis::In, width)]),
            ParamRole::Weight { fan_in: width, fan_out: out },
            heads,
        );
        if bias {
            self.push(
                format!("{path}.bias"),
                Shape::named(&[(Axis::Out, out)]),
                ParamRole::Bias { fan_in: width },
                heads,
            );
        }
    }

    fn attention(&mut self, path: &str, layer: &ResolvedLayer) {
        let d = self.d_model;
        let a = &layer.attention;
        let (h, kv) = (layer.heads, layer.kv_heads);
        let [q_bias, k_bias, v_bias] = a.biases();
        if let Some(c) = &a.latent {
            if let Some(rank) = c.q_rank {
                self.linear(&format!("{path}.q_a"), rank, d, q_bias, 1);
                self.norm_of(&format!("{path}.q_a_norm"), &layer.norm, Shape::named(&[(Axis::DModel, rank)]));
                self.linear(&format!("{path}.q_b"), h * layer.d_k, rank, false, h);
            } else {
                self.linear(&format!("{path}.q"), h * layer.d_k, d, q_bias, h);
            }
            self.linear(&format!("{path}.kv_a"), c.kv_rank + c.rope, d, k_bias, 1);
            self.norm_of(&format!("{path}.kv_a_norm"), &layer.norm, Shape::named(&[(Axis::DModel, c.kv_rank)]));
            let both = h * (layer.d_k.saturating_sub(c.rope) + layer.d_v);
            self.linear(&format!("{path}.kv_b"), both, c.kv_rank, false, h);
            self.sinks_and_out(path, layer);
            return;
        }
        if a.projections {
            self.linear(&format!("{path}.q"), h * layer.d_k, d, q_bias, h);
            self.linear(&format!("{path}.k"), kv * layer.d_k, d, k_bias, kv);
            self.linear(&format!("{path}.v"), kv * layer.d_v, d, v_bias, kv);
        }
        let width = |heads: usize| match a.qk_norm {
            QkNorm::None => None,
            QkNorm::PerHead => Some(Shape::named(&[(Axis::DK, layer.d_k)])),
            QkNorm::PerHeadOwn => Some(Shape::named(&[(Axis::Head, heads), (Axis::DK, layer.d_k)])),
            QkNorm::Full => Some(Shape::named(&[(Axis::DModel, heads * layer.d_k)])),
        };
        for (name, heads) in [("q_norm", h), ("k_norm", kv)] {
            if let Some(shape) = width(heads) {
                self.norm_of(&format!("{path}.{name}"), &layer.qk_norm(), shape);
            }
        }
        self.sinks_and_out(path, layer);
    }

    /// What every attention has after its projections.
    fn sinks_and_out(&mut self, path: &str, layer: &ResolvedLayer) {
        let a = &layer.attention;
        if a.sinks {
            let shape = Shape::named(&[(Axis::Head, layer.heads)]);
            self.push(format!("{path}.sinks"), shape, ParamRole::Bias { fan_in: layer.d_k }, 1);
        }
        if a.out_projection {
            self.linear(&format!("{path}.o"), self.d_model, layer.heads * layer.d_v, a.out_bias, 1);
        }
    }

    /// A table of a relative bias.
    fn relative(&mut self, path: &str, buckets: usize, heads: usize) {
        let shape = Shape::named(&[(Axis::Other, buckets), (Axis::Head, heads)]);
        self.push(format!("{path}.relative.weight"), shape, ParamRole::Position, 1);
    }

    fn ffn(&mut self, path: &str, layer: &ResolvedLayer) {
        let (d, ff, f) = (self.d_model, layer.d_ff, &layer.ffn);
        if let Some(c) = &f.experts {
            for (name, shape, fan_in, bias) in moe::parameters(c, layer, d) {
                let fan_out = shape.dims().iter().rev().nth(1).copied().unwrap_or(1);
                let role = if bias { ParamRole::Bias { fan_in } } else { ParamRole::Weight { fan_in, fan_out } };
                self.push(format!("{path}.{name}"), shape, role, 1);
            }
            return;
        }
        let [w1, v1, w2] = f.biases();
        self.linear(&format!("{path}.w1"), ff, d, w1, 1);
        if f.gated {
            self.linear(&format!("{path}.v1"), ff, d, v1, 1);
        }
        self.linear(&format!("{path}.w2"), d, ff, w2, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::LayerConfig;
    use super::*;

    fn config(text: &str) -> ModelConfig {
        ron::Options::default()
            .with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME)
            .from_str(text)
            .expect("a model configuration")
    }

    fn paths(text: &str) -> Vec<String> {
        let vocab = VocabSizes { source: 24, target: 24 };
        parameters(&config(text), vocab).into_iter().map(|p| p.path).collect()
    }

    #[test]
    fn a_pre_norm_gated_decoder_lists_its_parameters_in_order_of_use() {
        let paths = paths(
            "(d_model: 32, heads: 4, kv_heads: 2, d_ff: 64, norm: (kind: RmsNorm, position: Pre),
              ffn: (activation: Silu, gated: true), output: (tied: true),
              decoder: (layers: [(repeat: 1)], final_norm: true))",
        );
        assert_eq!(
            paths,
            [
                "embed.weight",
                "decoder.0.norm1.gamma",
                "decoder.0.self_attn.q.weight",
                "decoder.0.self_attn.k.weight",
                "decoder.0.self_attn.v.weight",
                "decoder.0.self_attn.o.weight",
                "decoder.0.norm2.gamma",
                "decoder.0.ffn.w1.weight",
                "decoder.0.ffn.v1.weight",
                "decoder.0.ffn.w2.weight",
                "decoder.final_norm.gamma",
            ]
        );
    }

    #[test]
    fn widths_follow_heads_and_a_layer_may_differ() {
        let mut config = config(
            "(d_model: 68, heads: 4, d_k: 20, d_v: 12, d_ff: 272, encoder: (layers: [()]),
              decoder: (layers: [(cross_attention: false), ()]))",
        );
        let shape = |config: &ModelConfig, path: &str| {
            let vocab = VocabSizes { source: 9, target: 9 };
            parameters(config, vocab).into_iter().find(|p| p.path == path).map(|p| p.shape.dims().to_vec())
        };
        assert_eq!(shape(&config, "encoder.0.self_attn.q.weight"), Some(vec![80, 68]));
        assert_eq!(shape(&config, "encoder.0.self_attn.o.weight"), Some(vec![68, 48]));
        assert_eq!(shape(&config, "decoder.0.cross_attn.q.weight"), None);
        assert!(shape(&config, "decoder.1.cross_attn.q.weight").is_some());
        assert!(shape(&config, "decoder.0.norm3.gamma").is_none());
        assert!(shape(&config, "decoder.1.norm3.gamma").is_some());
        config.encoder.as_mut().expect("an encoder").layers =
            vec![LayerConfig { kv_heads: Some(2), ..LayerConfig::default() }];
        assert_eq!(shape(&config, "encoder.0.self_attn.v.weight"), Some(vec![24, 68]));
    }
}
