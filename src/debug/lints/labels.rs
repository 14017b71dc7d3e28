//! How labels relate to what the decoder reads.

use super::{Finding, bracketed};
use crate::debug::teacher::{Shift, shift};
use crate::scenario::lint::{Lint, Severity};
use crate::session::Session;
use crate::text::Msg;

/// What is wrong with the labels of training run `run`.
pub(super) fn of_run(session: &Session, run: usize) -> Option<Finding> {
    let (lint, severity) = match shift(session, run)? {
        Shift::Next => return None,
        Shift::Unshifted => (Lint::LabelsUnshifted, Severity::Error),
        Shift::Twice => (Lint::LabelsShiftedTwice, Severity::Error),
        Shift::Other => (Lint::LabelsUnrelated, Severity::Warning),
    };
    let r = &session.runs[run];
    let (target, labels) = (r.inputs.target.as_ref()?, r.inputs.labels.as_ref()?);
    let tokens = target.tokens().max(1);
    let counts = |i: &usize| labels[*i] >= 0;
    let wrong = |i: &usize| {
        let next = target.ids.get(i + 1).filter(|_| !(i + 1).is_multiple_of(tokens));
        next != Some(&labels[*i])
    };
    let at = (0..labels.len()).filter(counts).find(wrong);
    let at = at.or_else(|| (0..labels.len()).find(counts))?;
    let (node, path) = match r.program.find("loss.labels") {
        Some(id) => (Some(id), "loss.labels"),
        None => (None, "labels"),
    };
    let cell = vec![at / tokens, at % tokens];
    let count = labels.iter().filter(|l| **l >= 0).count();
    let words = &session.target_words;
    let msg = Msg::new(lint.key())
        .arg("path", path)
        .arg("cell", bracketed(&cell))
        .arg("position", at % tokens)
        .arg("labels", count)
        .arg("reads", crate::text::escape(&words.word(target.ids[at])))
        .arg("predicts", crate::text::escape(&words.word(labels[at])));
    Some(Finding {
        lint,
        severity,
        allowed: false,
        run: Some(run),
        also: Vec::new(),
        path: path.to_owned(),
        node,
        cell,
        value: Some(labels[at] as f64),
        count,
        msg,
    })
}
