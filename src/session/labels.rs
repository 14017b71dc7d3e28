//! Labels of rows and columns: the tokens that stand there.

use super::Session;
use crate::program::NodeId;
use crate::tensor::Axis;
use crate::walkthrough::View;

impl Session {
    /// Labels along axis `axis` (of the whole tensor) of a node, for sequence `batch`; empty where there are none.
    pub fn axis_labels(&self, run: usize, node: NodeId, axis: usize, batch: usize) -> Vec<String> {
        let program = &self.runs[run].program;
        let n = program.node(node);
        let len = n.shape.dims()[axis];
        let full = n.path.strip_prefix("grad.").unwrap_or(&n.path);
        let (call, path) = match full.strip_prefix("gen.").and_then(|p| p.split_once('.')) {
            Some((call, rest)) => (Some(call), rest),
            None => (None, full),
        };
        let encoder = path.starts_with("encoder") || path.starts_with("embed.source");
        let own = if encoder || self.inputs.target.is_none() && call.is_none() {
            "source"
        } else {
            "target"
        };
        match n.shape.axes()[axis] {
            Axis::Vocab => {
                let words = if path.starts_with("embed.source") {
                    &self.source_words
                } else {
                    self.words(self.spoken())
                };
                if words.len() == len {
                    (0..len as i64).map(|i| words.word(i)).collect()
                } else {
                    Vec::new()
                }
            }
            Axis::Token | Axis::Query | Axis::Key => {
                let cross = path.contains("cross_attn");
                let last = path.rsplit('.').next().unwrap_or(path);
                let from_source =
                    n.shape.axes()[axis] == Axis::Key || matches!(last, "k" | "v" | "k_rotated");
                let side = if cross && from_source { "source" } else { own };
                self.tokens(run, call.filter(|_| side == "target"), side, batch, len)
            }
            _ => Vec::new(),
        }
    }

    /// The side whose words the output speaks.
    pub fn spoken(&self) -> &'static str {
        if self.scenario.model.decoder.is_some() {
            "target"
        } else {
            "source"
        }
    }

    /// Words of `len` tokens that a stack reads; those of a decoding call from its recorded ids.
    fn tokens(
        &self,
        run: usize,
        call: Option<&str>,
        side: &str,
        batch: usize,
        len: usize,
    ) -> Vec<String> {
        let program = &self.runs[run].program;
        let ids: Option<Vec<i64>> = if let Some(call) = call {
            let node = ["tokens", "embed.target.ids"]
                .iter()
                .filter_map(|name| program.find(&format!("gen.{call}.{name}")))
                .find(|id| program.node(*id).shape.len() == len);
            node.and_then(|id| self.trace(run).ok()?.get(id))
                .map(|v| (0..len).map(|i| v.get(i) as i64).collect())
        } else {
            let s = if side == "source" {
                &self.inputs.source
            } else {
                &self.inputs.target
            };
            s.as_ref().filter(|s| s.tokens() == len).map(|s| {
                let b = batch.min(s.batch - 1);
                s.ids[b * len..(b + 1) * len].to_vec()
            })
        };
        let words = self.words(side);
        ids.map(|ids| ids.iter().map(|&i| words.word(i)).collect())
            .unwrap_or_default()
    }

    /// Labels of the rows and columns of a view: its second last and last axis.
    pub fn view_labels(&self, view: &View) -> (Vec<String>, Vec<String>) {
        let kept: Vec<usize> = (0..view.cells.kept.len())
            .filter(|&d| view.cells.kept[d])
            .collect();
        let batch = view
            .cells
            .of
            .axes()
            .iter()
            .position(|a| *a == Axis::Batch)
            .map_or(0, |d| view.cells.ranges[d].start);
        let labels = |d: usize| {
            let all = self.axis_labels(view.run, view.node, d, batch);
            let range = view.cells.ranges[d].clone();
            if all.len() >= range.end {
                all[range].to_vec()
            } else {
                Vec::new()
            }
        };
        let last = kept.last().map_or_else(Vec::new, |&d| labels(d));
        let rows = kept
            .len()
            .checked_sub(2)
            .map_or_else(Vec::new, |i| labels(kept[i]));
        (rows, last)
    }
}
