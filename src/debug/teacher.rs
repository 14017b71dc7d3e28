//! Teacher forcing made visible: which tokens a position sees, what it must predict, and where that label is in
//! what it reads.

use crate::session::Session;

/// One position of the decoder in training.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Sequence.
    pub batch: usize,
    /// Its place.
    pub position: usize,
    /// Tokens that it sees, as words: those up to its own.
    pub sees: Vec<String>,
    /// What it must predict; `None` where it does not count.
    pub predicts: Option<String>,
    /// Where the label is in the decoder's input, counted from this position: 0 is its own token, 1 the next;
    /// `None` where the label is not read at all, or does not count.
    pub label_at: Option<isize>,
}

/// How labels relate to what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// Every label is the token after: as it should be.
    Next,
    /// Every label is the token that the position itself reads: it can be copied.
    Unshifted,
    /// Every label is the token after the next: shifted twice.
    Twice,
    /// None of these.
    Other,
}

/// The positions of training run `run`; empty where there is no decoder or no label.
pub fn positions(session: &Session, run: usize) -> Vec<Position> {
    first_positions(session, run, usize::MAX)
}

/// As [`positions`], the first `most` of them: what each sees is as long as the sentence up to it.
pub fn first_positions(session: &Session, run: usize, most: usize) -> Vec<Position> {
    let inputs = &session.runs[run].inputs;
    let (Some(target), Some(labels)) = (&inputs.target, &inputs.labels) else {
        return Vec::new();
    };
    let words = &session.target_words;
    let tokens = target.tokens();
    let by = match shift_of(&target.ids, labels, tokens) {
        Some(Shift::Unshifted) => 0,
        Some(Shift::Twice) => 2,
        Some(Shift::Next | Shift::Other) | None => 1,
    };
    (0..target.ids.len().min(most))
        .map(|i| {
            let (batch, position) = (i / tokens, i % tokens);
            let row = &target.ids[batch * tokens..(batch + 1) * tokens];
            let label = labels.get(i).copied().filter(|l| *l >= 0);
            // Tokens repeat: where the shift of the whole says, else the nearest from here on, else the nearest before.
            let label_at = label.and_then(|label| {
                let wanted = Some(position + by).filter(|j| row.get(*j) == Some(&label));
                let after = wanted.or_else(|| (position..tokens).find(|j| row[*j] == label));
                let before = || (0..position).rev().find(|j| row[*j] == label);
                after.or_else(before).map(|j| j as isize - position as isize)
            });
            Position {
                batch,
                position,
                sees: row[..=position].iter().map(|id| words.word(*id)).collect(),
                predicts: label.map(|id| words.word(id)),
                label_at,
            }
        })
        .collect()
}

/// How the labels of training run `run` are shifted; `None` where there is no decoder, no label, or too few to tell.
pub fn shift(session: &Session, run: usize) -> Option<Shift> {
    let inputs = &session.runs[run].inputs;
    let (target, labels) = (inputs.target.as_ref()?, inputs.labels.as_ref()?);
    shift_of(&target.ids, labels, target.tokens())
}

/// As [`shift`], of ids and labels `[batch, tokens]`; labels below 0 do not count.
pub fn shift_of(ids: &[i64], labels: &[i64], tokens: usize) -> Option<Shift> {
    // A label whose place lies outside the sentence (the end token, mostly) says nothing of the shift.
    let holds = |by: usize| {
        let mut seen = 0;
        for (i, label) in labels.iter().enumerate().filter(|(_, l)| **l >= 0) {
            if i % tokens + by < tokens {
                if ids[i + by] != *label {
                    return None;
                }
                seen += 1;
            }
        }
        Some(seen).filter(|n| *n > 0)
    };
    if labels.iter().all(|l| *l < 0) {
        return None;
    }
    // Sentences of one repeated token fit every shift: the right one is believed first.
    let fits = [(1, Shift::Next), (0, Shift::Unshifted), (2, Shift::Twice)];
    let found = fits.into_iter().find(|(by, _)| holds(*by).is_some());
    match found {
        Some((_, shift)) => Some(shift),
        None if tokens < 2 => None,
        None => Some(Shift::Other),
    }
}
