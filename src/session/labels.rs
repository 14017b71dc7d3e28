//! Labels of rows and columns: the tokens that are there.

use super::Session;
use crate::program::{Block, Name, NodeId, Op, Role, Side, Site};
use crate::scenario::tokenise::{Token, Vocab};
use crate::tensor::{Axis, DType};
use crate::walkthrough::View;

/// Labels along an axis. They are made one by one, since an axis may be as long as a vocabulary.
#[derive(Clone, Debug)]
pub enum Labels<'s> {
    /// There are none.
    None,
    /// The words of a vocabulary, in its order.
    Vocabulary(&'s Vocab),
    /// Vocab of these ids.
    Ids(&'s Vocab, Vec<i64>),
    /// Pieces of a text as they were cut; one that the vocabulary does not have says what denotes it.
    Tokens(&'s Vocab, &'s [Token]),
}

impl Labels<'_> {
    /// The label at `i`; untrusted text.
    pub fn get(&self, i: usize) -> Option<String> {
        match self {
            Labels::None => None,
            Labels::Vocabulary(words) => Some(words.word(i as i64)),
            Labels::Ids(words, ids) => ids.get(i).map(|id| words.word(*id)),
            Labels::Tokens(words, tokens) => tokens
                .get(i)
                .map(|t| if t.unknown { format!("{}({})", t.text, words.word(t.id)) } else { t.text.clone() }),
        }
    }
}

impl Session {
    /// Labels along axis `axis` (of the whole tensor) of a node, for sequence `batch`.
    pub fn axis_labels(&self, run: usize, node: NodeId, axis: usize, batch: usize) -> Labels<'_> {
        let program = &self.runs[run].program;
        let n = program.node(node);
        let len = n.shape.dims()[axis];
        match n.shape.axes()[axis] {
            Axis::Vocab => {
                let source = n.name.site == Site::Embedding(Some(Side::Source));
                let words = if source { &self.source_words } else { self.words(self.spoken()) };
                if words.len() == len { Labels::Vocabulary(words) } else { Labels::None }
            }
            Axis::Token | Axis::Query | Axis::Key => {
                let (side, call) = self.sentence_of(run, node, axis);
                let call = call.filter(|_| side == Side::Target);
                self.token_labels(run, call, side, batch, len)
            }
            _ => Labels::None,
        }
    }

    /// The sentence that an axis of tokens runs along: its side, and the decoding call that a node belongs to.
    pub fn sentence_of(&self, run: usize, node: NodeId, axis: usize) -> (Side, Option<u32>) {
        let n = self.runs[run].program.node(node);
        let (name, call) = (&n.name, n.name.call);
        let from_source = n.shape.axes()[axis] == Axis::Key || name.roles().any(Role::of_keys);
        let cross = name.site.block() == Some(Block::CrossAttention);
        let source = name.site.side() == Some(Side::Source)
            || self.runs[run].inputs.target.is_none() && call.is_none()
            || cross && from_source;
        (if source { Side::Source } else { Side::Target }, call)
    }

    /// The words that the numbers of a tensor denote, where they are ids that its labels do not tell already: what
    /// was predicted, what was wanted, the sentences of a batch.
    pub fn id_words(&self, run: usize, node: NodeId) -> Option<&Vocab> {
        let program = &self.runs[run].program;
        let mut n = program.node(node);
        while n.op.moves_only() && program.node(n.inputs[0]).dtype == DType::Int {
            n = program.node(n.inputs[0]);
        }
        let batch = n.shape.axes().first() == Some(&Axis::Batch) && n.shape.dims()[0] > 1;
        if let (Role::Ids, Site::Embedding(Some(side)), true) = (n.name.last(), n.name.site, batch) {
            return Some(self.words(side));
        }
        let wanted = n.dtype == DType::Int && *n.name.last() == Role::TargetId;
        (n.op == Op::ArgMax || wanted).then(|| self.words(self.spoken()))
    }

    /// The side whose words the output speaks.
    pub fn spoken(&self) -> Side {
        if self.scenario.model.decoder.is_some() { Side::Target } else { Side::Source }
    }

    /// Labels of `len` tokens that a stack reads; those of a decoding call from its recorded ids.
    fn token_labels(&self, run: usize, call: Option<u32>, side: Side, batch: usize, len: usize) -> Labels<'_> {
        let words = self.words(side);
        if let Some(call) = call {
            return match self.call_ids(run, call, batch, len) {
                Some(ids) => Labels::Ids(words, ids),
                None => Labels::None,
            };
        }
        let inputs = &self.runs[run].inputs;
        let sentences = match side {
            Side::Source => &inputs.source_tokens,
            Side::Target => &inputs.target_tokens,
        };
        match sentences.get(batch.min(sentences.len().saturating_sub(1))) {
            Some(sentence) if sentence.len() == len => Labels::Tokens(words, sentence),
            _ => Labels::None,
        }
    }

    /// Ids of the `len` tokens that a decoding call reads.
    fn call_ids(&self, run: usize, call: u32, batch: usize, len: usize) -> Option<Vec<i64>> {
        let program = &self.runs[run].program;
        let read = || {
            let names = [(Site::Root, Role::Tokens), (Site::Embedding(Some(Side::Target)), Role::Ids)].into_iter();
            names.filter_map(|(site, role)| program.named(&Name::of(site).then(role).in_call(call)))
        };
        let tokens = |id: &NodeId| program.node(*id).shape.dims().last().copied().unwrap_or(0);
        // What a call has one of, such as the wanted token, is of the last token that it reads.
        let node = read().find(|id| tokens(id) == len).or_else(|| read().find(|_| len == 1))?;
        let all = tokens(&node);
        let value = self.trace(run).ok()?.get(node)?;
        let rows = value.shape().len() / all.max(1);
        let start = batch.min(rows.saturating_sub(1)) * all + all.checked_sub(len)?;
        Some((start..start + len).map(|i| value.get(i) as i64).collect())
    }

    /// Labels of the rows and columns of a view: its second last and last axis; of several sentences those of the first.
    pub fn view_labels(&self, view: &View) -> (Vec<String>, Vec<String>) {
        let batch = view.cells.of.axes().iter().position(|a| *a == Axis::Batch);
        self.labels_of_sentence(view, batch.map_or(0, |d| view.cells.ranges[d].start))
    }

    /// The same for each sentence of a view that begins with an axis of several; empty for other views.
    pub fn sentence_labels(&self, view: &View) -> Vec<(Vec<String>, Vec<String>)> {
        let axes = view.cells.of.axes();
        let Some(batch) = axes.iter().position(|a| *a == Axis::Batch).filter(|d| view.cells.kept[*d]) else {
            return Vec::new();
        };
        let range = view.cells.ranges[batch].clone();
        let rank = view.cells.kept.iter().filter(|k| **k).count();
        if range.len() < 2 || rank < 3 {
            return Vec::new();
        }
        range.map(|sentence| self.labels_of_sentence(view, sentence)).collect()
    }

    fn labels_of_sentence(&self, view: &View, batch: usize) -> (Vec<String>, Vec<String>) {
        let kept: Vec<usize> = (0..view.cells.kept.len()).filter(|&d| view.cells.kept[d]).collect();
        let labels = |d: usize| {
            let all = self.axis_labels(view.run, view.node, d, batch);
            view.cells.ranges[d].clone().map_while(|i| all.get(i)).collect()
        };
        let last = kept.last().map_or_else(Vec::new, |&d| labels(d));
        let rows = kept.len().checked_sub(2).map_or_else(Vec::new, |i| labels(kept[i]));
        (rows, last)
    }
}
