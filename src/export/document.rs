//! From a step of a session to the plain data that the writers take.

use std::sync::Arc;

use super::doc::{CellValues, DerivationDoc, StepDoc, TensorDoc};
use crate::explain::{Explainer, Style, formula};
use crate::program::{Name, Program, Role};
use crate::session::{Session, Steps, stages};
use crate::tensor::{Axis, ResolvedSlice, Value};
use crate::text::{Lang, Msg, NumberFormat};
use crate::trace::derive::{Cell, copied};
use crate::trace::{AnyTrace, AnyValue, Rounding, RunError};
use crate::walkthrough::{Step, View};
use crate::with_any;

/// How a document is made.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Language of titles and notes.
    pub lang: Lang,
    /// Numbers in derivations.
    pub number: NumberFormat,
    /// Round every written number to so many decimals before it is used.
    pub round: Option<Rounding>,
    /// Most derivations of a step.
    pub derivations: usize,
    /// Most terms of a sum in a derivation.
    pub terms: usize,
    /// Whether what the step reads is written too.
    pub inputs: bool,
}

/// Phase of a step that stands two runs side by side.
pub const COMPARISON: &str = "comparison";

/// The document of `step`, which is at or after position `at` of `steps`.
///
/// # Errors
/// Where its run cannot run.
pub fn document(s: &Session, steps: &Steps, at: usize, step: &Step, settings: &Settings) -> Result<StepDoc, RunError> {
    let mut doc = StepDoc {
        scenario: s.scenario.name.clone(),
        run: s.runs[step.run].name.clone(),
        step: step.number.clone(),
        section: step.section.clone(),
        phase: step.phase.clone(),
        title: step.title.render(settings.lang),
        formula: step_formula(s, steps, at, step),
        note: step.note.render(settings.lang),
        ..StepDoc::default()
    };
    if settings.inputs {
        for view in inputs_of(s, steps, at, step)? {
            doc.inputs.push(tensor(s, s.trace(view.run).map_err(Clone::clone)?, &view));
        }
    }
    if step.views.is_empty() && step.phase == COMPARISON {
        doc.table = stages(s, step.run, settings.lang)?;
    }
    let style = Style { number: settings.number, most_terms: settings.terms };
    for view in &step.views {
        let exact = s.trace(view.run).map_err(Clone::clone)?;
        let rounded = settings.round.map(|rounding| s.rounded(view.run, rounding)).transpose()?;
        let trace: &AnyTrace = rounded.as_ref().map_or(exact, Arc::as_ref);
        doc.tensors.push(tensor(s, trace, view));
        let explainer = Explainer::new(trace).speaking(settings.lang);
        let exactly = rounded.as_ref().map(|_| Explainer::new(exact));
        let shape = view.shape();
        let room = settings.derivations.saturating_sub(doc.derivations.len());
        doc.derivations_left_out += shape.len().saturating_sub(room);
        for flat in 0..shape.len().min(room) {
            let index = shape.unflat(flat)[..shape.rank()].to_vec();
            let cell = view.cell(&index);
            let names = |c| s.cell_name(steps, view.run, c, at);
            let line = explainer.line(&view.cell_name(&index), cell, &style, &names);
            let mut text = line.text();
            if let Some(exactly) = &exactly {
                let (ours, theirs) = (explainer.number(cell, settings.number), exactly.number(cell, settings.number));
                if ours != theirs {
                    text.push(' ');
                    text.push_str(&Msg::new("explain.rounded").arg("value", theirs).render(settings.lang));
                }
            }
            doc.derivations.push(DerivationDoc { symbol: view.symbol.clone(), index, text, value: line.value });
        }
    }
    Ok(doc)
}

/// Cells of a view whose operands are followed, to find what a step reads.
const MAX_READ: usize = 256;

/// The tables that the results of a step are computed from, as earlier steps show them, in the order in which they are
/// read. What the step itself shows is left out.
///
/// # Errors
/// Where its run cannot run.
pub fn inputs_of(s: &Session, steps: &Steps, at: usize, step: &Step) -> Result<Vec<View>, RunError> {
    let mut out: Vec<View> = Vec::new();
    for view in &step.views {
        let explainer = Explainer::new(s.trace(view.run).map_err(Clone::clone)?);
        for flat in view.cells.flats().take(MAX_READ) {
            for cell in explainer.reads(Cell { node: view.node, flat }) {
                let own = step.views.iter().any(|v| v.run == view.run && v.index_of(cell).is_some());
                let known = out.iter().any(|v| v.run == view.run && v.index_of(cell).is_some());
                if own || known {
                    continue;
                }
                if let Some(place) = steps.locate(view.run, cell, at) {
                    out.push(steps.list()[place.step].views[place.view].clone());
                }
            }
        }
    }
    Ok(out)
}

/// The formula of a step: its own, else one written from the program for each result.
pub fn step_formula(s: &Session, steps: &Steps, at: usize, step: &Step) -> String {
    if !step.formula.is_empty() {
        return step.formula.clone();
    }
    let mut parts = Vec::new();
    for view in step.results() {
        let program = &s.runs[view.run].program;
        let names = |id| s.tensor_name(steps, view.run, id, &view.slice, at);
        let mut right = formula(program, view.node, &names);
        if let Some(part) = moved_part(program, view) {
            right.push_str(&part);
        }
        if !right.is_empty() && right != view.symbol {
            parts.push(format!("{} = {right}", view.symbol));
        }
    }
    parts.join(";  ")
}

/// Cells of a part that are all followed to where they were moved from; of a larger one its corners are, so that the
/// work does not grow with it.
const MAX_MOVED: usize = 1024;

/// The first and the last cell along every axis.
fn corners(cells: &ResolvedSlice) -> Vec<usize> {
    let shape = cells.shape();
    let mut at = vec![Vec::new()];
    for &n in shape.dims() {
        let ends = if n > 1 { vec![0, n - 1] } else { vec![0] };
        let longer = |index: &Vec<usize>| {
            let index = index.clone();
            ends.iter().map(move |end| [&index[..], &[*end]].concat()).collect::<Vec<_>>()
        };
        at = at.iter().flat_map(longer).collect();
    }
    at.iter().map(|index| cells.flat(index)).collect()
}

/// Which part of the tensor that a view was only moved from it shows: `[:, 0..2]`. `None` where the view is not a
/// part, is computed, or shows all.
fn moved_part(program: &Program, view: &View) -> Option<String> {
    if view.slice.is_all() {
        return None;
    }
    let count = view.cells.shape().len();
    let flats = if count <= MAX_MOVED { view.cells.flats().collect() } else { corners(&view.cells) };
    let cell = |flat| Cell { node: view.node, flat };
    let mut cells: Vec<Cell> = flats.into_iter().map(cell).collect();
    loop {
        cells = cells.iter().map(|c| copied(program, *c)).collect::<Option<_>>()?;
        let at = cells.first()?.node;
        if !program.node(at).inline {
            break;
        }
    }
    let of = program.node(cells[0].node);
    if count >= of.shape.len() {
        return None;
    }
    let at: Vec<_> = cells.iter().map(|c| of.shape.unflat(c.flat)).collect();
    let mut full = true;
    let part: Vec<String> = of
        .shape
        .dims()
        .iter()
        .enumerate()
        .filter(|(_, n)| **n > 1)
        .map(|(d, n)| {
            let (first, end) = at.iter().fold((*n, 0), |(first, end), i| (first.min(i[d]), end.max(i[d] + 1)));
            if (first, end) == (0, *n) {
                return ":".to_owned();
            }
            full = false;
            format!("{first}..{end}")
        })
        .collect();
    (!full).then(|| format!("[{}]", part.join(", ")))
}

/// A view's values and labels.
pub fn tensor(s: &Session, trace: &AnyTrace, view: &View) -> TensorDoc {
    let (rows, columns) = s.view_labels(view);
    let sentences = s.sentence_labels(view);
    let path = trace.program().node(view.node).path.to_string();
    let value = trace.value(view.node);
    let values = match &value {
        AnyValue::F64(Value::Float(t)) => CellValues::F64(view.cells.copied(t)),
        AnyValue::F32(Value::Float(t)) => CellValues::F32(view.cells.copied(t)),
        other => with_any!(AnyValue, other, v => match v {
            Value::Bool(t) => CellValues::Bool(view.cells.copied(t)),
            v => CellValues::Int(view.cells.copied(v.int())),
        }),
    };
    let words = s.id_words(view.run, view.node);
    // Ids of several sentences have no labels in common: each has its word next to it.
    let several = view.shape().axes().first() == Some(&Axis::Batch) && view.shape().dims()[0] > 1;
    let ids = several && view.shape().rank() == 2 && *Name::parse(&path).last() == Role::Ids;
    let side = Name::parse(&path).site.side();
    let words = words.or_else(|| side.filter(|_| ids).map(|side| s.words(side)));
    let sentences = if ids { vec![(rows.clone(), Vec::new())] } else { sentences };
    let names = match (&values, words) {
        (CellValues::Int(ids), Some(words)) => ids.iter().map(|id| words.word(*id)).collect(),
        _ => Vec::new(),
    };
    let shape = view.shape();
    TensorDoc {
        symbol: view.symbol.clone(),
        masked: matches!(Name::parse(&path).last(), Role::MaskedScores | Role::MaskBias),
        path,
        slice: view.slice.to_string(),
        shape: shape.dims().to_vec(),
        axes: shape.axes().iter().map(|a| a.name()).collect(),
        rows,
        columns,
        values,
        sentences,
        names,
        blanks: std::collections::BTreeMap::new(),
        reference: None,
    }
}
