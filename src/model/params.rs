//! The settings of every layer, and the parameters of a model: what the program that its blocks build declares.

use super::build::{ModelBuilder, Sequences};
use super::config::{AttentionConfig, FfnConfig, ModelConfig, NormConfig, Positions, StackConfig};
use super::positions::positions_of;
use crate::program::{BuildError, Builder, Constant, NodeId, Program, Site, Stack};
pub use crate::program::{ParamRole, ParamSpec};
use crate::tensor::{Axis, Shape};

/// Sizes of the two vocabularies. A model with one side reads only that side's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VocabSizes {
    /// Words the encoder may read.
    pub source: usize,
    /// Words the decoder may read and write.
    pub target: usize,
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

/// Every parameter of a model, in the order in which its blocks declare them: those of the program of one token.
///
/// # Errors
/// Where the parts of the model do not fit together. Call [`super::validate::validate`] first: it says so better, and
/// refuses what is too large to build.
pub fn parameters(config: &ModelConfig, vocab: VocabSizes) -> Result<Vec<ParamSpec>, BuildError> {
    Ok(one_token(config, vocab)?.parameters().collect())
}

/// The program of one token with one layer of each group: sizes are read from it before anything large is built.
#[derive(Debug)]
pub struct Outline<'a> {
    config: &'a ModelConfig,
    /// The program.
    pub program: Program,
    /// Its layers.
    pub resolved: Resolved,
}

impl<'a> Outline<'a> {
    /// Builds it.
    ///
    /// # Errors
    /// Where the parts of the model do not fit together.
    pub fn new(config: &'a ModelConfig, vocab: VocabSizes) -> Result<Self, BuildError> {
        let mut once = config.clone();
        for stack in [&mut once.encoder, &mut once.decoder].into_iter().flatten() {
            stack.weight_groups = None;
            stack.layers.iter_mut().for_each(|l| l.repeat = 1);
        }
        Ok(Self { config, program: one_token(&once, vocab)?, resolved: resolve(&once) })
    }

    /// The layer of a site, and how often the whole model has it; `None` outside layers.
    pub fn layer(&self, site: Site) -> Option<(&ResolvedLayer, u128)> {
        let Site::Layer(stack, i, _) = site else { return None };
        let (given, resolved) = match stack {
            Stack::Encoder => (&self.config.encoder, &self.resolved.encoder),
            Stack::Decoder => (&self.config.decoder, &self.resolved.decoder),
        };
        let repeat = given.as_ref()?.layers.get(i as usize)?.repeat;
        Some((resolved.get(i as usize)?, repeat as u128))
    }
}

fn one_token(config: &ModelConfig, vocab: VocabSizes) -> Result<Program, BuildError> {
    let mut model = ModelBuilder::new(config, vocab, false);
    let token = Sequences::one(vec![0]);
    let side = |present: bool| present.then_some(&token);
    // Attention without projections reads queries, keys and values as wide as it wants them.
    if let Some(l) = model.resolved.encoder.first().filter(|l| l.has_attention && !l.attention.projections) {
        let mut given = |name: &str, width: usize| {
            let shape = Shape::named(&[(Axis::Batch, 1), (Axis::Token, 1), (Axis::DModel, width)]);
            model.b.constant(format!("embed.source.{name}"), shape, Constant::Filled(0.0))
        };
        let (q, k, v) = (l.heads * l.d_k, l.kv_heads * l.d_k, l.kv_heads * l.d_v);
        model.given = Some([given("queries", q)?, given("keys", k)?, given("values", v)?]);
    }
    model.forward(side(config.encoder.is_some()), side(config.decoder.is_some()))?;
    Ok(model.b.finish())
}

/// `W [out, in]` and, where there is one, `b [out]` of a dense layer with its parameters at `base`; `out` is the rows of so many heads.
pub(super) fn dense(
    b: &mut Builder,
    base: &str,
    (out, width): (usize, usize),
    bias: bool,
    heads: usize,
) -> Result<(NodeId, Option<NodeId>), BuildError> {
    let shape = Shape::named(&[(Axis::Out, out), (Axis::In, width)]);
    let weight = b.declare(format!("{base}.weight"), shape, ParamRole::weight(shape), heads)?;
    let mut bias_of = |shape| b.declare(format!("{base}.bias"), shape, ParamRole::Bias { fan_in: width }, heads);
    let bias = bias.then(|| bias_of(Shape::named(&[(Axis::Out, out)]))).transpose()?;
    Ok((weight, bias))
}

/// Path of the token table that `side` (`source` or `target`) reads.
pub fn embedding_path(config: &ModelConfig, side: &str) -> String {
    if config.embedding.shared { "embed.weight".to_owned() } else { format!("embed.{side}.weight") }
}

/// The side whose tokens carry types: the source, or the target of a model that is only a decoder.
pub fn typed_side(config: &ModelConfig) -> &'static str {
    if config.encoder.is_some() { "source" } else { "target" }
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
        parameters(&config(text), vocab).expect("a model").into_iter().map(|p| p.path).collect()
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
            parameters(config, vocab)
                .expect("a model")
                .into_iter()
                .find(|p| p.path == path)
                .map(|p| p.shape.dims().to_vec())
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
