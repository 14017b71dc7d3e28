//! `RECORDING --model FOLDER|SCENARIO`: a recording laid over our program, which reads what the recorded model read.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::global::Global;
use super::open_recorded::is_recording;
use super::{Failure, common, compare, inputs};
use crate::app::app::App;
use crate::checkpoint;
use crate::checkpoint::Given;
use crate::checkpoint::inputs::Sides;
use crate::debug::compare::bound::Bound;
use crate::debug::compare::{Options, Reference, Report, State, compare as find};
use crate::export::doc::{CellValues, ReferenceDoc, StepDoc};
use crate::model::Sequences;
use crate::scenario::Loaded;
use crate::scenario::schema::Scenario;
use crate::session::{self, Session};
use crate::text::{Lang, Msg, NumberFormat, escape};
use crate::trace::derive::Cell;
use crate::walkthrough::Step;

/// The model, opened on the inputs of a recording.
///
/// # Errors
/// What is no recording, or no model; inputs that the recording does not have.
pub(super) fn open(
    recording: &Path,
    model: &Path,
    inputs: &inputs::Args,
    options: session::Options,
    lang: Lang,
) -> Result<Session, Failure> {
    let name = |path: &Path| escape(&path.to_string_lossy()).into_owned();
    if !is_recording(recording) {
        return Err(Msg::new("bind.no_recording").arg("source", name(recording)).into());
    }
    if is_recording(model) {
        return Err(Msg::new("bind.no_model").arg("model", name(model)).into());
    }
    let mut inputs = inputs::Args { model: None, ..inputs.clone() };
    let given = !inputs.given().is_empty();
    let mut sides = if given { None } else { read(recording) };
    if checkpoint::is_checkpoint(model) {
        if !given && Sides::open(recording).is_ok() {
            // Its family knows what else goes with the ids.
            inputs.inputs = Some(recording.to_owned());
            sides = None;
        }
    } else if given {
        return Err(inputs::refused(model).into());
    }
    let mut loaded = common::load(model, &inputs, lang)?;
    if let Some(sides) = sides {
        put(&mut loaded.scenario, sides);
        loaded.text = crate::scenario::write(&loaded.scenario);
    }
    common::open_loaded(Loaded { ..loaded }, options, lang)
}

/// What the recorded model read.
fn read(recording: &Path) -> Option<Sides> {
    if let Ok(sides) = Sides::open(recording) {
        return Some(sides);
    }
    let (session, _) = session::open_trace(recording, session::Options::default()).ok()?;
    let (source, target) = (session.inputs.source.as_ref(), session.inputs.target.as_ref());
    let main = source.or(target).filter(|s| !s.ids.is_empty())?;
    let rows = |s: &Sequences, of: &[i64]| of.chunks(s.tokens().max(1)).map(<[i64]>::to_vec).collect::<Vec<_>>();
    let seen = |all: &Vec<bool>| all.chunks(main.tokens().max(1)).map(<[bool]>::to_vec).collect();
    Some(Sides {
        ids: rows(main, &main.ids),
        target: source.and(target).map(|t| rows(t, &t.ids)),
        mask: main.real.as_ref().map(seen),
        types: main.types.as_ref().map(|types| rows(main, types)),
    })
}

/// Lets a scenario read what was read.
fn put(scenario: &mut Scenario, sides: Sides) {
    let Sides { ids, target, mask, types } = sides;
    if scenario.model.encoder.is_some() {
        let old = scenario.source.take().unwrap_or_default();
        let new = checkpoint::inputs::input(ids, mask, types);
        scenario.source = Some(crate::scenario::schema::Input { positions: old.positions, ..new });
        if let Some(target) = target {
            let old = scenario.target.take().unwrap_or_default();
            let new = checkpoint::inputs::input(target, None, None);
            scenario.target = Some(crate::scenario::schema::Input { positions: old.positions, ..new });
        }
    } else {
        let old = scenario.target.take().unwrap_or_default();
        let new = checkpoint::inputs::input(ids, mask, types);
        scenario.target = Some(crate::scenario::schema::Input { positions: old.positions, ..new });
    }
}

/// A recording next to a run.
pub(super) struct Laid {
    run: usize,
    report: Report,
    reference: Reference,
    bound: Bound,
}

impl Laid {
    /// Where `--model` is given: the recording over the run called `name`, or the first that has its tensors.
    ///
    /// # Errors
    /// A recording that has nothing of the run.
    pub(super) fn of(
        source: &Path,
        inputs: &inputs::Args,
        session: &Session,
        name: Option<&str>,
        global: &Global,
        lang: Lang,
    ) -> Result<Option<Self>, Failure> {
        if inputs.model.is_none() {
            return Ok(None);
        }
        let run = name.map_or(Ok(0), |name| common::run(session, name))?;
        let options = Options { rounding: global.rounding(), ..Options::default() };
        let asked = &session.runs[run].name;
        let reference = Reference::open(source, asked, false, global.precision(), &Given::default());
        let reference = reference.map_err(|e| compare::unopened(e, lang))?;
        let report = find(session, run, &reference, &options).map_err(|e| compare::failed(&e))?;
        let bound = Bound::new(session, run, &reference, &options).map_err(|e| compare::failed(&e))?;
        Ok(Some(Self { run, report, reference, bound }))
    }

    /// How the worst of a step's tensors compares: its state, its error, its name in the recording.
    fn of_step(&self, step: &Step) -> Option<(State, f64, &str)> {
        let views = step.views.iter().filter(|v| v.run == self.run);
        let checked = views.filter_map(|v| self.report.of(v.node)).filter(|c| c.state != State::Unchecked);
        let one = |c: &crate::debug::compare::Checked| {
            let rms = c.against.as_ref().and_then(|a| a.measure.as_ref()).map_or(f64::NAN, |m| m.rms);
            (c.state, rms)
        };
        let worst = checked.max_by(|a, b| {
            let (a, b) = (one(a), one(b));
            (a.0 as u8 == State::Diverged as u8).cmp(&(b.0 as u8 == State::Diverged as u8)).then(a.1.total_cmp(&b.1))
        })?;
        let (state, rms) = one(worst);
        Some((state, rms, worst.against.as_ref().map_or("", |a| &a.name)))
    }

    /// The end of a step's line.
    pub(super) fn words(&self, step: &Step, lang: Lang) -> String {
        let Some((state, rms, name)) = self.of_step(step) else { return String::new() };
        let state = Msg::new(state_key(state)).render(lang);
        let rms = NumberFormat::Scientific(1).format(rms);
        Msg::new("bind.of_step").arg("name", escape(name)).arg("state", state).arg("rms", rms).render(lang)
    }

    /// For programs.
    pub(super) fn to_json(&self, step: &Step) -> Json {
        let Some((state, rms, name)) = self.of_step(step) else { return Json::Null };
        let rms = if rms.is_finite() { rms.into() } else { Json::from(rms.to_string()) };
        json!({ "name": name, "state": format!("{state:?}").to_lowercase(), "rms": rms })
    }

    /// Their numbers, and ours from their operands, into a step's document.
    pub(super) fn annotate(&self, doc: &mut StepDoc, session: &Session, step: &Step, number: NumberFormat, lang: Lang) {
        for (view, tensor) in step.views.iter().zip(&mut doc.tensors).filter(|(v, _)| v.run == self.run) {
            let Some(against) = self.report.of(view.node).and_then(|c| c.against.as_ref()) else { continue };
            let node = session.runs[self.run].program.node(view.node);
            let Some(theirs) = self.reference.beside(against, node) else { continue };
            let again = self.bound.recomputed_node(view.node);
            let flats: Vec<usize> = view.cells.flats().collect();
            let values = flats.iter().map(|i| theirs[*i].unwrap_or(f64::NAN)).collect();
            let recomputed = flats.iter().map(|i| again[*i]).collect();
            let values = CellValues::F64(values);
            tensor.reference =
                Some(ReferenceDoc { name: against.name.clone(), values, recomputed: CellValues::F64(recomputed) });
            let of_view = |d: &&mut crate::export::doc::DerivationDoc| d.symbol == view.symbol;
            for derivation in doc.derivations.iter_mut().filter(of_view) {
                let cell = view.cell(&derivation.index);
                let Some(their) = theirs[cell.flat] else { continue };
                let msg = Msg::new("bind.cell")
                    .arg("theirs", number.format(their))
                    .arg("recomputed", number.format(again[cell.flat]));
                derivation.text.push(' ');
                derivation.text.push_str(&msg.render(lang));
                if let Some(most) = self.most(session, cell).filter(|_| derivation.value.to_bits() != their.to_bits()) {
                    let msg = Msg::new("bind.most")
                        .arg("term", most.0)
                        .arg("difference", NumberFormat::Scientific(2).format(most.1));
                    derivation.text.push(' ');
                    derivation.text.push_str(&msg.render(lang));
                }
            }
        }
    }

    /// The term that differs most, and by how much.
    fn most(&self, session: &Session, cell: Cell) -> Option<(String, f64)> {
        let ours = session.trace(self.run).ok()?;
        let terms = self.bound.terms(ours, cell);
        let first = terms.first().filter(|t| t.ours.to_bits() != t.theirs.to_bits())?;
        let program = &session.runs[self.run].program;
        let name = |c: &Cell| {
            let node = program.node(c.node);
            let index = &node.shape.unflat(c.flat)[..node.shape.rank()];
            let mut name = node.path.to_string();
            for i in index {
                let _ = write!(name, "[{i}]");
            }
            name
        };
        let names: Vec<String> = first.operands.iter().map(name).collect();
        Some((escape(&names.join("·")).into_owned(), first.theirs - first.ours))
    }

    /// Shows the comparison in the debugger.
    pub(super) fn show(self, app: &mut App) {
        app.lay(self.report, self.reference, self.bound);
    }
}

fn state_key(state: State) -> &'static str {
    match state {
        State::Diverged => "compare.state.diverged",
        State::Drift => "compare.state.drift",
        State::Match => "compare.state.match",
        State::Unchecked => "compare.state.unchecked",
    }
}
