//! A model's run as a program: embedding, encoder, decoder, output head, loss.

use super::blocks::{self, Cache, Context, Drop, Rotation};
use super::config::{ModelConfig, PairLayout, Positions};
use super::masks::{GivenMask, Hidden, MaskSpec};
use super::params::{Resolved, ResolvedLayer, VocabSizes, embedding_path, resolve, typed_side};
use crate::program::composite::{self, Shift};
use crate::program::{Affine, Binary, BuildError, Builder, Constant, NodeId, Pick, Program, ScopeKind};
use crate::tensor::{Axis, Shape};

/// Sequences of token ids, all of one length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequences {
    /// `[batch, token]`.
    pub ids: Vec<i64>,
    /// How many.
    pub batch: usize,
    /// `[batch, token]`, false where a token is padding; `None`: there is no padding.
    pub real: Option<Vec<bool>>,
    /// A mask given by the scenario.
    pub given: Option<GivenMask>,
    /// Token types, `[batch, token]`; zeros unless given.
    pub types: Option<Vec<i64>>,
}

impl Sequences {
    /// One sequence without padding.
    pub fn one(ids: Vec<i64>) -> Self {
        Self { ids, batch: 1, ..Self::default() }
    }

    /// Tokens a sequence.
    pub fn tokens(&self) -> usize {
        self.ids.len() / self.batch.max(1)
    }
}

/// What a forward pass reads.
#[derive(Clone, Debug)]
pub struct Forward<'a> {
    /// The model.
    pub config: &'a ModelConfig,
    /// Sizes of the vocabularies.
    pub vocab: VocabSizes,
    /// Input of the encoder.
    pub source: Option<&'a Sequences>,
    /// Input of the decoder.
    pub target: Option<&'a Sequences>,
    /// What each target position must predict, `[batch, token]`; negative where it does not count.
    pub labels: Option<&'a [i64]>,
    /// Whether dropout acts.
    pub training: bool,
}

/// The main nodes of a forward pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outputs {
    /// Output of the encoder, `[batch, token, d_model]`.
    pub memory: Option<NodeId>,
    /// Last hidden states of the stack that the head reads.
    pub hidden: Option<NodeId>,
    /// Logits, `[batch, token, vocab]`.
    pub logits: Option<NodeId>,
    /// Their softmax.
    pub probs: Option<NodeId>,
    /// Greedy choices, `[batch, token]`.
    pub argmax: Option<NodeId>,
    /// Mean loss.
    pub loss: Option<NodeId>,
}

/// Builds the whole forward pass.
///
/// # Errors
/// Where parts do not fit together; [`super::validate`] finds such things earlier and says them better.
pub fn forward(spec: &Forward<'_>) -> Result<(Program, Outputs), BuildError> {
    let mut m = ModelBuilder::new(spec.config, spec.vocab, spec.training);
    m.vocabulary()?;
    let mut out = Outputs::default();
    // Both embeddings come before the layers, as a person writes them down.
    let source = spec.source.map(|s| m.source_input(s)).transpose()?;
    let target = match spec.target {
        Some(t) if m.resolved.has_decoder => Some(m.target_input(t)?),
        _ => None,
    };
    if let (Some(x), Some(s)) = (source, spec.source) {
        out.memory = Some(m.encoder(x, s)?);
        out.hidden = out.memory;
    }
    if let (Some(x), Some(t)) = (target, spec.target) {
        let memory = out.memory.zip(spec.source);
        out.hidden = Some(m.decoder(x, Some(t), 0, memory, None)?);
    }
    if let (Some(hidden), false) = (out.hidden, spec.config.output.none) {
        let (logits, probs, argmax) = m.output(hidden)?;
        (out.logits, out.probs, out.argmax) = (Some(logits), Some(probs), Some(argmax));
        if let Some(labels) = spec.labels {
            out.loss = Some(composite::cross_entropy(&mut m.b, "loss", logits, probs, labels)?);
        }
    }
    Ok((m.b.finish(), out))
}

/// Builds parts of a model into one program.
#[derive(Debug)]
pub struct ModelBuilder<'a> {
    /// The program so far.
    pub b: Builder,
    /// The model.
    pub config: &'a ModelConfig,
    /// The model with every layer written out.
    pub resolved: Resolved,
    vocab: VocabSizes,
    training: bool,
}

impl<'a> ModelBuilder<'a> {
    /// Nothing built yet.
    pub fn new(config: &'a ModelConfig, vocab: VocabSizes, training: bool) -> Self {
        Self { b: Builder::new(), config, resolved: resolve(config), vocab, training }
    }

    /// Builds inside a scope.
    ///
    /// # Errors
    /// Those of `build`.
    pub fn within<R>(
        &mut self,
        name: &str,
        kind: ScopeKind,
        build: impl FnOnce(&mut Self) -> Result<R, BuildError>,
    ) -> Result<R, BuildError> {
        let scope = self.b.enter(name, kind);
        let built = build(self);
        self.b.leave(scope);
        built
    }

    /// The ids of the vocabulary as a node, `vocabulary.ids`.
    ///
    /// # Errors
    /// Where it is there already.
    pub fn vocabulary(&mut self) -> Result<NodeId, BuildError> {
        let words = if self.resolved.has_decoder { self.vocab.target } else { self.vocab.source };
        let ids: Vec<i64> = (0..words as i64).collect();
        self.b.constant("vocabulary.ids", Shape::named(&[(Axis::Vocab, words)]), Constant::Int(ids.into()))
    }

    /// Ids and embedding of the source.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn source_input(&mut self, s: &Sequences) -> Result<NodeId, BuildError> {
        let ids = composite::token_ids(&mut self.b, "embed.source.ids", s.batch, &s.ids)?;
        self.embed("source", ids, 0, s.types.as_deref())
    }

    /// Ids and embedding of the target.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn target_input(&mut self, t: &Sequences) -> Result<NodeId, BuildError> {
        let ids = composite::token_ids(&mut self.b, "embed.target.ids", t.batch, &t.ids)?;
        self.embed("target", ids, 0, t.types.as_deref())
    }

    /// Embedding of `ids [batch, token]` whose first token stands at position `first`.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn embed(
        &mut self,
        side: &str,
        ids: NodeId,
        first: usize,
        types: Option<&[i64]>,
    ) -> Result<NodeId, BuildError> {
        let config = self.config;
        let d = config.d_model;
        let words = if side == "source" { self.vocab.source } else { self.vocab.target };
        let table = Shape::named(&[(Axis::Vocab, words), (Axis::DModel, d)]);
        let weight = self.b.parameter(&embedding_path(config, side), table)?;
        let base = format!("embed.{side}");
        let drop = if self.training { config.dropout.embedding } else { 0.0 };
        self.b.scope(&base, ScopeKind::Embedding, |b| {
            let s = b.shape(ids);
            let tokens = s.dims()[1];
            let mut x = b.gather("lookup", Pick::Rows, weight, ids)?;
            if config.embedding.scale {
                x = b.affine("scaled", Affine::Mul((d as f64).sqrt()), x)?;
            }
            let typed = config.embedding.token_types > 0 && side == typed_side(config);
            if typed {
                let rows = config.embedding.token_types;
                let path = format!("{base}.token_types.weight");
                let table = b.parameter(&path, Shape::named(&[(Axis::Other, rows), (Axis::DModel, d)]))?;
                let types = types.map_or_else(|| vec![0; s.len()], <[i64]>::to_vec);
                let types = b.constant("token_type_ids", s, Constant::Int(types.into()))?;
                let rows = b.gather("token_types", Pick::Rows, table, types)?;
                x = b.binary("typed", Binary::Add, x, rows)?;
            }
            let after = config.embedding.norm || drop > 0.0;
            let sum = if after { "summed" } else { "out" };
            let table_at = |b: &mut Builder, max_len: usize| {
                let path = format!("{base}.positions.weight");
                let table = b.parameter(&path, Shape::named(&[(Axis::Token, max_len), (Axis::DModel, d)]))?;
                let ids: Vec<i64> = (first as i64..(first + tokens) as i64).collect();
                let ids =
                    b.constant("positions.ids", Shape::named(&[(Axis::Token, tokens)]), Constant::Int(ids.into()))?;
                b.gather("positions", Pick::Rows, table, ids)
            };
            x = match config.positions {
                Positions::Sinusoidal { layout, base } => {
                    let interleaved = layout == PairLayout::Interleaved;
                    let p = composite::sinusoidal(b, "positions", tokens, first, d, base, interleaved)?;
                    b.binary(sum, Binary::Add, x, p)?
                }
                Positions::Learned { max_len } => {
                    let p = table_at(b, max_len)?;
                    b.binary(sum, Binary::Add, x, p)?
                }
                Positions::None | Positions::Rotary { .. } if after => x,
                Positions::None | Positions::Rotary { .. } => b.reshape("out", x, b.shape(x))?,
            };
            if config.embedding.norm {
                x = blocks::norm(b, "norm", &format!("{base}.norm"), x, &config.norm)?;
            }
            x = blocks::dropout(b, "dropped", x, drop, config.dropout.seed)?;
            if after { b.reshape("out", x, b.shape(x)) } else { Ok(x) }
        })
    }

    fn drop(&self) -> Drop {
        if !self.training {
            return Drop::default();
        }
        let d = &self.config.dropout;
        Drop { attention: d.attention, sublayer: d.sublayer, ffn: d.ffn, seed: d.seed }
    }

    /// The encoder over `x`.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn encoder(&mut self, x: NodeId, s: &Sequences) -> Result<NodeId, BuildError> {
        let layers = self.resolved.encoder.clone();
        let masks = own_masks(&layers, Some(s), s.batch, s.tokens(), 0, s.tokens());
        self.stack("encoder", &layers, x, (&masks, 0), None, None)
    }

    /// The decoder over `x`, whose first token stands at position `first`; with a cache, `x` holds the new tokens only.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn decoder(
        &mut self,
        x: NodeId,
        target: Option<&Sequences>,
        first: usize,
        memory: Option<(NodeId, &Sequences)>,
        cache: Option<&mut Cache>,
    ) -> Result<NodeId, BuildError> {
        let layers = self.resolved.decoder.clone();
        let s = self.b.shape(x);
        let (batch, queries) = (s.dims()[0], s.dims()[1]);
        let masks = own_masks(&layers, target, batch, queries, first, first + queries);
        let cross: Vec<Option<MaskSpec>> = layers
            .iter()
            .map(|_| {
                let (_, source) = memory?;
                let hidden = Hidden {
                    padding: source.real.as_deref(),
                    // A mask that is each source token's own says nothing of the queries of the target.
                    given: source.given.as_ref().filter(|g| g.queries == 1),
                    ..Hidden::default()
                };
                // One sentence may be read by several beams: the mask is then theirs together.
                hidden.mask(source.batch, queries, first, source.tokens())
            })
            .collect();
        self.stack("decoder", &layers, x, (&masks, first), memory.map(|m| (m.0, cross.as_slice())), cache)
    }

    fn stack(
        &mut self,
        side: &str,
        layers: &[ResolvedLayer],
        x: NodeId,
        (own_masks, first): (&[Option<MaskSpec>], usize),
        memory: Option<(NodeId, &[Option<MaskSpec>])>,
        cache: Option<&mut Cache>,
    ) -> Result<NodeId, BuildError> {
        let tokens = self.b.shape(x).dims()[1];
        let (d_model, drop) = (self.config.d_model, self.drop());
        let final_norm = match side {
            "encoder" => self.resolved.encoder_final_norm,
            _ => self.resolved.decoder_final_norm,
        };
        let config = self.config;
        self.b.scope(side, ScopeKind::Stack, |b| {
            let ctx = Context {
                d_model,
                // The tables of rotary positions stand once, before the layers.
                rotation: rotation(b, &config.positions, tokens, first, layers)?,
                drop,
                own_masks,
                memory: memory.map(|m| m.0),
                cross_masks: memory.map_or(&[], |m| m.1),
            };
            let x = blocks::stack(b, side, layers, x, &ctx, cache)?;
            if final_norm {
                blocks::norm(b, "final_norm", &format!("{side}.final_norm"), x, &config.norm)
            } else {
                Ok(x)
            }
        })
    }

    /// Logits `[batch, token, vocab]`, their softmax, and the greedy choice.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn output(&mut self, hidden: NodeId) -> Result<(NodeId, NodeId, NodeId), BuildError> {
        let config = self.config;
        let side = if self.resolved.has_decoder { "target" } else { "source" };
        let words = if side == "target" { self.vocab.target } else { self.vocab.source };
        let table = Shape::named(&[(Axis::Vocab, words), (Axis::DModel, config.d_model)]);
        let path = if config.output.tied { embedding_path(config, side) } else { "output.weight".to_owned() };
        let weight = self.b.parameter(&path, table)?;
        let bias = config
            .output
            .bias
            .then(|| self.b.parameter("output.bias", Shape::named(&[(Axis::Vocab, words)])))
            .transpose()?;
        self.b.scope("output", ScopeKind::Output, |b| {
            let logits = composite::linear(b, "logits", hidden, weight, bias, Axis::Vocab)?;
            let probs = composite::softmax(b, "probs", logits, Shift::WhenNeeded, false)?;
            let (argmax, _) = composite::predict(b, probs)?;
            Ok((logits, probs, argmax))
        })
    }

    /// Decoding call `i` over `tokens [1, token]`; with a cache, over those from `first` on. The probabilities.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn call(
        &mut self,
        i: usize,
        tokens: NodeId,
        first: usize,
        memory: Option<(NodeId, &Sequences)>,
        cache: Option<&mut Cache>,
    ) -> Result<NodeId, BuildError> {
        self.within(&format!("gen.{i}"), ScopeKind::Generation, |m| {
            let s = m.b.shape(tokens);
            let ids = if first == 0 {
                m.b.reshape("embed.target.ids", tokens, s)?
            } else {
                m.b.slice("embed.target.ids", tokens, 1, first, s.dims()[1] - first)?
            };
            let x = m.embed("target", ids, first, None)?;
            let hidden = m.decoder(x, None, first, memory, cache)?;
            Ok(m.output(hidden)?.1)
        })
    }
}

fn rotation(
    b: &mut Builder,
    positions: &Positions,
    tokens: usize,
    first: usize,
    layers: &[ResolvedLayer],
) -> Result<Option<Rotation>, BuildError> {
    let Positions::Rotary { layout, base, dim } = *positions else {
        return Ok(None);
    };
    let width = dim.unwrap_or_else(|| layers.first().map_or(0, |l| l.d_k));
    b.scope("rotary", ScopeKind::Group, |b| {
        let (sin, cos) = composite::waves(b, tokens, first, width, base)?;
        Ok(Some(Rotation { sin, cos, dim, interleaved: layout == PairLayout::Interleaved }))
    })
}

fn own_masks(
    layers: &[ResolvedLayer],
    sequences: Option<&Sequences>,
    batch: usize,
    queries: usize,
    first: usize,
    keys: usize,
) -> Vec<Option<MaskSpec>> {
    layers
        .iter()
        .map(|l| {
            let hidden = Hidden {
                padding: sequences.and_then(|s| s.real.as_deref()),
                given: sequences.and_then(|s| s.given.as_ref()),
                ..Hidden::of(l)
            };
            hidden.mask(batch, queries, first, keys)
        })
        .collect()
}
