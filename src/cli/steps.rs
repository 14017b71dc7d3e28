//! `steps`: the numbered steps of a run.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use super::bind::Laid;
use super::global::Global;
use super::{Failure, common, numerics, value};
use crate::report;
use crate::session::Session;
use crate::text::{Align, Cells, Lang, escape};
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
    /// The run; the scenario's first unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Before which update of the training, counted from 1.
    #[arg(long, value_name = "N", value_parser = value::count)]
    pub update: Option<usize>,
    /// Detail of a walkthrough made from the program; the scenario's own unless given.
    #[arg(long, value_name = "LEVEL")]
    pub detail: Option<value::DetailName>,
    /// List sub-steps too.
    #[arg(long)]
    pub expand: bool,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// Lists the steps.
///
/// # Errors
/// A scenario that cannot be opened, a run that is not there, standard output.
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let session = common::open_at(&args.scenario, &args.inputs, global, args.detail, args.update, lang)?;
    let steps = common::steps(&session, args.run.as_deref())?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut list: Vec<Cow<'_, Step>> = Vec::new();
    for step in steps.list() {
        list.push(Cow::Borrowed(step));
        if args.expand {
            list.extend(session.expand(step).into_iter().map(Cow::Owned));
        }
    }
    let errors = global.rounding().map(|rounding| numerics::OfSteps::of(&session, &list, rounding)).transpose()?;
    let laid = Laid::of(&args.scenario, &args.inputs, &session, args.run.as_deref(), global, lang)?;
    if args.json {
        let one = |s: &Step| {
            let mut json = to_json(&session, s, lang);
            if let Some(errors) = &errors {
                json["rounding"] = errors.to_json(s);
            }
            if let Some(laid) = &laid {
                json["reference"] = laid.to_json(s);
            }
            json
        };
        let json: Vec<serde_json::Value> = list.iter().map(|s| one(s)).collect();
        report::write_json(&mut out, &json)?;
        out.flush()?;
        return Ok(());
    }
    let cells = Cells::NARROW;
    let column = |of: &dyn Fn(&Step) -> String| list.iter().map(|s| cells.width(&of(s))).max().unwrap_or(0);
    let (number, section, phase) =
        (column(&Step::label), column(&|s| s.section.clone()), column(&|s| escape(&s.phase).into_owned()));
    for step in &list {
        let mut error = errors.as_ref().map_or_else(String::new, |e| format!("  [{}]", e.words(step, lang)));
        if let Some(words) = laid.as_ref().map(|l| l.words(step, lang)).filter(|w| !w.is_empty()) {
            let _ = write!(error, "  [{words}]");
        }
        writeln!(
            out,
            "{}  {}  {}  {}{error}",
            cells.pad(&step.label(), number, Align::Right),
            cells.pad(&escape(&step.section), section, Align::Left),
            cells.pad(&escape(&step.phase), phase, Align::Left),
            escape(&step.title.render(lang)),
        )?;
    }
    out.flush()?;
    Ok(())
}

fn to_json(session: &Session, step: &Step, lang: Lang) -> serde_json::Value {
    let number = match step.number[..] {
        [n] => serde_json::Value::from(n),
        _ => serde_json::Value::from(step.label()),
    };
    serde_json::json!({
        "step": number,
        "section": step.section,
        "phase": step.phase,
        "run": session.runs[step.run].name,
        "title": step.title.render(lang),
        "symbols": step.views.iter().map(|v| v.symbol.as_str()).collect::<Vec<_>>(),
    })
}
