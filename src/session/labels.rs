//! Labels of rows and columns: the tokens that stand there.

use super::Session;
use crate::program::{NodeId, Op};
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
    /// Pieces of a text as they were cut; one that the vocabulary does not have says what stands for it.
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
                let path = n.path.strip_prefix("grad.").unwrap_or(&n.path);
                let source = path.starts_with("embed.source");
                let words = if source { &self.source_words } else { self.words(self.spoken()) };
                if words.len() == len { Labels::Vocabulary(words) } else { Labels::None }
            }
            Axis::Token | Axis::Query | Axis::Key => {
                let (side, call) = self.sentence_of(run, node, axis);
                let call = call.filter(|_| side == "target");
                self.token_labels(run, call, side, batch, len)
            }
            _ => Labels::None,
        }
    }

    /// The sentence that an axis of tokens runs along: its side, and the decoding call that a node belongs to.
    pub fn sentence_of(&self, run: usize, node: NodeId, axis: usize) -> (&'static str, Option<&str>) {
        let n = self.runs[run].program.node(node);
        let full = n.path.strip_prefix("grad.").unwrap_or(&n.path);
        let (call, path) = match full.strip_prefix("gen.").and_then(|p| p.split_once('.')) {
            Some((call, rest)) => (Some(call), rest),
            None => (None, full),
        };
        let encoder = path.starts_with("encoder") || path.starts_with("embed.source");
        let own = if encoder || self.runs[run].inputs.target.is_none() && call.is_none() { "source" } else { "target" };
        let last = path.rsplit('.').next().unwrap_or(path);
        let from_source = n.shape.axes()[axis] == Axis::Key || matches!(last, "k" | "v" | "k_rotated");
        let side = if path.contains("cross_attn") && from_source { "source" } else { own };
        (side, call)
    }

    /// The words that the numbers of a tensor stand for, where they are ids that its labels do not tell already: what
    /// was predicted, what was wanted.
    pub fn id_words(&self, run: usize, node: NodeId) -> Option<&Vocab> {
        let program = &self.runs[run].program;
        let mut n = program.node(node);
        while n.op.moves_only() && program.node(n.inputs[0]).dtype == DType::Int {
            n = program.node(n.inputs[0]);
        }
        let last = n.path.rsplit('.').next().unwrap_or("");
        let wanted = n.dtype == DType::Int && matches!(last, "target_id" | "targets");
        (n.op == Op::ArgMax || wanted).then(|| self.words(self.spoken()))
    }

    /// The side whose words the output speaks.
    pub fn spoken(&self) -> &'static str {
        if self.scenario.model.decoder.is_some() { "target" } else { "source" }
    }

    /// Labels of `len` tokens that a stack reads; those of a decoding call from its recorded ids.
    fn token_labels(&self, run: usize, call: Option<&str>, side: &str, batch: usize, len: usize) -> Labels<'_> {
        let words = self.words(side);
        if let Some(call) = call {
            return match self.call_ids(run, call, len) {
                Some(ids) => Labels::Ids(words, ids),
                None => Labels::None,
            };
        }
        let inputs = &self.runs[run].inputs;
        let sentences = if side == "source" { &inputs.source_tokens } else { &inputs.target_tokens };
        match sentences.get(batch.min(sentences.len().saturating_sub(1))) {
            Some(sentence) if sentence.len() == len => Labels::Tokens(words, sentence),
            _ => Labels::None,
        }
    }

    /// Ids of the `len` tokens that a decoding call reads.
    fn call_ids(&self, run: usize, call: &str, len: usize) -> Option<Vec<i64>> {
        let program = &self.runs[run].program;
        let node = ["tokens", "embed.target.ids"]
            .iter()
            .filter_map(|name| program.find(&format!("gen.{call}.{name}")))
            .find(|id| program.node(*id).shape.len() == len)?;
        let value = self.trace(run).ok()?.get(node)?;
        Some((0..len).map(|i| value.get(i) as i64).collect())
    }

    /// Labels of the rows and columns of a view: its second last and last axis.
    pub fn view_labels(&self, view: &View) -> (Vec<String>, Vec<String>) {
        let kept: Vec<usize> = (0..view.cells.kept.len()).filter(|&d| view.cells.kept[d]).collect();
        let axes = view.cells.of.axes();
        let batch = axes.iter().position(|a| *a == Axis::Batch).map_or(0, |d| view.cells.ranges[d].start);
        let labels = |d: usize| {
            let all = self.axis_labels(view.run, view.node, d, batch);
            view.cells.ranges[d].clone().map_while(|i| all.get(i)).collect()
        };
        let last = kept.last().map_or_else(Vec::new, |&d| labels(d));
        let rows = kept.len().checked_sub(2).map_or_else(Vec::new, |i| labels(kept[i]));
        (rows, last)
    }
}
