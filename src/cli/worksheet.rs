//! `worksheet`: the tables of steps with cells left blank, and their key.

use std::collections::HashMap;
use std::path::PathBuf;

use super::global::Global;
use super::{Failure, common, value};
use crate::debug::quiz::{self, Question};
use crate::export::doc::{StepDoc, Table, TensorDoc};
use crate::export::document::{Settings, document, inputs_of};
use crate::export::{Format, Options, Writer, file::Target, select::Selection};
use crate::session::{Session, Steps};
use crate::text::{Lang, Msg, NumberFormat, tr};
use crate::trace::derive::Cell;
use crate::walkthrough::View;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    #[command(flatten)]
    pub inputs: super::inputs::Args,
    /// Which steps.
    #[arg(long, value_name = "N|A..B|all", value_parser = value::selection)]
    pub step: Selection,
    /// How many blanks.
    #[arg(long, value_name = "N", default_value = "12", value_parser = value::count)]
    pub blanks: usize,
    /// Which cells are drawn.
    #[arg(long, value_name = "S", default_value = "1")]
    pub seed: u64,
    /// The run; the walkthrough unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    #[arg(long, value_name = "FORMAT", value_parser = value::format)]
    pub(super) format: Option<Format>,
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    pub force: bool,
}

/// Writes the worksheet.
///
/// # Errors
/// A scenario that cannot be opened, steps that are not there or have nothing to ask, a file that cannot be written.
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let session = common::open(&args.scenario, &args.inputs, global, None, lang)?;
    let steps = common::steps(&session, args.run.as_deref())?;
    let range = match &args.step {
        Selection::One(path) => (path[0], path[0]),
        Selection::Range(from, to) => (*from, *to),
        Selection::All => (1, u32::MAX),
    };
    let number = global.number_of(&session).unwrap_or_default();
    let questions = quiz::draw(&session, &steps, range, args.blanks, args.seed).map_err(|e| common::cannot_run(&e))?;
    if questions.is_empty() {
        return Err(Msg::new("worksheet.nothing").arg("steps", &args.step).into());
    }
    let of_path = args.output.as_deref().and_then(Format::of_path);
    let format = args.format.or(of_path).unwrap_or(Format::Markdown);
    let options = Options { lang, number, derivations: false, array: true, max_blocks: 64, ..Options::default() };
    let docs = sheet(&session, &steps, &questions, number, lang).map_err(|e| common::cannot_run(&e))?;
    Target::new(args.output.as_deref()).write(args.force, |out| {
        let mut writer = Writer::begin(format, &options, out)?;
        for doc in &docs {
            writer.step(doc)?;
        }
        writer.end().map(|_| ())
    })?;
    Ok(())
}

/// The steps that are asked about, with blanks, then the key.
fn sheet(
    s: &Session,
    steps: &Steps,
    questions: &[Question],
    number: NumberFormat,
    lang: Lang,
) -> Result<Vec<StepDoc>, crate::trace::RunError> {
    let asked: HashMap<(usize, Cell), usize> =
        questions.iter().enumerate().map(|(i, q)| ((q.run, q.cell), i + 1)).collect();
    let settings = Settings { lang, number, round: None, derivations: 0, terms: 64, inputs: true };
    let digits = match number {
        NumberFormat::Decimals(d) | NumberFormat::Scientific(d) => d,
        NumberFormat::Shortest | NumberFormat::Bits => 4,
    };
    let mut docs = Vec::new();
    let mut last = None;
    for q in questions {
        if last == Some(q.step) {
            continue;
        }
        last = Some(q.step);
        let step = &steps.list()[q.step];
        let mut doc = document(s, steps, q.step, step, &settings)?;
        // A blank is a blank wherever its cell is shown: what a student found goes on from there.
        let read = inputs_of(s, steps, q.step, step)?;
        let shown = read.iter().chain(&step.views).zip(doc.inputs.iter_mut().chain(&mut doc.tensors));
        for (view, tensor) in shown {
            leave_blank(view, tensor, &asked);
        }
        doc.note.clear();
        docs.push(doc);
    }
    let mut key = Table {
        columns: ["worksheet.number", "worksheet.cell", "worksheet.value", "worksheet.arithmetic"]
            .map(|k| tr(lang, k).to_owned())
            .to_vec(),
        rows: Vec::new(),
    };
    for (i, q) in questions.iter().enumerate() {
        let (answer, line) = (q.answer(s, steps, digits)?, q.derivation(s, steps, digits, lang)?);
        key.rows.push(vec![format!("({})", i + 1), q.name.clone(), answer, line]);
    }
    docs.push(StepDoc {
        scenario: s.scenario.name.clone(),
        title: tr(lang, "worksheet.key").to_owned(),
        table: Some(key),
        ..StepDoc::default()
    });
    Ok(docs)
}

fn leave_blank(view: &View, tensor: &mut TensorDoc, asked: &HashMap<(usize, Cell), usize>) {
    for (flat, cell) in view.cells.flats().enumerate() {
        if let Some(number) = asked.get(&(view.run, Cell { node: view.node, flat: cell })) {
            tensor.blanks.insert(flat, *number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{EMBEDDED, syntax};

    fn water_class() -> Session {
        let text = EMBEDDED.iter().find(|e| e.0 == "water_class").expect("embedded").1;
        let scenario = syntax::read("water_class", text).expect("reads");
        crate::session::open(scenario, None, crate::session::Options::default()).expect("opens")
    }

    #[test]
    fn blanks_hide_their_numbers_and_the_key_has_them() {
        let s = water_class();
        let steps = std::sync::Arc::clone(&s.steps);
        let questions = quiz::draw(&s, &steps, (17, 31), 12, 1).expect("runs");
        assert_eq!(questions.len(), 12);
        assert_eq!(questions, quiz::draw(&s, &steps, (17, 31), 12, 1).expect("runs"));
        let number = NumberFormat::Decimals(4);
        let docs = sheet(&s, &steps, &questions, number, Lang::Zh).expect("runs");
        let key = docs.last().and_then(|d| d.table.as_ref()).expect("a key");
        assert_eq!(key.rows.len(), 12);
        for format in [Format::Markdown, Format::Latex, Format::Html, Format::Text] {
            let options = Options { lang: Lang::Zh, derivations: false, ..Options::default() };
            let mut out = Vec::new();
            crate::export::write(format, &docs, &options, &mut out).expect("writes");
            let text = String::from_utf8(out).expect("text");
            for (i, q) in questions.iter().enumerate() {
                assert!(text.contains(&format!("({})", i + 1)), "{format:?} {}", q.name);
            }
        }
        for (i, q) in questions.iter().enumerate() {
            let doc = docs.iter().find(|d| d.step == steps.list()[q.step].number).expect("its step");
            let flat = steps.list()[q.step].views[q.view].shape().flat(&q.index);
            let shown = doc.tensors[q.view].shown(flat, number);
            assert!(shown.starts_with(&format!("({})", i + 1)), "{shown}");
            assert!(key.rows[i][3].contains(&q.name), "{:?}", key.rows[i]);
        }
    }
}
