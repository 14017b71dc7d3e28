//! A model's run as a program: embedding, encoder, decoder, output head, loss.

use super::blocks::{self, Cache, Context, Drop, Rotation};
use super::config::{ModelConfig, PairLayout, Positions};
use super::masks::{GivenMask, Hidden, MaskSpec};
use super::norm::norm;
use super::params::{Resolved, ResolvedLayer, VocabSizes, resolve};
use super::{embedding, heads};
use crate::program::composite::{self, Places};
use crate::program::{BuildError, Builder, Constant, NodeId, Program, ScopeKind};
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
    /// What cross-attention sees of these, in place of what `real` and `given` hide from it.
    pub cross: Option<GivenMask>,
    /// Positions, `[batch, token]`; counted from 0 unless given.
    pub positions: Option<Vec<i64>>,
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
    /// The pooler's output, `[batch, d_model]`.
    pub pooled: Option<NodeId>,
    /// Logits of the classifier, `[batch, label]` or `[batch, token, label]`.
    pub classes: Option<NodeId>,
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
    if let Some(hidden) = out.hidden {
        let (pooled, classes) = m.heads(hidden)?;
        (out.pooled, out.classes) = (pooled, classes.map(|c| c.0));
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
        self.embed("source", ids, 0, Some(s))
    }

    /// Ids and embedding of the target.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn target_input(&mut self, t: &Sequences) -> Result<NodeId, BuildError> {
        let ids = composite::token_ids(&mut self.b, "embed.target.ids", t.batch, &t.ids)?;
        self.embed("target", ids, 0, Some(t))
    }

    /// Embedding of `ids [batch, token]` whose first token stands at position `first`; `of` are the sequences, where
    /// they are known.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn embed(
        &mut self,
        side: &str,
        ids: NodeId,
        first: usize,
        of: Option<&Sequences>,
    ) -> Result<NodeId, BuildError> {
        let drop = if self.training { self.config.dropout.embedding } else { 0.0 };
        embedding::embed(&mut self.b, self.config, self.vocab, (side, ids), first, of, drop)
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
        let places = Places::of(Some(s), 0, s.tokens());
        self.stack("encoder", &layers, x, (&masks, places), None, None)
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
                let hidden = match &source.cross {
                    Some(own) => Hidden { given: Some(own), ..Hidden::default() },
                    None => Hidden {
                        padding: source.real.as_deref(),
                        // A mask that is each source token's own says nothing of the queries of the target.
                        given: source.given.as_ref().filter(|g| !g.per_query),
                        ..Hidden::default()
                    },
                };
                // One sentence may be read by several beams: the mask is then theirs together.
                hidden.mask(source.batch, queries, first, source.tokens())
            })
            .collect();
        let places = Places::of(target, first, queries);
        self.stack("decoder", &layers, x, (&masks, places), memory.map(|m| (m.0, cross.as_slice())), cache)
    }

    fn stack(
        &mut self,
        side: &str,
        layers: &[ResolvedLayer],
        x: NodeId,
        (own_masks, places): (&[Option<MaskSpec>], Places<'_>),
        memory: Option<(NodeId, &[Option<MaskSpec>])>,
        cache: Option<&mut Cache>,
    ) -> Result<NodeId, BuildError> {
        let (d_model, drop) = (self.config.d_model, self.drop());
        let (final_norm, groups) = match side {
            "encoder" => (self.resolved.encoder_final_norm, self.resolved.encoder_groups),
            _ => (self.resolved.decoder_final_norm, self.resolved.decoder_groups),
        };
        let config = self.config;
        self.b.scope(side, ScopeKind::Stack, |b| {
            let ctx = Context {
                d_model,
                residual_multiplier: config.residual_multiplier,
                // The tables of rotary positions stand once, before the layers.
                rotation: rotation(b, &config.positions, places, layers)?,
                drop,
                own_masks,
                memory: memory.map(|m| m.0),
                cross_masks: memory.map_or(&[], |m| m.1),
            };
            let x = blocks::stack(b, side, layers, groups, x, &ctx, cache)?;
            if final_norm { norm(b, "final_norm", &format!("{side}.final_norm"), x, &config.norm) } else { Ok(x) }
        })
    }

    /// Logits `[batch, token, vocab]`, their softmax, and the greedy choice.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn output(&mut self, hidden: NodeId) -> Result<(NodeId, NodeId, NodeId), BuildError> {
        let side = if self.resolved.has_decoder { "target" } else { "source" };
        heads::output(&mut self.b, self.config, side, self.vocab, hidden)
    }

    /// Pooler and classifier over the last hidden states, where the model has them: the pooler's output, and the
    /// classifier's logits and their softmax.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn heads(&mut self, hidden: NodeId) -> Result<(Option<NodeId>, Option<(NodeId, NodeId)>), BuildError> {
        let config = self.config;
        let pooled = config.pooler.as_ref().map(|p| heads::pooler(&mut self.b, p, hidden)).transpose()?;
        let classes = config.classifier.as_ref();
        let classes = classes.map(|c| heads::classifier(&mut self.b, c, hidden, pooled)).transpose()?;
        Ok((pooled, classes))
    }

    /// Decoding call `i` over `tokens [batch, token]`; with a cache, over those from `first` on. `of` says what of them is
    /// real and where it is, where that differs between sequences. The probabilities.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn call(
        &mut self,
        i: usize,
        tokens: NodeId,
        first: usize,
        of: Option<&Sequences>,
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
            let x = m.embed("target", ids, first, of)?;
            let hidden = m.decoder(x, of, first, memory, cache)?;
            Ok(m.output(hidden)?.1)
        })
    }
}

impl<'a> Places<'a> {
    /// Those that `sequences` gives, else `tokens` from `first` on.
    pub(super) fn of(sequences: Option<&'a Sequences>, first: usize, tokens: usize) -> Self {
        match sequences {
            Some(Sequences { positions: Some(ids), batch, .. }) => Places::Rows { ids, batch: *batch, heads: false },
            _ => Places::From { first, tokens },
        }
    }
}

fn rotation(
    b: &mut Builder,
    positions: &Positions,
    places: Places<'_>,
    layers: &[ResolvedLayer],
) -> Result<Option<Rotation>, BuildError> {
    let Positions::Rotary { layout, base, dim } = *positions else {
        return Ok(None);
    };
    let width = dim.unwrap_or_else(|| layers.first().map_or(0, |l| l.d_k));
    b.scope("rotary", ScopeKind::Group, |b| {
        let (sin, cos) = composite::waves(b, places.under_heads(), width, base)?;
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
