//! What decoding and teacher forcing showed: cached against uncached, causality, how labels are shifted.

use super::Line;
use crate::debug::lints::Decoding;
use crate::debug::teacher::{self, Position, Shift};
use crate::session::{RunKind, Session};
use crate::text::{Msg, escape};

/// What was found.
#[derive(Debug)]
pub struct Report {
    /// Names of all runs.
    names: Vec<String>,
    /// What was found by running again.
    pub decoding: Decoding,
    /// By training run.
    shifts: Vec<(String, Shift, Vec<Position>)>,
}

impl Report {
    /// With how the labels of the runs for which `wanted` holds are shifted.
    pub fn of(session: &Session, decoding: Decoding, wanted: impl Fn(usize) -> bool) -> Self {
        let runs = session.runs.iter().enumerate();
        let trains = runs.filter(|(i, r)| wanted(*i) && r.kind == RunKind::Training);
        let shift = |(i, run): (usize, &crate::session::Run)| {
            let shift = teacher::shift(session, i)?;
            Some((run.name.clone(), shift, teacher::positions(session, i)))
        };
        Self {
            names: session.runs.iter().map(|r| r.name.clone()).collect(),
            decoding,
            shifts: trains.filter_map(shift).collect(),
        }
    }

    /// What each cached run and each causal run showed.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut say = |msg: Msg| lines.push(Line::new(msg));
        for (run, c) in &self.decoding.caches {
            let run = &self.names[*run];
            let (with, without) = (c.flops_cached.iter().sum::<u64>(), c.flops_uncached.iter().sum::<u64>());
            say(Msg::new("check.cache")
                .arg("run", escape(run))
                .arg("same", c.frames - c.different.len())
                .arg("frames", c.frames)
                .arg("cells", c.cells)
                .arg("with", with)
                .arg("without", without)
                .arg("bytes", c.cache_bytes.last().copied().unwrap_or(0)));
            if let Some(d) = &c.first {
                say(Msg::new("check.cache_first")
                    .arg("frame", d.frame)
                    .arg("path", escape(&d.path))
                    .arg("index", format!("{:?}", d.index)));
            }
        }
        let causality = self.decoding.causality.iter();
        for (run, c) in causality.filter(|(_, c)| c.positions > 0) {
            let run = &self.names[*run];
            // A leak is reported by the lints.
            if c.leak.is_none() {
                say(Msg::new("check.causal").arg("run", escape(run)).arg("positions", c.positions));
            }
        }
        lines
    }

    /// For programs.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::json;
        json!({
            "cache": self.decoding.caches.iter().map(|(run, c)| json!({
                "run": self.names[*run],
                "calls": c.frames,
                "paths": c.paths,
                "cells": c.cells,
                "different_calls": c.different,
                "first_different": c.first.as_ref().map(|d| json!({ "call": d.frame, "path": d.path, "index": d.index })),
                "flops": { "cached": c.flops_cached, "uncached": c.flops_uncached },
                "cache_bytes": c.cache_bytes,
            })).collect::<Vec<_>>(),
            "causality": self.decoding.causality.iter().map(|(run, c)| json!({
                "run": self.names[*run],
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
