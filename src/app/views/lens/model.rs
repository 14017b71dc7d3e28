//! Which stages the lens looks at, and what it sees.

use std::sync::Arc;

use crate::app::lens_table::{LensTable, Way};
use crate::app::navigator::Navigator;
use crate::program::{Name, NodeId, OnStream, Program, Role, Side, Site};
use crate::tensor::Axis;
use crate::text::{Lang, Msg, tr};
use crate::trace::between;

/// Layers up to which the stage after each sublayer is shown, not only that after the layer.
const SUBLAYERS: usize = 8;

/// A stage of the residual stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its tensor.
    pub node: NodeId,
    /// Layer and sublayer, both counted from 0 and 1; `None` for the embedding.
    pub after: Option<(u32, u32)>,
    /// Sublayers of its layer.
    pub sublayers: u32,
}

impl Stage {
    /// `embedding`, `L1 attn`, `L1 ffn`; `L1` where only whole layers are shown.
    pub fn name(&self, lang: Lang) -> String {
        let Some((layer, sub)) = self.after else { return tr(lang, "tui.lens.embedding").to_owned() };
        let key = match sub {
            _ if self.sublayers == 1 => "tui.lens.layer",
            1 => "tui.lens.attention",
            sub if sub == self.sublayers => "tui.lens.ffn",
            _ => "tui.lens.cross",
        };
        Msg::new(key).arg("layer", layer + 1).render(lang)
    }
}

/// What the lens shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lens {
    /// Run.
    pub run: usize,
    /// The tensor of probabilities (or logits).
    pub head: NodeId,
    /// Stages, in order.
    pub stages: Vec<Stage>,
    /// What they take the place of.
    way: Way,
    /// Which sentence, and how many there are.
    pub batch: (usize, usize),
    /// Positions of the sentence.
    pub tokens: usize,
}

impl Lens {
    /// At the place one is at; `None` where the run has no output head.
    pub fn of(nav: &Navigator) -> Option<Self> {
        let here = nav.run_here();
        let mut runs = std::iter::once(here).chain((0..nav.session.runs.len()).filter(move |r| *r != here));
        runs.find_map(|run| Self::of_run(nav, run))
    }

    fn of_run(nav: &Navigator, run: usize) -> Option<Self> {
        let program = &nav.session.runs[run].program;
        let call = nav.view().filter(|v| v.run == run).and_then(|v| program.node(v.node).name.call);
        let named = |role: Role, call| program.named(&Name { call, ..Name::of(Site::Output).then(role) });
        let find = |role: &Role| [call, None, Some(0)].into_iter().find_map(|call| named(role.clone(), call));
        let probs = find(&Role::Probs);
        let head = probs.or_else(|| find(&Role::Logits))?;
        let shape = program.node(head).shape;
        let stages = stages(program, head, nav.session.spoken());
        // What the head reads: the last stage that it depends on.
        let last = stages.iter().rposition(|s| !between(program, s.node, head).is_empty())?;
        let stages: Vec<Stage> = stages[..=last].to_vec();
        let at = |axis: Axis| shape.axes().iter().position(|a| *a == axis).map_or(1, |d| shape.dims()[d]);
        let (batches, tokens) = (at(Axis::Batch), at(Axis::Token));
        let first = program.node(stages[0].node).shape;
        let same = stages.iter().all(|s| program.node(s.node).shape.same_dims(&first));
        let fits = same && batches * tokens * at(Axis::Vocab) == shape.len();
        let way =
            Way { stages: stages.iter().map(|s| s.node).collect(), last: stages[last].node, logits: probs.is_none() };
        let batch = (nav.batch().min(batches.saturating_sub(1)), batches);
        fits.then_some(Self { run, head, stages, way, batch, tokens })
    }

    /// What the head says; `None` while it is computed.
    pub fn table(&self, nav: &Navigator) -> Option<Arc<LensTable>> {
        nav.numbers.measures.lens(nav.origin(self.run, self.head), &self.way)
    }

    /// The row of a position among those of all sentences.
    pub fn row(&self, token: usize) -> usize {
        self.batch.0 * self.tokens + token
    }

    /// The token read at a position. Untrusted.
    pub fn token(&self, nav: &Navigator, token: usize) -> String {
        let shape = nav.session.runs[self.run].program.node(self.head).shape;
        let axis = shape.axes().iter().position(|a| *a == Axis::Token);
        let labels = axis.map(|axis| nav.session.axis_labels(self.run, self.head, axis, self.batch.0));
        labels.and_then(|l| l.get(token)).unwrap_or_else(|| token.to_string())
    }

    /// A word of the vocabulary. Untrusted.
    pub fn word(&self, nav: &Navigator, id: usize) -> String {
        let rank = nav.session.runs[self.run].program.node(self.head).shape.rank();
        let labels = nav.session.axis_labels(self.run, self.head, rank - 1, self.batch.0);
        labels.get(id).unwrap_or_else(|| id.to_string())
    }
}

/// The stages of the stream before `head`: the embedding, then what each sublayer leaves (a residual sum, or the norm
/// after it where the next sublayer reads that).
pub fn stages(program: &Program, head: NodeId, side: Side) -> Vec<Stage> {
    let call = program.node(head).name.call;
    let mut all: Vec<Stage> = Vec::new();
    for (id, node) in program.nodes().take_while(|(id, _)| *id <= head) {
        let name = &node.name;
        let Some(stage) = name.on_stream().filter(|_| name.call == call && name.site.side() == Some(side)) else {
            continue;
        };
        let after = match stage {
            OnStream::Embedding | OnStream::EmbeddingNorm => None,
            OnStream::Residual(k) | OnStream::Norm(k) => name.site.layer().map(|(_, layer)| (layer, k)),
            OnStream::Scaled | OnStream::Added | OnStream::FinalNorm => continue,
        };
        match all.last_mut().filter(|s| s.after == after) {
            // The last one of a sublayer is what goes on.
            Some(stage) => stage.node = id,
            None => all.push(Stage { node: id, after, sublayers: 1 }),
        }
    }
    let layers = all.iter().filter_map(|s| s.after).map(|(layer, _)| layer + 1).max().unwrap_or(0);
    let of_layer = |layer: u32| all.iter().filter_map(|s| s.after).filter(|a| a.0 == layer).map(|a| a.1).max();
    if layers as usize <= SUBLAYERS {
        let sublayers: Vec<u32> = all.iter().map(|s| s.after.and_then(|a| of_layer(a.0)).unwrap_or(1)).collect();
        return all.into_iter().zip(sublayers).map(|(s, sublayers)| Stage { sublayers, ..s }).collect();
    }
    let whole: Vec<bool> = all.iter().map(|s| s.after.is_none_or(|(layer, k)| of_layer(layer) == Some(k))).collect();
    all.into_iter().zip(whole).filter(|(_, whole)| *whole).map(|(s, _)| s).collect()
}
