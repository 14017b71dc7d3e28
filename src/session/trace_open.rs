//! A trace folder opened: the session whose runs were kept there, without the scenario's files.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::edits::resolve;
use super::open::new_run;
use super::trace_folder::SessionDoc;
use super::written::walkthrough;
use super::{AnyBindings, Inputs, Options, Run, RunKind, Session};
use crate::program::{Blob, Program};
use crate::scenario::diagnostic::Problem;
use crate::scenario::syntax;
use crate::source::recording::{Dtype, Recorded};
use crate::source::trace::{Damaged, Folder, MANIFEST, SESSION};
use crate::tensor::{Precision, Real, Shape, Tensor, Value};
use crate::text::{Lang, Msg, escape};
use crate::trace::train::TrainStep;
use crate::trace::{AnyTrace, Bindings, Rounder, Trace};

/// Opens a trace folder; gives what of it is damaged, which is not part of the session.
///
/// # Errors
/// What the folder lacks, as far as nothing can be opened without it.
pub fn open_trace(path: &Path, options: Options) -> Result<(Session, Vec<Damaged>), Msg> {
    let folder = Folder::open(path)?;
    let broken = |file: &str, why: &str| {
        Msg::new("trace.broken")
            .arg("folder", escape(&path.to_string_lossy()))
            .arg("file", file)
            .arg("why", escape(why))
    };
    let text = folder.text(SESSION)?;
    if let Some(entry) = folder.manifest.parts.iter().find(|p| p.file == SESSION)
        && crc32fast::hash(&text) != entry.crc32
    {
        return Err(broken(SESSION, &Msg::new("trace.part.checksum").render(Lang::En)));
    }
    let doc: SessionDoc = serde_json::from_slice(&text).map_err(|e| broken(SESSION, &e.to_string()))?;
    if let Some(wanted) = options.precision.filter(|p| *p != doc.precision) {
        let name = |p: Precision| format!("{p:?}").to_lowercase();
        return Err(Msg::new("trace.precision").arg("found", name(doc.precision)).arg("wanted", name(wanted)));
    }
    if let Some(wanted) = options.rounding.filter(|r| Some(*r) != doc.rounding) {
        let found = doc.rounding.map_or_else(|| "exact".to_owned(), |r| r.to_string());
        return Err(Msg::new("trace.rounding").arg("found", found).arg("wanted", wanted));
    }
    let scenario = syntax::read(SESSION, &doc.scenario).map_err(|d| broken(SESSION, &d.msg.render(Lang::En)))?;
    let (weights, lost) = folder.weights();
    let mut damaged = folder.damaged.clone();
    damaged.extend(lost);
    let shapes: HashMap<&str, Shape> = doc.specs.iter().map(|s| (s.path.as_str(), s.shape)).collect();
    let params = match doc.precision {
        Precision::F32 => AnyBindings::F32(bound(&weights, &shapes)),
        Precision::F64 => AnyBindings::F64(bound(&weights, &shapes)),
    };
    let inputs: Vec<Arc<Inputs>> = doc.inputs.into_iter().map(Arc::new).collect();
    let common = inputs.first().cloned().ok_or_else(|| broken(SESSION, "no inputs"))?;
    let mut runs: Vec<Run> = Vec::new();
    for (i, run) in doc.runs.into_iter().enumerate() {
        let blob = |path: &str| constant(&folder.tensor("constants-", &format!("{i}:{path}"))?);
        let program = run.program.program(&blob).map_err(|why| broken(SESSION, &why))?;
        let read = inputs.get(run.inputs).ok_or_else(|| broken(SESSION, "no inputs"))?;
        if run.outputs.nodes().any(|id| id.index() >= program.len()) {
            return Err(broken(SESSION, &run.name));
        }
        runs.push(new_run(&run.name, run.kind, program, run.outputs, read));
    }
    if runs.is_empty() {
        return Err(broken(SESSION, "no runs"));
    }
    let mut session = Session {
        scenario,
        origin: doc.origin,
        text: None,
        precision: doc.precision,
        rounding: doc.rounding,
        source_words: doc.source_words.indexed(),
        target_words: doc.target_words.indexed(),
        inputs: common,
        specs: doc.specs,
        params,
        updates: doc.updates,
        coverage: doc.coverage,
        runs,
        steps: Arc::default(),
        detail: doc.detail,
        base: None,
        run_steps: Mutex::default(),
        budget: None,
        own: std::sync::OnceLock::new(),
        patient: std::sync::atomic::AtomicBool::default(),
        model_type: std::sync::OnceLock::new(),
    };
    let wrong = |all: Vec<Problem>| match all.into_iter().next() {
        Some(problem) => broken(SESSION, &problem.msg.render(Lang::En)),
        None => broken(SESSION, "?"),
    };
    let held = resolve(&session).map_err(wrong)?.held;
    for (run, held) in session.runs.iter_mut().zip(held) {
        run.held = Arc::new(held);
    }
    restore_lessons(&mut session);
    for (i, run) in session.runs.iter().enumerate() {
        let kept = folder.manifest.runs.get(i).is_some_and(|r| r.kept && r.name == run.name);
        if !kept {
            continue;
        }
        let source = Arc::new(folder.source(i, &run.program, &weights));
        let held = Arc::clone(&run.held);
        let rounder = session.rounding.map(Rounder::from);
        let trace = match session.precision {
            Precision::F32 => {
                AnyTrace::F32(Trace::stored(&run.program, source as _).with_held(held).with_rounder(rounder))
            }
            Precision::F64 => {
                AnyTrace::F64(Trace::stored(&run.program, source as _).with_held(held).with_rounder(rounder))
            }
        };
        let _ = run.trace.set(Ok(trace));
    }
    damaged.extend(lies(&folder, &session));
    let mut steps = walkthrough(&session).map_err(wrong)?;
    // What is not there cannot be shown.
    for step in &mut steps {
        step.views
            .retain(|v| session.runs[v.run].trace.get().is_none_or(|t| t.as_ref().is_ok_and(|t| t.reached(v.node))));
    }
    session.steps = Arc::new(session.index_steps(steps));
    Ok((session, damaged))
}

/// Where the manifest says something else of a run's nodes than its program: what other programs read is wrong then.
fn lies(folder: &Folder, session: &Session) -> Option<Damaged> {
    let shown = |path: &str, dims: &[usize]| format!("{} {dims:?}", escape(path));
    for (entry, run) in folder.manifest.runs.iter().zip(&session.runs).filter(|(e, _)| e.kept) {
        let nodes = run.program.nodes().map(|(_, n)| shown(&n.path, n.shape.dims()));
        let listed = entry.nodes.iter().map(|n| shown(&n.path, &n.shape));
        if let Some((found, wanted)) = listed.clone().zip(nodes).find(|(a, b)| a != b) {
            let why = Msg::new("trace.part.node").arg("found", found).arg("wanted", wanted);
            return Some(Damaged { file: MANIFEST.to_owned(), why });
        }
        if listed.len() != run.program.len() {
            let why = Msg::new("trace.part.nodes").arg("found", listed.len()).arg("wanted", run.program.len());
            return Some(Damaged { file: MANIFEST.to_owned(), why });
        }
    }
    None
}

/// What each update reads besides the parameters, as it was when the session was opened first.
fn restore_lessons(session: &mut Session) {
    for i in 0..session.runs.len() {
        if session.runs[i].kind != RunKind::Update {
            continue;
        }
        let Some(forward) = session.forward_of(i) else { continue };
        let Some(loss) = session.runs[forward].outputs.loss else { continue };
        let rule = session.optimiser_of(forward);
        let program = Program::clone(&session.runs[forward].program);
        if let Ok(train_step) = TrainStep::new(program, loss, &rule) {
            session.runs[i].train_step = Some((Arc::new(train_step), rule));
        }
    }
}

/// Parameters as what a run reads.
fn bound<T: Real>(weights: &HashMap<String, Recorded>, shapes: &HashMap<&str, Shape>) -> Bindings<T> {
    let one = |(path, tensor): (&String, &Recorded)| {
        let value: Value<T> = tensor.read()?;
        let shape = shapes.get(path.as_str()).copied().filter(|s| s.same_dims(value.shape()));
        let shape = shape.unwrap_or(*value.shape());
        Some((path.as_str().into(), value.reshaped(shape)))
    };
    weights.iter().filter_map(one).collect()
}

/// The numbers of a constant.
fn constant(tensor: &Recorded) -> Option<Blob> {
    let small = |t: Tensor<i64>| t.data().iter().map(|x| *x as u8).collect();
    Some(match (tensor.stored, tensor.read::<f64>()?) {
        (Dtype::U8, Value::Int(t)) => Blob::Reasons(small(t)),
        (_, Value::Int(t)) => Blob::Int(t.data().into()),
        (_, Value::Float(t)) => Blob::Float(t.data().into()),
        (_, Value::Bool(_)) => return None,
    })
}
