//! Why a score is masked, in words; rows that see nothing.

use crate::program::{Leaf, NodeId, Op, Program, reason};
use crate::text::{Lang, Msg};

/// Reasons, by their bit in a mask and their key in the catalogue.
const REASONS: [(u8, &str); 4] = [
    (reason::CAUSAL, "explain.mask.causal"),
    (reason::PADDING, "explain.mask.padding"),
    (reason::WINDOW, "explain.mask.window"),
    (reason::GIVEN, "explain.mask.given"),
];

/// The reasons in `bits` as words: `causal, padding`; empty where there are none.
pub fn reasons(bits: u8, lang: Lang) -> String {
    let words: Vec<String> =
        REASONS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, key)| Msg::new(key).render(lang)).collect();
    words.join(", ")
}

/// A row of a mask that hides every key from its query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyRow {
    /// The mask.
    pub node: NodeId,
    /// Index of the row, without the axis of keys.
    pub index: Vec<usize>,
    /// All reasons that hide a key in it.
    pub reasons: u8,
}

impl EmptyRow {
    /// The row as a warning.
    pub fn message(&self, program: &Program, lang: Lang) -> Msg {
        let index = self.index.iter().fold(String::new(), |all, i| all + &format!("[{i}]"));
        Msg::new("explain.mask.empty_row")
            .arg("path", &program.node(self.node).path)
            .arg("index", index)
            .arg("why", reasons(self.reasons, lang))
    }
}

/// All rows of all masks of `program` in which every key is hidden. Their weights are 0 where the fill is −∞; with a
/// finite fill, softmax spreads them over what should not be seen.
pub fn empty_rows(program: &Program) -> Vec<EmptyRow> {
    let mut found = Vec::new();
    for (id, node) in program.nodes() {
        let Op::Leaf(Leaf::Mask(mask)) = &node.op else {
            continue;
        };
        let rank = node.shape.rank();
        let keys = rank.checked_sub(1).map_or(1, |d| node.shape.dims()[d]);
        for (row, bits) in mask.reasons.chunks_exact(keys.max(1)).enumerate() {
            if bits.iter().all(|b| *b != 0) {
                let index = node.shape.unflat(row * keys)[..rank.saturating_sub(1)].to_vec();
                found.push(EmptyRow { node: id, index, reasons: bits.iter().fold(0, |all, b| all | b) });
            }
        }
    }
    found
}
