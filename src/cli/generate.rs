//! `generate`: tokens from a prefix, told as they come.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use serde_json::{Value as Json, json};

use super::global::Global;
use super::progress::Progress;
use super::{Failure, common, complain, value};
use crate::model::generate::{Barred, Calls, Choice};
use crate::model::params::cacheable;
use crate::scenario::schema::WeightFile;
use crate::session::generation::{Call, Failed, Flops};
use crate::session::{self, MAX_BEAMS, RunKind, Session};
use crate::text::{Lang, Msg, NumberFormat, escape};

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

/// What is to be done.
struct Plan {
    /// The run whose model and source are used.
    run: usize,
    from: Vec<i64>,
    calls: Calls,
    cached: bool,
    /// The model has positions for no more than what is planned.
    limited: bool,
    ends: Vec<i64>,
}

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
    let mut made: Vec<Call> = Vec::new();
    let mut out = io::stdout();
    // Where the tokens go to a terminal, they say it themselves.
    let progress = Progress::new(max_new(&plan.calls), !out.is_terminal(), lang);
    let mut failed = None;
    let mut stopped = false;
    let mut calls_made = 0;
    if !args.json {
        writeln!(out, "{}", escape(&text(&session, &plan.from)))?;
    }
    let reported = &mut |call: &Call| {
        if !args.json {
            let line = line(&session, call, number, lang);
            if let Err(e) = writeln!(out, "{line}").and_then(|()| out.flush()) {
                failed = Some(e);
            }
        }
        calls_made = call.call + 1;
        progress.show(calls_made, || Msg::new("generate.progress"));
        stopped = !call.ids.is_empty() && call.ids.iter().all(|id| plan.ends.contains(id));
        if args.json {
            made.push(call.clone());
        } else {
            // Only the last is looked at again: long generations stay small.
            let ids = made.first().map_or(&[][..], |c| &c.ids);
            let ids = [ids, &call.ids[..1]].concat();
            made = vec![Call { ids, beams: call.beams.clone(), ..Call::default() }];
        }
        failed.is_none() && !stopped
    };
    let ran = session.generate(plan.run, &plan.calls, plan.cached, reported);
    drop(progress);
    if let Some(e) = failed {
        return Err(e.into());
    }
    ran.map_err(|e| match e {
        Failed::Build(msg) => msg.into(),
        Failed::Run(e) => common::cannot_run(&e),
    })?;
    let stop = match (stopped, plan.limited) {
        (true, _) => "eos",
        (false, true) => "max_len",
        (false, false) => "max_new",
    };
    if args.json {
        let json = to_json(&session, &plan, &made, stop)?;
        serde_json::to_writer_pretty(&mut out, &json).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        let all = made.first().map_or_else(Vec::new, |c| match c.beams.first() {
            Some(best) => best.clone(),
            None => [plan.from.as_slice(), c.ids.as_slice()].concat(),
        });
        writeln!(out, "{}", escape(&text(&session, trimmed(&all, &plan.ends))))?;
        let say = |msg: &Msg| complain(&msg.render(lang));
        let (with, without) = flops(&session, plan.run, &plan.calls.first(calls_made))?;
        say(&match with {
            Some(with) => Msg::new("generate.flops").arg("with", with.all()).arg("without", without.all()),
            None => Msg::new("generate.flops_uncached").arg("without", without.all()),
        });
        if stop == "max_len" {
            say(&Msg::new("generate.max_len").arg("most", session.most_positions(plan.run).unwrap_or(0)));
        }
    }
    out.flush()?;
    Ok(())
}

fn max_new(calls: &Calls) -> usize {
    calls.lengths().len()
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

/// Tokens as a text: words with spaces between, characters without.
fn text(session: &Session, ids: &[i64]) -> String {
    session.target_words.text_of(ids)
}

/// Without the end tokens that a beam repeats after its end.
fn trimmed<'i>(ids: &'i [i64], ends: &[i64]) -> &'i [i64] {
    let mut len = ids.len();
    while len > 1 && ends.contains(&ids[len - 1]) && ends.contains(&ids[len - 2]) {
        len -= 1;
    }
    &ids[..len]
}

/// What one call chose.
fn line(session: &Session, call: &Call, number: NumberFormat, lang: Lang) -> String {
    let word = |id: &i64| escape(&session.target_words.word(*id)).into_owned();
    if !call.beams.is_empty() {
        let beams: Vec<String> = call
            .beams
            .iter()
            .zip(&call.scores)
            .map(|(ids, score)| {
                let ids = trimmed(ids, &session.ends());
                format!("{} ({})", escape(&text(session, ids)), number.format(*score))
            })
            .collect();
        let mut line = format!("{}  {}", call.call, beams.join(" | "));
        if call.tie {
            line.push_str(&Msg::new("generate.tie_beams").render(lang));
        }
        return line;
    }
    let chosen = call.ids.iter().zip(&call.chosen_probs);
    let mut line = format!("{}", call.call);
    for (id, p) in chosen {
        line.push_str("  ");
        line.push_str(
            &Msg::new("generate.token").arg("word", word(id)).arg("id", id).arg("prob", number.format(*p)).render(lang),
        );
    }
    if let Some(drawn) = call.drawn {
        let msg = Msg::new("generate.drawn").arg("value", number.format(drawn));
        line.push_str(&msg.render(lang));
    }
    if call.tie {
        line.push_str(&Msg::new("generate.tie").render(lang));
    }
    line
}

/// A number; what JSON has no number for is a string.
fn number(x: f64) -> Json {
    if x.is_finite() { json!(x) } else { json!(crate::text::number::exact(x)) }
}

fn numbers(row: &[f64]) -> Vec<Json> {
    row.iter().copied().map(number).collect()
}

/// Words of the largest vocabulary whose logits are written whole.
const WHOLE_ROWS: usize = 4096;
/// Most probable tokens that are written of each call.
const TOP: usize = 10;

/// The most probable tokens of a call.
fn top(session: &Session, call: &Call) -> Json {
    let (logits, probs) = (&call.logits[0], &call.probs[0]);
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
    let one = |id: &usize| {
        json!({
            "id": id,
            "text": session.target_words.word(*id as i64),
            "logit": number(logits[*id]),
            "prob": number(probs[*id]),
        })
    };
    order.iter().take(TOP).map(one).collect()
}

/// Arithmetic with a cache, where the decoder can have one, and without.
fn flops(session: &Session, run: usize, calls: &Calls) -> Result<(Option<Flops>, Flops), Msg> {
    let with = cacheable(session.model_of(run)).then(|| session.decoding_flops(run, calls, true)).transpose()?;
    Ok((with, session.decoding_flops(run, calls, false)?))
}

fn to_json(session: &Session, plan: &Plan, made: &[Call], stop: &str) -> Result<Json, Failure> {
    let words = |ids: &[i64]| -> Vec<String> { ids.iter().map(|id| session.target_words.word(*id)).collect() };
    let beamed = matches!(plan.calls, Calls::Beam { .. });
    let last = made.last();
    let ids: Vec<i64> = match last.and_then(|c| c.beams.first()) {
        Some(best) => trimmed(best, &plan.ends)[plan.from.len()..].to_vec(),
        None => made.iter().flat_map(|c| c.ids.iter().copied()).collect(),
    };
    let planned = plan.calls.first(made.len());
    let (with, without) = flops(session, plan.run, &planned)?;
    let calls: Vec<Json> = made
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let mut json = json!({
                "call": c.call,
                "tie": c.tie,
                "drawn": c.drawn.map(number),
                "argmax": c.argmax(),
                "flops": { "cached": with.as_ref().and_then(|w| w.calls.get(i)), "uncached": without.calls.get(i) },
            });
            if beamed {
                json["logits"] = c.logits.iter().map(|r| numbers(r)).collect();
                json["probs"] = c.probs.iter().map(|r| numbers(r)).collect();
                json["beams"] = c
                    .beams
                    .iter()
                    .enumerate()
                    .map(|(b, tokens)| {
                        json!({
                            "parent": c.parents[b],
                            "id": c.ids[b],
                            "text": session.target_words.word(c.ids[b]),
                            "prob": number(c.chosen_probs[b]),
                            "score": number(c.scores[b]),
                            "ids": tokens,
                        })
                    })
                    .collect();
            } else {
                json["id"] = json!(c.ids.first());
                json["text"] = json!(c.ids.first().map(|id| session.target_words.word(*id)));
                json["prob"] = json!(c.chosen_probs.first().copied().map(number));
                json["top"] = top(session, c);
                if c.logits[0].len() <= WHOLE_ROWS {
                    json["logits"] = json!(numbers(&c.logits[0]));
                    json["probs"] = json!(numbers(&c.probs[0]));
                }
            }
            json
        })
        .collect();
    let choice = match &plan.calls {
        Calls::Free {
            choice: Choice::Sample { temperature, top_k, top_p, min_p, repetition_penalty, seed }, ..
        } => json!({
            "kind": "sample", "temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p,
            "repetition_penalty": repetition_penalty, "seed": seed,
        }),
        Calls::Beam { beams, .. } => json!({ "kind": "beam", "beams": beams }),
        _ => json!({ "kind": "greedy" }),
    };
    Ok(json!({
        "scenario": session.scenario.name,
        "run": session.runs[plan.run].name,
        "precision": format!("{:?}", session.precision).to_lowercase(),
        "choice": choice,
        "kv_cache": plan.cached,
        "prefix": { "ids": plan.from, "texts": words(&plan.from) },
        "ids": ids,
        "texts": words(&ids),
        "text": text(session, &[plan.from.as_slice(), &ids].concat()),
        "stopped": stop,
        "flops": { "before": without.before, "cached": with.map(|w| w.all()), "uncached": without.all() },
        "calls": calls,
    }))
}
