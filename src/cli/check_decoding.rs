//! What `check` says of decoding and teacher forcing: cached against uncached, causality, how labels are shifted.

use std::io::{self, Write};

use super::{Failure, common};
use crate::debug::cache::{self, Failed};
use crate::debug::causality;
use crate::debug::teacher::{self, Position, Shift};
use crate::session::{RunKind, Session};
use crate::text::{Lang, Msg, escape};

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// By inference run.
    caches: Vec<(String, cache::Report)>,
    /// By training run.
    causality: Vec<(String, causality::Report)>,
    /// By training run.
    shifts: Vec<(String, Shift, Vec<Position>)>,
}

/// Checks the runs for which `wanted` holds.
pub(super) fn check(session: &Session, wanted: impl Fn(usize) -> bool) -> Result<Report, Failure> {
    let mut report = Report::default();
    for (i, run) in session.runs.iter().enumerate().filter(|(i, _)| wanted(*i)) {
        if let Some((calls, _)) = session.calls_of(i) {
            let found = cache::compare(session, i, &calls, &mut ()).map_err(|e| match e {
                Failed::Build(msg) => Failure::User(msg),
                Failed::Run(e) => common::cannot_run(&e),
            })?;
            report.caches.push((run.name.clone(), found));
        }
        if run.kind == RunKind::Training {
            let shift = teacher::shift(session, i);
            let positions = || teacher::positions(session, i);
            report
                .shifts
                .extend(shift.map(|s| (run.name.clone(), s, positions())));
            if let Some(ids) = run
                .program
                .find("embed.target.ids")
                .filter(|_| causal(session, i))
            {
                let trace = session.trace(i).map_err(common::cannot_run)?;
                let found = causality::check(trace, ids, session.target_words.len());
                report.causality.push((run.name.clone(), found));
            }
        }
    }
    Ok(report)
}

/// Whether every layer of the decoder is meant to be causal.
fn causal(session: &Session, run: usize) -> bool {
    let decoder = crate::model::params::resolve(session.model_of(run)).decoder;
    decoder.iter().all(|layer| layer.causal)
}

impl Report {
    /// Whether all holds. Labels that are not shifted are a warning: a hand calculation may want them so.
    pub(super) fn good(&self) -> bool {
        self.caches.iter().all(|(_, c)| c.first.is_none())
            && self.causality.iter().all(|(_, c)| c.leak.is_none())
    }

    pub(super) fn write_text(&self, out: &mut impl Write, lang: Lang) -> io::Result<()> {
        let mut say = |msg: Msg| writeln!(out, "{}", msg.render(lang));
        for (run, c) in &self.caches {
            let (with, without) = (
                c.flops_cached.iter().sum::<u64>(),
                c.flops_uncached.iter().sum::<u64>(),
            );
            say(Msg::new("check.cache")
                .arg("run", escape(run))
                .arg("same", c.frames - c.different.len())
                .arg("frames", c.frames)
                .arg("cells", c.cells)
                .arg("with", with)
                .arg("without", without)
                .arg("bytes", c.cache_bytes.last().copied().unwrap_or(0)))?;
            if let Some(d) = &c.first {
                say(Msg::new("check.cache_first")
                    .arg("frame", d.frame)
                    .arg("path", escape(&d.path))
                    .arg("index", format!("{:?}", d.index)))?;
            }
        }
        for (run, c) in self.causality.iter().filter(|(_, c)| c.positions > 0) {
            match &c.leak {
                None => say(Msg::new("check.causal")
                    .arg("run", escape(run))
                    .arg("positions", c.positions))?,
                Some(leak) => say(Msg::new("check.leak")
                    .arg("run", escape(run))
                    .arg("changed", leak.changed)
                    .arg("row", leak.row)
                    .arg("path", escape(&leak.path)))?,
            }
        }
        for (run, shift, _) in &self.shifts {
            let key = match shift {
                Shift::Next => continue,
                Shift::Unshifted => "check.unshifted",
                Shift::Twice => "check.shifted_twice",
                Shift::Other => "check.shifted_other",
            };
            say(Msg::new(key).arg("run", escape(run)))?;
        }
        Ok(())
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        use serde_json::json;
        json!({
            "cache": self.caches.iter().map(|(run, c)| json!({
                "run": run,
                "calls": c.frames,
                "paths": c.paths,
                "cells": c.cells,
                "different_calls": c.different,
                "first_different": c.first.as_ref().map(|d| json!({ "call": d.frame, "path": d.path, "index": d.index })),
                "flops": { "cached": c.flops_cached, "uncached": c.flops_uncached },
                "cache_bytes": c.cache_bytes,
            })).collect::<Vec<_>>(),
            "causality": self.causality.iter().map(|(run, c)| json!({
                "run": run,
                "positions": c.positions,
                "leak": c.leak.as_ref().map(|l| json!({ "changed": l.changed, "row": l.row, "path": l.path, "mask": l.mask })),
            })).collect::<Vec<_>>(),
            "labels": self.shifts.iter().map(|(run, shift, positions)| json!({
                "run": run,
                "shift": match shift {
                    Shift::Next => "shifted",
                    Shift::Unshifted => "unshifted",
                    Shift::Twice => "shifted_twice",
                    Shift::Other => "other",
                },
                "positions": positions.iter().map(|p| json!({
                    "batch": p.batch,
                    "position": p.position,
                    "sees": p.sees,
                    "predicts": p.predicts,
                    "label_at": p.label_at,
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        })
    }
}
