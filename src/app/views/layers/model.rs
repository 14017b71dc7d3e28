//! The residual stream: which tensors it goes through, how large the rows of the tokens are there and how far they
//! turned; the heads of all layers.

use std::sync::Arc;

use crate::app::navigator::{Navigator, TableModel};
use crate::app::row_facts::RowFacts;
use crate::app::views::heads::tables_of;
use crate::program::{Block, Name, NodeId, OnStream, Role, Side, Site, Stack};
use crate::tensor::Axis;
use crate::text::{Lang, Msg};

/// A stage of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its tensor, `[batch, token, d_model]`.
    pub node: NodeId,
    /// Its path.
    pub path: String,
    /// The stage before it in the same stack, of the same shape.
    pub before: Option<NodeId>,
}

/// The stream of one stack, of the decoding call one is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Run.
    pub run: usize,
    /// Whose tokens.
    pub side: Side,
    /// The sums and the norms, in order.
    pub stages: Vec<Stage>,
    /// The last one at or before the place one is at, where one is in this stack.
    pub cursor: Option<usize>,
    /// Which sentence, and how many there are.
    pub batch: (usize, usize),
    /// Tokens of it.
    pub tokens: usize,
}

impl Stream {
    /// The streams around the place one is at: that of the source, then that of the target; none where the run has none.
    pub fn all(nav: &Navigator) -> Vec<Self> {
        let Some(view) = nav.view() else { return Vec::new() };
        let program = &nav.session.runs[view.run].program;
        let here = &program.node(view.node).name;
        // What belongs to no stack (the output, the loss) comes after the last one.
        let of_here = here.site.side().unwrap_or_else(|| nav.session.spoken());
        let sides = [Side::Source, Side::Target].into_iter();
        let streams = sides.map(|side| {
            let mut stages: Vec<Stage> = Vec::new();
            for (id, node) in program.nodes() {
                let name = &node.name;
                let of_call = name.call.is_none_or(|of| here.call == Some(of));
                let stage = name.on_stream().is_some_and(|of| match of {
                    OnStream::Scaled | OnStream::Added => false,
                    OnStream::Embedding
                    | OnStream::EmbeddingNorm
                    | OnStream::Residual(_)
                    | OnStream::Norm(_)
                    | OnStream::FinalNorm => true,
                });
                if stage && of_call && name.site.side() == Some(side) {
                    let same = |s: &&Stage| program.node(s.node).shape.same_dims(&node.shape);
                    let before = stages.last().filter(same).map(|s| s.node);
                    stages.push(Stage { node: id, path: node.path.to_string(), before });
                }
            }
            let cursor = stages.iter().rposition(|s| s.node <= view.node).filter(|_| side == of_here);
            let shape = stages.first().map(|s| program.node(s.node).shape);
            let at = |axis: Axis| {
                let d = |s: &crate::tensor::Shape| s.axes().iter().position(|a| *a == axis).map(|d| s.dims()[d]);
                shape.as_ref().and_then(d).unwrap_or(1)
            };
            let (batches, tokens) = (at(Axis::Batch), at(Axis::Token));
            let batch = (nav.batch().min(batches.saturating_sub(1)), batches);
            Self { run: view.run, side, stages, cursor, batch, tokens }
        });
        streams.filter(|s| !s.stages.is_empty()).collect()
    }

    /// Norms and cosines of a stage; `None` while its cells are being read.
    pub fn facts(&self, nav: &Navigator, stage: &Stage) -> Option<Arc<RowFacts>> {
        nav.numbers.measures.rows(nav.origin(self.run, stage.node), stage.before)
    }

    /// The rows of the sentence among those of all.
    pub fn rows(&self) -> std::ops::Range<usize> {
        self.batch.0 * self.tokens..(self.batch.0 + 1) * self.tokens
    }

    /// The token at a position. Untrusted.
    pub fn token(&self, nav: &Navigator, at: usize) -> String {
        let node = self.stages[0].node;
        let shape = nav.session.runs[self.run].program.node(node).shape;
        let axis = shape.axes().iter().position(|a| *a == Axis::Token);
        let labels = axis.map(|axis| nav.session.axis_labels(self.run, node, axis, self.batch.0));
        labels.and_then(|l| l.get(at)).unwrap_or_else(|| at.to_string())
    }
}

/// The attention weights of all heads of all layers of the stack one is in: a list of heads for each layer.
pub fn all_heads(nav: &Navigator, lang: Lang) -> Vec<Vec<TableModel>> {
    let Some(here) = nav.view() else { return Vec::new() };
    let run = here.run;
    let program = &nav.session.runs[run].program;
    let name = &program.node(here.node).name;
    let stack = match name.site {
        Site::Output | Site::Loss => Stack::Decoder,
        site => site.stack().unwrap_or(Stack::Encoder),
    };
    let attention = match name.site.block() {
        Some(Block::CrossAttention) => Block::CrossAttention,
        Some(Block::Layer | Block::SelfAttention | Block::FeedForward | Block::Norm(_) | Block::PostNorm(_)) | None => {
            Block::SelfAttention
        }
    };
    let find = |stack: Stack, layer: u32| {
        let weights = Name::of(Site::Layer(stack, layer, attention)).then(Role::Weights);
        program.named(&Name { call: name.call, ..weights.clone() }).or_else(|| program.named(&weights))
    };
    let other = if stack == Stack::Encoder { Stack::Decoder } else { Stack::Encoder };
    // Layers may have no attention of this kind.
    let layers = |stack: Stack| {
        let of_stack = program.nodes().filter_map(|(_, n)| n.name.site.layer()).filter(|(s, _)| *s == stack);
        let count = of_stack.map(|(_, layer)| layer + 1).max().unwrap_or(0);
        (0..count).filter_map(move |layer| Some((layer, find(stack, layer)?))).collect::<Vec<_>>()
    };
    let stack = if layers(stack).is_empty() { other } else { stack };
    layers(stack)
        .into_iter()
        .map(|(layer, node)| {
            let symbol =
                |head: usize| Msg::new("tui.layer_head").arg("layer", layer + 1).arg("head", head + 1).render(lang);
            tables_of(nav, run, node, symbol)
        })
        .collect()
}
