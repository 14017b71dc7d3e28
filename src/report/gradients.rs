//! Every parameter's gradient against central differences.

use serde_json::{Value as Json, json};

use super::{About, Line, cannot_run};
use crate::program::Gradients;
use crate::session::{RunKind, Session};
use crate::tensor::Precision;
use crate::text::{Msg, escape};
use crate::trace::AnyTrace;
use crate::trace::gradcheck::{self, Checked};
use crate::with_any;

/// Cells compared of each parameter, evenly spread.
const MOST: usize = 16;

/// How far a cell is moved: a long way leaves the line, a short one loses digits.
const STEP: f64 = 1e-5;

/// A parameter whose gradients are smaller than this share of the model's largest is measured by that share: a
/// key's bias, to which a softmax pays no heed, has a gradient of 0 and whatever rounding leaves.
const FLOOR: f64 = 1e-3;

/// What comparing one parameter found.
#[derive(Debug)]
pub struct Compared {
    run: String,
    path: String,
    cells: usize,
    /// Largest difference, relative to the parameter's largest gradient.
    worst: f64,
    index: Vec<usize>,
}

/// What comparing all of them found.
#[derive(Debug)]
pub struct Report {
    tolerance: f64,
    parameters: Vec<Compared>,
}

/// Compares the gradients of backward runs, of run `only` where one is named.
///
/// # Errors
/// Where a run cannot run.
pub fn compare(session: &Session, only: Option<usize>, tolerance: Option<f64>) -> Result<Report, Msg> {
    let usual = match session.precision {
        Precision::F64 => 1e-5,
        Precision::F32 => 1e-3,
    };
    let mut parameters = Vec::new();
    for (i, run) in session.runs.iter().enumerate() {
        if run.kind != RunKind::Backward || only.is_some_and(|o| o != i) {
            continue;
        }
        if !session.held(i).is_empty() {
            return Err(Msg::new("edit.in_gradients").arg("run", escape(&run.name)));
        }
        let trace: &AnyTrace = session.trace(i).map_err(cannot_run)?;
        let exact = session.in_f64(i).map_err(|e| cannot_run(&e))?;
        let Some(loss) = run.outputs.loss else {
            continue;
        };
        let Some(gradients) = Gradients::find(&run.program, &run.program.node(loss).path) else {
            continue;
        };
        let checked: Vec<Checked> = gradients
            .parameters(&run.program)
            .filter_map(|(parameter, _)| {
                with_any!(AnyTrace, trace, t => {
                    gradcheck::check(t, &exact, &gradients, parameter, STEP, MOST)
                })
            })
            .collect();
        let largest = checked.iter().fold(0.0, |m: f64, c| m.max(c.largest));
        for found in checked {
            let Some((cell, worst)) = found.worst(largest * FLOOR) else {
                continue;
            };
            let node = run.program.node(found.node);
            parameters.push(Compared {
                run: run.name.clone(),
                path: node.path.to_string(),
                cells: found.cells.len(),
                worst,
                index: node.shape.unflat(cell.flat)[..node.shape.rank()].to_vec(),
            });
        }
    }
    Ok(Report { tolerance: tolerance.unwrap_or(usual), parameters })
}

impl Report {
    /// Whether all agree.
    pub fn good(&self) -> bool {
        self.parameters.iter().all(|p| p.worst <= self.tolerance)
    }

    /// The tolerance, and a line for each parameter.
    pub fn lines(&self) -> Vec<Line> {
        let head = Msg::new("train.check.head").arg("tolerance", format!("{:e}", self.tolerance));
        let mut lines = vec![Line::new(head)];
        for p in &self.parameters {
            let key = if p.worst <= self.tolerance { "train.check.good" } else { "train.check.bad" };
            let msg = Msg::new(key)
                .arg("path", escape(&p.path))
                .arg("worst", format!("{:.1e}", p.worst))
                .arg("index", format!("{:?}", p.index))
                .arg("cells", p.cells);
            let about = About::Node { run: Some(p.run.clone()), path: p.path.clone(), index: p.index.clone() };
            lines.push(Line::new(msg).about(about));
        }
        lines
    }

    /// For programs.
    pub fn to_json(&self) -> Json {
        json!({
            "tolerance": self.tolerance,
            "good": self.good(),
            "parameters": self.parameters.iter().map(|p| json!({
                "run": p.run,
                "path": p.path,
                "cells": p.cells,
                "worst_relative_error": p.worst,
                "index": p.index,
            })).collect::<Vec<_>>(),
        })
    }
}
