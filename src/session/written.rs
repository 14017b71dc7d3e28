//! The scenario's own steps: each view's tensor found, or the place in the file where it is not.

use super::Session;
use super::remarks::given;
use crate::scenario::diagnostic::Problem;
use crate::scenario::schema::{self, ViewSpec};
use crate::scenario::symbols::is_name;
use crate::tensor::Slice;
use crate::text::{Msg, escape, nearest};
use crate::walkthrough::{Step, View};

/// The scenario's own steps, else the plan of its first run.
pub(super) fn walkthrough(s: &Session) -> Result<Vec<Step>, Vec<Problem>> {
    let mut problems = Vec::new();
    for (name, place) in &s.scenario.symbols {
        let at = format!("symbols.\"{name}\"");
        if !is_name(name) {
            let msg = Msg::new("scenario.symbol_name").arg("name", escape(name));
            problems.push(Problem::new(at, msg).near(format!("{name:?}:")));
            continue;
        }
        if let Err(p) = find_view(s, 0, place.run.as_deref(), name, &place.path, &place.slice, &at) {
            problems.push(p.near(format!("{name:?}:")));
        }
    }
    let mut steps: Vec<Step> = Vec::new();
    for (i, spec) in s.scenario.walkthrough.iter().enumerate() {
        let at = format!("walkthrough[{i}]");
        let near = format!("number: {}", spec.number);
        if steps.last().is_some_and(|last| last.number[0] >= spec.number) {
            let msg = Msg::new("scenario.step_order").arg("number", spec.number);
            problems.push(Problem::new(format!("{at}.number"), msg).near(&near));
            continue;
        }
        let run = match run_of(s, 0, spec.run.as_deref(), &at) {
            Ok(run) => run,
            Err(p) => {
                problems.push(p.near(&near));
                continue;
            }
        };
        let mut views = Vec::new();
        for (j, view) in spec.views.iter().enumerate() {
            let at = format!("{at}.views[{j}]");
            let found = match view {
                ViewSpec::Symbol(name) => {
                    if let Some(p) = s.scenario.symbols.get(name) {
                        find_view(s, run, p.run.as_deref(), name, &p.path, &p.slice, &at)
                    } else {
                        let mut p = Problem::new(at, Msg::new("scenario.unknown_symbol").arg("name", escape(name)));
                        if let Some(near) = nearest(name, s.scenario.symbols.keys().map(String::as_str)) {
                            p = p.help(Msg::new("diagnostic.did_you_mean").arg("name", near));
                        }
                        Err(p)
                    }
                }
                ViewSpec::Of(name, path) => find_view(s, run, None, name, path, "", &at),
                ViewSpec::Part(name, path, slice) => find_view(s, run, None, name, path, slice, &at),
            };
            match found {
                Ok(view) => views.push(view),
                // A symbol that is wrong was reported already, where it is defined.
                Err(p) if problems.iter().any(|reported| reported.msg == p.msg) => {}
                Err(p) => problems.push(p.near(&near)),
            }
        }
        steps.push(Step {
            number: vec![spec.number],
            section: spec.section.clone(),
            phase: spec.phase.clone(),
            run,
            title: given(&spec.title),
            note: given(&spec.note),
            formula: spec.formula.clone(),
            views,
        });
    }
    for path in s.scenario.remarks.keys() {
        if s.runs.iter().all(|r| r.program.find(path).is_none()) {
            let at = format!("remarks.\"{path}\"");
            let msg = Msg::new("scenario.unknown_path").arg("path", escape(path));
            let mut p = Problem::new(at, msg).near(format!("{path:?}:"));
            if let Some(near) = s.runs[0].program.similar_paths(path, 1).first() {
                p = p.help(Msg::new("diagnostic.did_you_mean").arg("name", near));
            }
            problems.push(p);
        }
    }
    for (i, e) in s.scenario.expected.iter().enumerate() {
        let at = format!("expected[{i}]");
        match find_view(s, 0, e.run.as_deref(), "", &e.path, &e.slice, &at) {
            Ok(view) => problems.extend(misshapen(e, &view, &at)),
            Err(p) => problems.push(p),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(if steps.is_empty() { s.plan_of(0) } else { steps })
}

fn run_of(s: &Session, default: usize, name: Option<&str>, at: &str) -> Result<usize, Problem> {
    let Some(name) = name else { return Ok(default) };
    s.run_named(name).ok_or_else(|| {
        let mut p = Problem::new(format!("{at}.run"), Msg::new("scenario.unknown_run").arg("name", escape(name)));
        if let Some(near) = nearest(name, s.runs.iter().map(|r| r.name.as_str())) {
            p = p.help(Msg::new("diagnostic.did_you_mean").arg("name", near));
        }
        p
    })
}

/// What is wrong with the number or the nesting of expected values.
fn misshapen(e: &schema::Expected, view: &View, at: &str) -> Option<Problem> {
    let (flat, shape) = (e.values.flat(), view.shape());
    let at = format!("{at}.values");
    if shape.len() != flat.len() {
        let msg = Msg::new("scenario.expected_count").arg("found", flat.len()).arg("wanted", shape.len());
        return Some(Problem::new(at, msg));
    }
    // Axes of one need no brackets of their own.
    let long = |dims: &[usize]| dims.iter().copied().filter(|n| *n != 1).collect::<Vec<_>>();
    let nested = e.values.dims();
    (nested.len() > 1 && long(nested) != long(shape.dims())).then(|| {
        let found: Vec<String> = nested.iter().map(usize::to_string).collect();
        let msg = Msg::new("scenario.expected_nesting").arg("found", found.join(" × ")).arg("wanted", shape);
        Problem::new(at, msg)
    })
}

pub(super) fn find_view(
    s: &Session,
    default: usize,
    run: Option<&str>,
    symbol: &str,
    path: &str,
    slice: &str,
    at: &str,
) -> Result<View, Problem> {
    let run = run_of(s, default, run, at)?;
    let program = &s.runs[run].program;
    // Views of a step are tuples, symbols and expected values have fields.
    let part = |field: &str, index: usize| {
        if at.contains(".views[") { format!("{at}[{index}]") } else { format!("{at}.{field}") }
    };
    let Some(node) = program.find(path) else {
        let mut p = Problem::new(part("path", 1), Msg::new("scenario.unknown_path").arg("path", escape(path)));
        if let Some(near) = program.similar_paths(path, 1).first() {
            p = p.help(Msg::new("diagnostic.did_you_mean").arg("name", near));
        }
        return Err(p);
    };
    let sliced = |msg| Problem::new(part("slice", 2), msg).help(Msg::new("scenario.slice_help"));
    let slice = Slice::parse(slice).map_err(|e| sliced(e.into()))?;
    View::new(program, run, node, symbol, slice).map_err(sliced)
}

/// A view of the session for anything that is named by run, path and slice.
///
/// # Errors
/// Where there is no such run, path or slice.
pub fn view(s: &Session, run: usize, symbol: &str, path: &str, slice: &str) -> Result<View, Problem> {
    find_view(s, run, None, symbol, path, slice, path)
}
