//! `generate`: tokens from a prefix, printed as they come.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use super::global::Global;
use super::progress::Progress;
use super::{Failure, common, complain, value};
use crate::model::generate::{Barred, Calls, Choice};
use crate::model::params::cacheable;
use crate::report;
use crate::report::generate::{Generated, Plan};
use crate::scenario::schema::WeightFile;
use crate::session::generation::{Call, Failed};
use crate::session::{self, MAX_BEAMS, RunKind, Session};
use crate::text::{Lang, Msg, escape};

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A path, `-`, or an embedded name.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// What a checkpoint reads.
    #[command(flatten)]
    pub inputs: super::inputs::Args,
    /// The run whose model and source are used; the scenario's first inference run unless given.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Text to go on from.
    #[arg(long, value_name = "TEXT", conflicts_with = "prefix_ids")]
    pub prompt: Option<String>,
    /// Token ids to go on from.
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub prefix_ids: Vec<u32>,
    /// At most so many new tokens; as the run says unless given.
    #[arg(long, value_name = "N", value_parser = value::count)]
    pub max_new: Option<usize>,
    /// End tokens are not chosen before so many new tokens.
    #[arg(long, value_name = "N", value_parser = value::count, conflicts_with = "beams")]
    pub min_new: Option<usize>,
    /// The most probable token each time.
    #[arg(long, conflicts_with_all = ["temperature", "top_k", "top_p", "seed", "beams"])]
    pub greedy: bool,
    /// Sample at this temperature.
    #[arg(long, value_name = "T", value_parser = value::positive, conflicts_with = "beams")]
    pub temperature: Option<f64>,
    /// Sample among the K most probable.
    #[arg(long, value_name = "K", value_parser = value::count, conflicts_with = "beams")]
    pub top_k: Option<usize>,
    /// Sample among the most probable that hold P of the probability.
    #[arg(long, value_name = "P", value_parser = value::probability, conflicts_with = "beams")]
    pub top_p: Option<f64>,
    /// Seed of the drawing; as the run says unless given.
    #[arg(long, value_name = "S", conflicts_with = "beams")]
    pub seed: Option<u64>,
    /// Beams are ranked by their score over length^this.
    #[arg(long, value_name = "A", value_parser = value::not_negative, requires = "beams")]
    pub length_penalty: Option<f64>,
    /// Beam search with so many beams.
    #[arg(long, value_name = "B", value_parser = value::count)]
    pub beams: Option<usize>,
    /// Keep keys and values of earlier positions; wherever the decoder is causal unless given.
    #[arg(long, value_name = "on|off")]
    pub kv_cache: Option<value::Switch>,
    /// Before which update of the training, counted from 1.
    #[arg(long, value_name = "N", value_parser = value::count, conflicts_with = "weights")]
    pub update: Option<usize>,
    /// Weights instead of the scenario's.
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Whether tokens are drawn at random.
    pub fn samples(&self) -> bool {
        self.temperature.is_some() || self.top_k.is_some() || self.top_p.is_some() || self.seed.is_some()
    }
}

/// New tokens where neither the arguments nor the run say how many.
const DEFAULT_NEW: usize = 20;
/// Most new tokens: each is a frame of the program.
const MAX_NEW: usize = 100_000;

/// Generates.
///
/// # Errors
/// A scenario without a decoder, a prefix that its vocabulary does not have, a run that cannot run.
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let mut loaded = common::load(&args.scenario, &args.inputs, lang)?;
    if let Some(file) = &args.weights {
        let path = std::path::absolute(file)?;
        loaded.scenario.weights.values.clear();
        loaded.scenario.weights.files.push(WeightFile::of(&path));
    }
    let options = session::Options {
        precision: global.precision(),
        rounding: global.rounding(),
        update: args.update.unwrap_or(1) as u64,
        budget: global.budget,
        ..session::Options::default()
    };
    let session = common::open_loaded(loaded, options, lang)?;
    let plan = plan(args, &session)?;
    let number = global.number_of(&session).unwrap_or_default();
    let mut made = Generated::new(&session, &plan, args.json);
    let mut out = io::stdout();
    // Where the tokens go to a terminal, they say it themselves.
    let progress = Progress::new(plan.calls.count(), !out.is_terminal(), lang);
    let mut failed = None;
    if !args.json {
        report::write(&mut out, &[made.prefix()], lang)?;
    }
    let ran = session.generate(plan.run, &plan.calls, plan.cached, &mut |call: &Call| {
        if !args.json {
            let line = made.call(call, number, lang);
            failed = report::write(&mut out, &[line], lang).and_then(|()| out.flush()).err();
        }
        progress.show(call.call + 1, || Msg::new("generate.progress"));
        made.push(call) && failed.is_none()
    });
    drop(progress);
    if let Some(e) = failed {
        return Err(e.into());
    }
    ran.map_err(|e| match e {
        Failed::Build(msg) => msg.into(),
        Failed::Run(e) => common::cannot_run(&e),
    })?;
    if args.json {
        report::write_json(&mut out, &made.to_json()?)?;
    } else {
        report::write(&mut out, &[made.whole()], lang)?;
        made.remarks()?.iter().for_each(|line| complain(&line.text.render(lang)));
    }
    out.flush()?;
    Ok(())
}

fn plan(args: &Args, session: &Session) -> Result<Plan, Failure> {
    let run = match &args.run {
        Some(name) => Some(common::run(session, name)?),
        None => session.runs.iter().position(|r| r.kind == RunKind::Inference),
    };
    let given = run.and_then(|r| session.calls_of(r));
    // Without an inference run, the first run says which model and which source.
    let used = run.unwrap_or(0);
    if let (Some(name), None) = (&args.run, &given) {
        return Err(Msg::new("generate.no_inference").arg("name", escape(name)).into());
    }
    let words = &session.target_words;
    let mut from: Vec<i64> = args.prefix_ids.iter().map(|i| i64::from(*i)).collect();
    if let Some(text) = &args.prompt {
        from = words.encode(text)?.into_iter().map(|t| t.id).collect();
        if from.is_empty() {
            return Err(Msg::new("generate.empty_prompt").into());
        }
    }
    if let Some(bad) = from.iter().find(|id| **id >= words.len() as i64) {
        return Err(Msg::new("scenario.id_outside").arg("id", bad).arg("size", words.len()).into());
    }
    let (mut choice, mut beams, mut new) = (Choice::Greedy, None, None);
    let mut length_penalty = args.length_penalty.unwrap_or(0.0);
    match &given {
        Some((Calls::Forced(prefixes), _)) if from.is_empty() => {
            from = prefixes.first().cloned().unwrap_or_default();
        }
        Some((Calls::Free { from: f, max_new, choice: c, .. }, _)) => {
            (choice, new) = (*c, Some(*max_new));
            if from.is_empty() {
                from.clone_from(f);
            }
        }
        Some((Calls::Batch { .. }, _)) if from.is_empty() => return Err(Msg::new("generate.batch").into()),
        Some((Calls::Beam { from: f, max_new, beams: b, length_penalty: penalty, .. }, _)) => {
            (beams, new) = (Some(*b), Some(*max_new));
            length_penalty = args.length_penalty.unwrap_or(*penalty);
            if from.is_empty() {
                from.clone_from(f);
            }
        }
        _ => {}
    }
    if from.is_empty() {
        return Err(Msg::new("generate.no_prefix").into());
    }
    if args.greedy {
        (choice, beams) = (Choice::Greedy, None);
    } else if args.beams.is_some() {
        beams = args.beams;
    } else if args.samples() {
        let (t, k, p, m, r, s) = match choice {
            Choice::Sample { temperature, top_k, top_p, min_p, repetition_penalty, seed } => {
                (temperature, top_k, top_p, min_p, repetition_penalty, seed)
            }
            Choice::Greedy => (1.0, None, None, None, 1.0, 0),
        };
        beams = None;
        choice = Choice::Sample {
            temperature: args.temperature.unwrap_or(t),
            top_k: args.top_k.or(k),
            top_p: args.top_p.or(p),
            min_p: m,
            repetition_penalty: r,
            seed: args.seed.unwrap_or(s),
        };
    }
    let wanted = args.max_new.or(new).unwrap_or(DEFAULT_NEW);
    if wanted > MAX_NEW {
        return Err(Msg::new("scenario.max_new").arg("value", wanted).into());
    }
    // The last call sees all tokens but the one it makes.
    let room = session.most_positions(used).map_or(usize::MAX, |most| (most + 1).saturating_sub(from.len()));
    if room == 0 {
        return Err(Msg::new("generate.prefix_too_long")
            .arg("tokens", from.len())
            .arg("most", session.most_positions(used).unwrap_or(0))
            .into());
    }
    let ends = session.ends();
    let max_new = wanted.min(room);
    let calls = match beams {
        Some(beams) if beams > MAX_BEAMS => {
            return Err(Msg::new("scenario.beams").arg("value", beams).arg("most", MAX_BEAMS).into());
        }
        Some(beams) => Calls::Beam { from: from.clone(), max_new, beams, end: ends.first().copied(), length_penalty },
        None => {
            let barred = Barred { ids: ends.clone(), calls: args.min_new.unwrap_or(0) };
            Calls::Free { from: from.clone(), max_new, choice, barred }
        }
    };
    let cached = match args.kv_cache {
        Some(switch) => switch == value::Switch::On,
        None => cacheable(session.model_of(used)),
    };
    session.can_generate(used, &calls, cached)?;
    Ok(Plan { run: used, from, calls, cached, limited: wanted > room, ends })
}
