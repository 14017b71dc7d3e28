//! A model's run as a program: embedding, encoder, decoder, output head, loss.

use super::blocks::{self, Cache, Context, Drop};
use super::config::ModelConfig;
use super::loss::{Loss, Read};
use super::masks::{GivenMask, Hidden, MaskSpec};
use super::norm::norm;
use super::params::{Resolved, ResolvedLayer, VocabSizes, resolve};
use super::{embedding, heads, positions};
use crate::program::composite::{self, Places};
use crate::program::{BuildError, Builder, Constant, NodeId, Program, ScopeKind};
use crate::tensor::{Axis, Shape};

/// Sequences of token ids, all of one length.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
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
    /// Vectors `[batch, token, d_model]` that enter instead of rows of the embedding table.
    pub vectors: Option<Vec<f64>>,
    /// Queries, keys and values of the first attention.
    pub qkv: Option<Qkv>,
}

/// Queries, keys and values as given, each `[batch, token, heads · width]`.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Qkv {
    /// Queries; there are as many as tokens.
    pub q: Vec<f64>,
    /// Keys.
    pub k: Vec<f64>,
    /// Values.
    pub v: Vec<f64>,
    /// Keys of a sequence.
    pub keys: usize,
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

    /// Keys that the first attention over a sequence has: as many as tokens, unless they are given.
    pub fn keys(&self) -> usize {
        self.qkv.as_ref().map_or_else(|| self.tokens(), |g| g.keys)
    }

    /// Whether the embedding table is read.
    pub fn reads_table(&self) -> bool {
        self.vectors.is_none() && self.qkv.is_none()
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
    /// What is minimised.
    pub loss: &'a Loss,
    /// Whether dropout acts.
    pub training: bool,
}

/// The main nodes of a forward pass.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
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

impl Outputs {
    /// Those that there are.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        [self.memory, self.hidden, self.logits, self.probs, self.argmax, self.loss].into_iter().flatten()
    }
}

/// Builds the whole forward pass.
///
/// # Errors
/// Where parts do not fit together; [`super::validate`] finds such things earlier and says them better.
pub fn forward(spec: &Forward<'_>) -> Result<(Program, Outputs), BuildError> {
    let mut m = ModelBuilder::new(spec.config, spec.vocab, spec.training);
    if m.words() > 0 {
        m.vocabulary()?;
    }
    let mut out = m.forward(spec.source, spec.target)?;
    if let (Some(hidden), true) = (out.hidden, spec.training || spec.labels.is_some()) {
        let side = if m.resolved.has_decoder { spec.target } else { spec.source };
        let real = side.and_then(|s| s.real.as_deref());
        let read = Read { output: out.logits.zip(out.probs), hidden, labels: spec.labels, real };
        out.loss = spec.loss.build(&mut m.b, &read)?;
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
    /// Queries, keys and values of the encoder's attention, where they are not computed.
    pub(super) given: Option<[NodeId; 3]>,
}

impl<'a> ModelBuilder<'a> {
    /// Nothing built yet.
    pub fn new(config: &'a ModelConfig, vocab: VocabSizes, training: bool) -> Self {
        Self { b: Builder::new(), config, resolved: resolve(config), vocab, training, given: None }
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

    /// Embeddings, layers and heads over what the encoder and the decoder read.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn forward(
        &mut self,
        source_ids: Option<&Sequences>,
        target_ids: Option<&Sequences>,
    ) -> Result<Outputs, BuildError> {
        let mut out = Outputs::default();
        // Both embeddings come before the layers, as they are written down.
        let source = source_ids.map(|s| self.source_input(s)).transpose()?;
        let target = match target_ids {
            Some(t) if self.resolved.has_decoder => Some(self.target_input(t)?),
            _ => None,
        };
        if let (Some(x), Some(s)) = (source, source_ids) {
            out.memory = Some(self.encoder(x, s)?);
            out.hidden = out.memory;
        }
        if let (Some(x), Some(t)) = (target, target_ids) {
            let memory = out.memory.zip(source_ids);
            out.hidden = Some(self.decoder(x, Some(t), 0, memory, None)?);
        }
        if let Some(hidden) = out.hidden {
            let (pooled, classes) = self.heads(hidden)?;
            (out.pooled, out.classes) = (pooled, classes.map(|c| c.0));
        }
        if let (Some(hidden), false) = (out.hidden, self.config.output.none) {
            let (logits, probs, argmax) = self.output(hidden)?;
            (out.logits, out.probs, out.argmax) = (Some(logits), Some(probs), Some(argmax));
        }
        Ok(out)
    }

    /// Words of the vocabulary that the output speaks.
    fn words(&self) -> usize {
        if self.resolved.has_decoder { self.vocab.target } else { self.vocab.source }
    }

    /// The ids of the vocabulary as a node, `vocabulary.ids`.
    ///
    /// # Errors
    /// Where it is there already.
    pub fn vocabulary(&mut self) -> Result<NodeId, BuildError> {
        let words = self.words();
        let ids: Vec<i64> = (0..words as i64).collect();
        self.b.constant("vocabulary.ids", Shape::named(&[(Axis::Vocab, words)]), Constant::Int(ids.into()))
    }

    /// Ids and embedding of the source.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn source_input(&mut self, s: &Sequences) -> Result<NodeId, BuildError> {
        self.input("source", s)
    }

    fn input(&mut self, side: &str, s: &Sequences) -> Result<NodeId, BuildError> {
        let given = |m: &mut Self, name: &str, tokens: usize, numbers: &[f64]| {
            let width = numbers.len() / (s.batch * tokens).max(1);
            let axes = [(Axis::Batch, s.batch), (Axis::Token, tokens), (Axis::DModel, width)];
            m.b.constant(format!("embed.{side}.{name}"), Shape::named(&axes), Constant::Float(numbers.into()))
        };
        if let Some(all) = &s.qkv {
            let q = given(self, "queries", s.tokens(), &all.q)?;
            let k = given(self, "keys", all.keys, &all.k)?;
            let v = given(self, "values", all.keys, &all.v)?;
            self.given = Some([q, k, v]);
        }
        if let Some(vectors) = &s.vectors {
            let x = given(self, "vectors", s.tokens(), vectors)?;
            let drop = if self.training { self.config.dropout.embedding } else { 0.0 };
            let start = embedding::Start::Vectors(x);
            return embedding::embed(&mut self.b, self.config, self.vocab, (side, start), 0, Some(s), drop);
        }
        if let Some([q, ..]) = self.given.filter(|_| s.qkv.is_some()) {
            // Nothing reads it but its shape: there is no residual then.
            return Ok(q);
        }
        let ids = composite::token_ids(&mut self.b, &format!("embed.{side}.ids"), s.batch, &s.ids)?;
        self.embed(side, ids, 0, Some(s))
    }

    /// Ids and embedding of the target.
    ///
    /// # Errors
    /// Where parts do not fit.
    pub fn target_input(&mut self, t: &Sequences) -> Result<NodeId, BuildError> {
        self.input("target", t)
    }

    /// Embedding of `ids [batch, token]` whose first token is at position `first`; `of` are the sequences, where
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
        embedding::embed(&mut self.b, self.config, self.vocab, (side, embedding::Start::Ids(ids)), first, of, drop)
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
        let masks = own_masks(&layers, Some(s), s.batch, s.tokens(), 0, s.keys());
        let places = Places::of(Some(s), 0, s.tokens());
        self.stack("encoder", &layers, x, (&masks, places), None, None)
    }

    /// The decoder over `x`, whose first token is at position `first`; with a cache, `x` holds the new tokens only.
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
        let given = self.given.filter(|_| side == "encoder");
        self.b.scope(side, ScopeKind::Stack, |b| {
            // The tables of positions are listed once, before the layers.
            let positions = positions::of_layers(b, side, &config.positions, layers, places)?;
            let ctx = Context {
                d_model,
                first: match places {
                    Places::From { first, .. } => first,
                    Places::Rows { .. } => 0,
                },
                residual_multiplier: config.residual_multiplier,
                positions: &positions,
                drop,
                own_masks,
                memory: memory.map(|m| m.0),
                cross_masks: memory.map_or(&[], |m| m.1),
                given,
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
