//! Which tokens of a batch are padding. The one place that decides: what the engine hides, what labels leave out and
//! what the lints hold against a run all come from here.

use crate::scenario::schema::{Input, PadSide};
use crate::scenario::tokenise::Vocab;

/// The names under which a vocabulary has padding.
pub const NAMES: [&str; 2] = ["<pad>", "[PAD]"];

/// How many tokens were added to a sentence to make it as long as the others, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// How many.
    pub count: usize,
    /// On which side.
    pub side: PadSide,
}

impl Added {
    fn holds(self, at: usize, length: usize) -> bool {
        match self.side {
            PadSide::Left => at < self.count,
            PadSide::Right => at + self.count >= length,
        }
    }
}

/// Which tokens of one sentence are padding, where `pad` is its id: all of that id, wherever they are. Where padding
/// is the end token too (`is_end`), the first one after the text ends it, those between other tokens are ends as well,
/// and only the rest of them is padding. A sentence of nothing but padding is meant as it is.
pub fn by_id(ids: &[i64], pad: i64, is_end: bool) -> Vec<bool> {
    let other = |id: &i64| *id != pad;
    let (Some(first), Some(last)) = (ids.iter().position(other), ids.iter().rposition(other)) else {
        return vec![false; ids.len()];
    };
    let padded = |(i, id): (usize, &i64)| *id == pad && (!is_end || i < first || i > last + 1);
    ids.iter().enumerate().map(padded).collect()
}

/// Which tokens the engine treats as real, `[batch, token]`; `None` where all are. `rows` are the ids after padding,
/// `added` what padding each got. What the input says with `real` holds; else what was added is padding, and what
/// has the id that the input names as `pad`.
pub fn real(rows: &[Vec<i64>], added: &[Added], input: &Input, words: &Vocab) -> Option<Vec<bool>> {
    if let Some(given) = &input.real {
        return Some(given.concat());
    }
    let mut flags = Vec::new();
    for (ids, added) in rows.iter().zip(added) {
        let own: Vec<usize> = (0..ids.len()).filter(|i| !added.holds(*i, ids.len())).collect();
        let mut real = vec![false; ids.len()];
        for &i in &own {
            real[i] = true;
        }
        if let Some(pad) = input.pad {
            let ids: Vec<i64> = own.iter().map(|i| ids[*i]).collect();
            for (i, padded) in own.iter().zip(by_id(&ids, pad, is_end(pad, words))) {
                real[*i] = !padded;
            }
        }
        flags.extend(real);
    }
    flags.contains(&false).then_some(flags)
}

/// Which tokens are padding to a reader of the sentences, whatever the engine does with them: those that are not
/// `real`, and those whose id is that of padding.
pub fn seen(ids: &[i64], tokens: usize, real: Option<&[bool]>, input: Option<&Input>, words: &Vocab) -> Vec<bool> {
    let mut flags: Vec<bool> = match real {
        Some(real) => real.iter().map(|r| !r).collect(),
        None => vec![false; ids.len()],
    };
    // Vectors without a text have no ids that say anything.
    if input.is_some_and(|i| (!i.vectors.is_empty() || i.qkv.is_some()) && i.text.is_empty() && i.ids.is_empty()) {
        return flags;
    }
    let named = || NAMES.iter().find_map(|name| words.id(name));
    if let Some(pad) = input.and_then(|i| i.pad).or_else(named) {
        for (row, flags) in ids.chunks(tokens.max(1)).zip(flags.chunks_mut(tokens.max(1))) {
            // What was added is known: the rest is looked at without it, so that an end token before it stays one.
            let own: Vec<usize> = (0..row.len()).filter(|i| !flags[*i]).collect();
            let kept: Vec<i64> = own.iter().map(|i| row[*i]).collect();
            for (i, padded) in own.iter().zip(by_id(&kept, pad, is_end(pad, words))) {
                flags[*i] |= padded;
            }
        }
    }
    flags
}

/// Whether padding is the end token of a vocabulary too.
fn is_end(pad: i64, words: &Vocab) -> bool {
    ["<eos>", "</s>", "<|endoftext|>"].iter().any(|name| words.id(name) == Some(pad))
}

/// Positions that count real tokens only, from 0 in every sentence. Padding has position 1, as in transformers, or 0
/// where there is no other: nothing real sees it.
pub fn positions(tokens: usize, real: &[bool]) -> Vec<i64> {
    let spare = i64::from(tokens > 1);
    let mut out = Vec::with_capacity(real.len());
    for row in real.chunks(tokens.max(1)) {
        let mut next = 0;
        for &real in row {
            out.push(if real { next } else { spare });
            next += i64::from(real);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_found_left_right_and_between() {
        let flags = |ids: &[i64], end| by_id(ids, 0, end).iter().map(|p| u8::from(*p)).collect::<Vec<_>>();
        assert_eq!(flags(&[0, 0, 4, 5], false), [1, 1, 0, 0]);
        assert_eq!(flags(&[4, 5, 0, 0], false), [0, 0, 1, 1]);
        assert_eq!(flags(&[4, 0, 5, 0], false), [0, 1, 0, 1]);
        assert_eq!(flags(&[0, 0], false), [0, 0]);
    }

    #[test]
    fn the_first_end_token_after_the_text_is_one() {
        let flags = |ids: &[i64]| by_id(ids, 2, true).iter().map(|p| u8::from(*p)).collect::<Vec<_>>();
        assert_eq!(flags(&[1, 3, 2, 2, 2]), [0, 0, 0, 1, 1]);
        assert_eq!(flags(&[2, 2, 3, 2]), [1, 1, 0, 0]);
        assert_eq!(flags(&[3, 2, 4, 2]), [0, 0, 0, 0]);
    }

    #[test]
    fn positions_skip_what_is_not_real() {
        let real = [false, false, true, true, true, true, false, true];
        assert_eq!(positions(4, &real), [1, 1, 0, 1, 0, 1, 1, 2]);
    }
}
