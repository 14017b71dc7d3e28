//! `export`: steps as files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::bind::Laid;
use super::global::Global;
use super::{Failure, common, value};
use crate::export::document::{Settings, document};
use crate::export::{Format, Options, Writer, book, file::Target, select::Selection};
use crate::session::{Session, Steps};
use crate::text::{Lang, Msg};
use crate::walkthrough::Step;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// What a checkpoint reads.
    #[command(flatten)]
    pub inputs: super::inputs::Args,
    /// Which steps.
    #[arg(long, value_name = "N|A..B|all", value_parser = value::selection, required_unless_present = "book")]
    pub step: Option<Selection>,
    /// One page of all steps in a folder, instead.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["step", "format", "output", "derivations"])]
    pub book: Option<PathBuf>,
    /// The run; the scenario's first unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Before which update of the training, counted from 1.
    #[arg(long, value_name = "N", value_parser = value::count)]
    pub update: Option<usize>,
    #[arg(long, value_name = "FORMAT", value_parser = value::format)]
    pub(super) format: Option<Format>,
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    pub force: bool,
    /// LaTeX and Typst: a whole document.
    #[arg(long)]
    pub standalone: bool,
    /// CSV and TSV: names in every row.
    #[arg(long)]
    pub repeat_names: bool,
    /// Write what each step reads too, in the formats for people.
    #[arg(long)]
    pub operands: bool,
    /// How many derivations of a step.
    #[arg(long, value_name = "all|none|N", default_value = "20000", value_parser = value::derivations)]
    pub derivations: value::Derivations,
    /// Detail of a walkthrough made from the program; the scenario's own unless given.
    #[arg(long, value_name = "LEVEL")]
    pub detail: Option<value::DetailName>,
}

impl Args {
    /// The format: as asked for, else as the file's ending says, else text.
    pub fn format(&self) -> Format {
        self.format.or_else(|| self.output.as_deref().and_then(Format::of_path)).unwrap_or_default()
    }

    /// Where to.
    pub fn target(&self) -> Target {
        Target::new(self.output.as_deref())
    }
}

/// Writes the chosen steps.
///
/// # Errors
/// A scenario that cannot be opened, a step or run that is not there, a file that cannot be written.
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let session = common::open_at(&args.scenario, &args.inputs, global, args.detail, args.update, lang)?;
    if let Target::File(path) = args.target() {
        common::no_input(&session, &path)?;
    }
    let steps = common::steps(&session, args.run.as_deref())?;
    if let Some(folder) = &args.book {
        return book(&session, &steps, folder, args.force, global, lang);
    }
    let selection = args.step.as_ref().unwrap_or(&Selection::All);
    let chosen = choose(&session, &steps, selection)?;
    let number = global.number_of(&session).unwrap_or_default();
    let options = Options {
        lang,
        number,
        array: selection.is_several(),
        derivations: args.derivations.limit() > 0,
        standalone: args.standalone,
        repeat_names: args.repeat_names,
        ..Options::default()
    };
    let settings = Settings {
        lang,
        number,
        round: global.rounding(),
        derivations: args.derivations.limit(),
        terms: usize::MAX,
        inputs: args.operands,
    };
    // Runs are executed before the file is opened: nothing half-done is left where one of them fails.
    for (_, step) in &chosen {
        session.trace(step.run).map_err(common::cannot_run)?;
    }
    let laid = Laid::of(&args.scenario, &args.inputs, &session, args.run.as_deref(), global, lang)?;
    args.target().write(args.force, |out| {
        let mut writer = Writer::begin(args.format(), &options, out)?;
        writer.each(&chosen, |(at, step)| {
            let mut doc = document(&session, &steps, *at, step, &settings).map_err(io::Error::other)?;
            if let Some(laid) = &laid {
                laid.annotate(&mut doc, &session, step, number, lang);
            }
            Ok(doc)
        })?;
        writer.end().map(|_| ())
    })?;
    Ok(())
}

/// All steps as one page in `folder`, which is made where it is not there.
fn book(
    session: &Session,
    steps: &Steps,
    folder: &Path,
    force: bool,
    global: &Global,
    lang: Lang,
) -> Result<(), Failure> {
    let number = global.number_of(session).unwrap_or_default();
    let options = Options { lang, number, max_rows: 64, max_columns: 64, ..Options::default() };
    for step in steps.list() {
        session.trace(step.run).map_err(common::cannot_run)?;
    }
    std::fs::create_dir_all(folder).map_err(|e| {
        Msg::new("book.folder").arg("path", crate::text::escape(&folder.to_string_lossy())).arg("why", e)
    })?;
    let page = folder.join(book::file_name(session));
    Target::File(page.clone()).write(force, |out| book::write(session, steps, &options, out))?;
    let written = Msg::new("book.written").arg("path", crate::text::escape(&page.to_string_lossy()));
    writeln!(io::stderr().lock(), "{}", written.render(lang))?;
    Ok(())
}

/// The chosen steps and where each stands in the list.
fn choose(session: &Session, steps: &Steps, selection: &Selection) -> Result<Vec<(usize, Step)>, Failure> {
    let none =
        || Msg::new("cli.no_step").arg("step", selection).arg("last", steps.list().last().map_or(0, |s| s.number[0]));
    if let Selection::One(path) = selection {
        let at = path.first().and_then(|n| steps.position(*n)).ok_or_else(none)?;
        let step = session.step_at(steps, path).ok_or_else(none)?;
        return Ok(vec![(at, step)]);
    }
    let chosen: Vec<(usize, Step)> = steps
        .list()
        .iter()
        .enumerate()
        .filter(|(_, s)| selection.holds(s.number[0]))
        .map(|(i, s)| (i, s.clone()))
        .collect();
    if chosen.is_empty() { Err(none().into()) } else { Ok(chosen) }
}
