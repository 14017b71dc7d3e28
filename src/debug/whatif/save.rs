//! An edited session as a scenario: opening it gives the same bits.

use std::path::Path;

use super::{Before, Changes, WhatIf};
use crate::scenario::Scenario;
use crate::scenario::edit::Edit;
use crate::scenario::schema::{Vocabulary, WeightValue};
use crate::session::Session;
use crate::text::Msg;

/// The scenario of the edited session, to be written into `folder`. Edited weights are in the values that the
/// scenario gives; those that come from files or initialisers, and what else is edited of the recorded values, stand
/// in `edits`. Expected values that no longer hold are left out.
///
/// # Errors
/// Where the session has made updates: a scenario holds no optimiser's memory.
pub fn saved(whatif: &WhatIf, folder: &Path) -> Result<Scenario, Msg> {
    let s = &**whatif.session();
    if s.updates > 0 {
        return Err(Msg::new("edit.save_updates").arg("updates", s.updates));
    }
    let mut out = s.scenario.clone();
    out.precision = s.precision;
    out.edits.clear();
    for edit in &s.scenario.edits {
        let inline = match edit {
            Edit::Cell { path, at, value, run: None } if value.is_finite() => {
                out.weights.values.get_mut(path).and_then(|w| slot(w, at))
            }
            _ => None,
        };
        match (inline, edit) {
            (Some(slot), Edit::Cell { value, .. }) => *slot = *value,
            _ => out.edits.push(edit.clone()),
        }
    }
    files(s, &mut out, folder);
    let holds = |e: &crate::scenario::schema::Expected| {
        let run = e.run.as_deref().map_or(Some(0), |name| s.run_named(name));
        let changes = run.map(|run| (run, Changes::of(whatif.base(), s, run)));
        let Some((run, Ok(Some(changes)))) = changes else {
            return false;
        };
        let node = s.runs[run].program.find(&e.path);
        node.is_some_and(|id| matches!(changes.before(id), Before::Same))
    };
    if !whatif.edits().is_empty() {
        out.expected.retain(holds);
    }
    Ok(out)
}

/// Where a cell `[out, in]` of a parameter is in inline values.
fn slot<'w>(values: &'w mut WeightValue, at: &[usize]) -> Option<&'w mut f64> {
    match (values, at) {
        (WeightValue::Vector(v), &[i]) => v.get_mut(i),
        (WeightValue::OutIn(rows), &[r, c]) => rows.get_mut(r)?.get_mut(c),
        (WeightValue::InOut(rows), &[r, c]) => rows.get_mut(c)?.get_mut(r),
        (WeightValue::Heads(heads), &[r, c]) => {
            let each = heads.first()?.len().max(1);
            heads.get_mut(r / each)?.get_mut(r % each)?.get_mut(c)
        }
        (WeightValue::HeadsInOut(heads), &[r, c]) => {
            let each = heads.first()?.first()?.len().max(1);
            heads.get_mut(r / each)?.get_mut(c)?.get_mut(r % each)
        }
        _ => None,
    }
}

/// Files are looked for next to a scenario: in another folder, they are named from the root.
fn files(s: &Session, out: &mut Scenario, folder: &Path) {
    let Some(origin) = &s.origin else { return };
    let beside = origin.parent().unwrap_or(Path::new(""));
    let whole = |p: &Path| std::fs::canonicalize(if p.as_os_str().is_empty() { Path::new(".") } else { p });
    let (from, to) = (whole(beside), whole(folder));
    let (Ok(from), Ok(to)) = (from, to) else {
        return;
    };
    if from == to {
        return;
    }
    let moved = |name: &mut String| {
        let path = from.join(&*name);
        // A corpus that comes with the program is no file.
        if path.exists()
            && let Some(path) = path.to_str()
        {
            path.clone_into(name);
        }
    };
    for file in &mut out.weights.files {
        moved(&mut file.path);
    }
    let vocabularies = [Some(&mut out.vocabulary), out.target_vocabulary.as_mut()];
    for vocabulary in vocabularies.into_iter().flatten() {
        if let Vocabulary::Characters(c) = vocabulary
            && let Some(name) = &mut c.corpus_file
        {
            moved(name);
        }
    }
}
