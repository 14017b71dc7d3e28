//! What comparing decoding with and without a cache, and changing later tokens, says as findings.

use super::{Finding, bracketed};
use crate::debug::{cache, causality};
use crate::model::params::cacheable;
use crate::scenario::lint::{Lint, Severity};
use crate::session::{RunKind, Session};
use crate::text::Msg;

pub use crate::session::generation::Failed;

/// What was found by running again: by run of the session.
#[derive(Clone, Debug, Default)]
pub struct Decoding {
    /// Cached against uncached, of inference runs.
    pub caches: Vec<(usize, cache::Report)>,
    /// Later tokens changed, of training runs with a decoder.
    pub causality: Vec<(usize, causality::Report)>,
}

impl Decoding {
    /// Runs what there is to run again for the runs for which `wanted` holds.
    ///
    /// # Errors
    /// Where a run cannot be built or run.
    pub fn of(session: &Session, wanted: impl Fn(usize) -> bool) -> Result<Self, Failed> {
        let mut found = Self::default();
        for (i, run) in session.runs.iter().enumerate().filter(|(i, _)| wanted(*i)) {
            let decodes = session.calls_of(i);
            if let Some((calls, _)) = decodes.filter(|_| cacheable(session.model_of(i))) {
                let calls = calls.first(session.calls_made(i));
                let report = cache::compare(session, i, &calls, &mut ())?;
                found.caches.push((i, report));
            }
            let ids = run.program.find("embed.target.ids");
            if let Some(ids) = ids.filter(|_| run.kind == RunKind::Training) {
                let trace = session.trace(i).map_err(Clone::clone)?;
                let report = causality::check(trace, ids, session.target_words.len());
                found.causality.push((i, report));
            }
        }
        Ok(found)
    }

    /// What it says of run `run`.
    pub fn findings(&self, session: &Session, run: usize) -> Vec<Finding> {
        let of_caches = self.caches.iter().filter(|c| c.0 == run);
        let of_causality = self.causality.iter().filter(|c| c.0 == run);
        of_caches
            .filter_map(|(_, r)| Self::of_cache(session, run, r))
            .chain(of_causality.filter_map(|(_, r)| Self::of_causality(session, run, r)))
            .collect()
    }

    /// The finding of a comparison of cached and uncached decoding of run `run`.
    pub fn of_cache(session: &Session, run: usize, report: &cache::Report) -> Option<Finding> {
        let first = report.first.as_ref()?;
        let lint = Lint::CacheDiffers;
        let msg = Msg::new(lint.key())
            .arg("path", &first.path)
            .arg("cell", bracketed(&first.index))
            .arg("call", first.frame)
            .arg("count", report.different.len())
            .arg("calls", report.frames);
        Some(Finding {
            lint,
            severity: Severity::Error,
            allowed: false,
            run: Some(run),
            also: Vec::new(),
            path: first.path.clone(),
            node: session.runs[run].program.find(&first.path),
            cell: first.index.clone(),
            value: None,
            count: report.different.len(),
            msg,
        })
    }

    /// The finding of a perturbation of later tokens in run `run`.
    pub fn of_causality(session: &Session, run: usize, report: &causality::Report) -> Option<Finding> {
        let leak = report.leak.as_ref()?;
        let lint = Lint::FutureLeak;
        let msg = Msg::new(lint.key())
            .arg("path", &leak.path)
            .arg("row", leak.row)
            .arg("changed", leak.changed)
            .arg("mask", leak.mask.as_deref().unwrap_or("—"));
        Some(Finding {
            lint,
            severity: Severity::Error,
            allowed: false,
            run: Some(run),
            also: Vec::new(),
            path: leak.path.clone(),
            node: session.runs[run].program.find(&leak.path),
            cell: Vec::new(),
            value: None,
            count: 1,
            msg,
        })
    }
}
