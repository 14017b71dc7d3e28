//! What is wrong with the runs of a scenario, found before any of them is built.

use super::inputs::{Inputs, prefix};
use super::memory;
use super::training::fault;
use crate::model::config::ModelConfig;
use crate::model::limits::{self, Extent};
use crate::model::params::{VocabSizes, cacheable, turns_with_length};
use crate::program::optimiser::{BadSetting, Fault};
use crate::scenario::diagnostic::Problem;
use crate::scenario::schema::{Decode, Init, Input, Labels, Optimiser, OptimiserKind, Prefix, Run, Scenario};
use crate::scenario::tokenise::Vocab;
use crate::tensor::Precision;
use crate::text::{Msg, escape};

/// Most new tokens of a run.
const MAX_NEW: usize = 100_000;
/// Most beams of a beam search.
pub const MAX_BEAMS: usize = 1024;

/// Everything wrong with the runs and initialisers; `inputs` are those of each run.
pub(super) fn settings(
    s: &Scenario,
    inputs: &[&Inputs],
    vocab: VocabSizes,
    target_words: &Vocab,
    held: Held,
) -> Vec<Problem> {
    let mut found = Vec::new();
    if s.runs.is_empty() {
        found.push(Problem::new("runs", Msg::new("scenario.no_runs")));
    }
    unread(s, &mut found);
    for (i, run) in s.runs.iter().enumerate() {
        let at = format!("runs[{i}]");
        let (model, inputs) = (model_of(s, run), inputs[i]);
        if s.runs[..i].iter().any(|r| r.name() == run.name()) {
            let msg = Msg::new("scenario.run_twice").arg("name", escape(run.name()));
            found.push(Problem::new(format!("{at}.name"), msg));
        }
        let before = found.len();
        needs(s, run, &at, model, inputs, &mut found);
        if let Run::Training { optimiser, .. } = run {
            self::optimiser(optimiser, &format!("{at}.optimiser"), &mut found);
        }
        let mut extents = Vec::new();
        if let Run::Inference { decode, kv_cache, .. } = run {
            let at = format!("{at}.decode");
            extents = self::decode(decode, *kv_cache, &at, target_words, &mut found);
        } else {
            extents.push(Extent { calls: 1, ..Extent::default() });
        }
        if found.len() > before {
            continue;
        }
        for mut extent in extents {
            extent.source = inputs.source.as_ref().map_or(0, crate::model::Sequences::tokens);
            let batch = inputs.source.as_ref().map_or(1, |s| s.batch);
            extent.batch = extent.batch.max(batch);
            if let (Run::Training { .. } | Run::Forward { .. }, Some(t)) = (run, &inputs.target) {
                (extent.target, extent.batch) = (t.tokens(), t.batch);
            }
            if let Some(msg) = size(model, vocab, run.name(), &extent, held) {
                let calls = msg.key == "scenario.too_many_calls";
                let at = too_long(s, run, &at, &extent, calls);
                found.push(Problem::new(at, msg));
                break;
            }
        }
    }
    initialisers(s, &mut found);
    expectations(s, &mut found);
    found
}

/// The field that makes a run as long as it is.
fn too_long(s: &Scenario, run: &Run, at: &str, extent: &Extent, calls: bool) -> String {
    let own = run.with();
    let input = |own: Option<&Input>, all: Option<&Input>, name: &str| {
        let field = field(own.is_some(), at, name);
        match own.or(all).and_then(|i| i.length) {
            Some(_) => format!("{field}.length"),
            None => field,
        }
    };
    if extent.source == limits::longest(extent) && !calls {
        return input(own.source.as_ref(), s.source.as_ref(), "source");
    }
    match run {
        Run::Training { .. } | Run::Forward { .. } => input(own.target.as_ref(), s.target.as_ref(), "target"),
        Run::Inference { .. } => format!("{at}.decode"),
        Run::Encode { .. } => at.to_owned(),
    }
}

/// The model of a run: its own, or the scenario's.
fn model_of<'s>(s: &'s Scenario, run: &'s Run) -> &'s ModelConfig {
    run.with().model.as_ref().unwrap_or(&s.model)
}

/// Where a field stands that a run may have for itself.
fn field(own: bool, at: &str, name: &str) -> String {
    if own { format!("{at}.with.{name}") } else { name.to_owned() }
}

/// Inputs that no stack of any model reads.
fn unread(s: &Scenario, found: &mut Vec<Problem>) {
    let models = || s.runs.iter().map(|run| model_of(s, run)).chain([&s.model]);
    if s.source.is_some() && models().all(|m| m.encoder.is_none()) {
        found.push(Problem::new("source", Msg::new("scenario.unread_source")));
    }
    if s.target.is_some() && models().all(|m| m.decoder.is_none()) {
        found.push(Problem::new("target", Msg::new("scenario.unread_target")));
    }
    if s.labels != Labels::None && models().all(|m| m.output.none) {
        let msg = Msg::new("scenario.labels_without_head");
        found.push(Problem::new("labels", msg));
    }
}

/// What a run reads must be there.
fn needs(s: &Scenario, run: &Run, at: &str, model: &ModelConfig, inputs: &Inputs, found: &mut Vec<Problem>) {
    let missing = |key: &'static str| Problem::new(at, Msg::new(key).arg("run", escape(run.name())));
    let encodes = model.encoder.is_some();
    let given = |own: &Option<Input>, all: &Option<Input>| own.is_some() || all.is_some();
    if encodes && !given(&run.with().source, &s.source) {
        found.push(missing("scenario.no_source"));
    }
    let target = given(&run.with().target, &s.target);
    match run {
        Run::Training { .. } | Run::Forward { .. } if model.decoder.is_some() && !target => {
            found.push(missing("scenario.no_target"));
        }
        Run::Encode { .. } if !encodes => {
            found.push(missing("scenario.no_encoder"));
        }
        Run::Inference { kv_cache, .. } => {
            if *kv_cache && !cacheable(model) {
                let turns = turns_with_length(model);
                let key = if turns { "scenario.cache_turns" } else { "scenario.cache_not_causal" };
                let problem = Problem::new(format!("{at}.kv_cache"), Msg::new(key).arg("run", escape(run.name())));
                found.push(problem);
            }
            if model.decoder.is_none() || model.output.none {
                found.push(missing("scenario.run_needs_decoder"));
            }
            if inputs.source.as_ref().and_then(|s| s.cross.as_ref()).is_some_and(|m| m.per_query) {
                found.push(missing("scenario.cross_rows_of_decoding"));
            }
            let prompts = match run {
                Run::Inference { decode: Decode::Batch { from, .. }, .. } => from.len(),
                _ => 1,
            };
            if let Some(source) = inputs.source.as_ref().filter(|s| s.batch > 1 && s.batch != prompts) {
                let msg = Msg::new("scenario.one_source").arg("run", escape(run.name())).arg("count", source.batch);
                found.push(Problem::new(at, msg));
            }
        }
        _ => {}
    }
}

fn max_new_fits(new: usize, at: &str, found: &mut Vec<Problem>) {
    if new == 0 || new > MAX_NEW {
        let msg = Msg::new("scenario.max_new").arg("value", new);
        found.push(Problem::new(format!("{at}.max_new"), msg));
    }
}

/// What is generated, and how long it gets.
fn decode(decode: &Decode, cached: bool, at: &str, words: &Vocab, found: &mut Vec<Problem>) -> Vec<Extent> {
    let mut extents = Vec::new();
    let mut from = |at: String, p: &Prefix, calls: usize, found: &mut Vec<Problem>| match prefix(&at, p, words) {
        Ok(ids) => extents.push(Extent { target: ids.len(), calls, cached, ..Extent::default() }),
        Err(problem) => found.push(problem),
    };
    let (first, new) = match decode {
        Decode::Forced(prefixes) => {
            if prefixes.is_empty() {
                let msg = Msg::new("scenario.no_prefixes");
                found.push(Problem::new(at, msg));
            }
            for (i, p) in prefixes.iter().enumerate() {
                from(format!("{at}[{i}]"), p, 1, found);
            }
            return extents;
        }
        Decode::Batch { from: prompts, max_new } => {
            if prompts.is_empty() {
                found.push(Problem::new(format!("{at}.from"), Msg::new("scenario.no_prefixes")));
            }
            for (i, p) in prompts.iter().enumerate() {
                from(format!("{at}.from[{i}]"), p, *max_new, found);
            }
            let longest = extents.iter().map(|e| e.target).max().unwrap_or(0);
            for extent in &mut extents {
                (extent.batch, extent.target) = (prompts.len(), longest);
            }
            extents.truncate(1);
            max_new_fits(*max_new, at, found);
            return extents;
        }
        Decode::Greedy { from, max_new }
        | Decode::Sample { from, max_new, .. }
        | Decode::Beam { from, max_new, .. } => (from, *max_new),
    };
    from(format!("{at}.from"), first, new, found);
    max_new_fits(new, at, found);
    if let Decode::Beam { beams, length_penalty, .. } = decode {
        if !length_penalty.is_finite() || *length_penalty < 0.0 {
            let msg = Msg::new("scenario.not_negative").arg("value", length_penalty);
            found.push(Problem::new(format!("{at}.length_penalty"), msg));
        }
        if *beams == 0 || *beams > MAX_BEAMS {
            let msg = Msg::new("scenario.beams").arg("value", beams).arg("most", MAX_BEAMS);
            found.push(Problem::new(format!("{at}.beams"), msg));
        }
        // Every beam is a sequence.
        for extent in &mut extents {
            extent.batch = *beams;
        }
    }
    if let Decode::Sample { min_p, repetition_penalty, .. } = decode {
        if let Some(p) = min_p.filter(|p| !(*p >= 0.0 && *p <= 1.0)) {
            let msg = Msg::new("scenario.top_p").arg("value", p);
            found.push(Problem::new(format!("{at}.min_p"), msg));
        }
        if !(repetition_penalty.is_finite() && *repetition_penalty > 0.0) {
            let msg = Msg::new("scenario.positive").arg("value", repetition_penalty);
            found.push(Problem::new(format!("{at}.repetition_penalty"), msg));
        }
    }
    if let Decode::Sample { temperature, top_k, top_p, .. } = decode {
        if !(temperature.is_finite() && *temperature > 0.0) {
            let msg = Msg::new("scenario.temperature").arg("value", temperature);
            found.push(Problem::new(format!("{at}.temperature"), msg));
        }
        if *top_k == Some(0) {
            let help = Msg::new("scenario.top_k_help").arg("most", words.len());
            let problem = Problem::new(format!("{at}.top_k"), Msg::new("scenario.top_k"));
            found.push(problem.help(help));
        }
        if let Some(p) = top_p.filter(|p| !(*p > 0.0 && *p <= 1.0)) {
            let msg = Msg::new("scenario.top_p").arg("value", p);
            found.push(Problem::new(format!("{at}.top_p"), msg));
        }
    }
    extents
}

/// What a run is too large for, if anything: the table of positions, or the numbers that can be recorded.
pub(super) fn size(model: &ModelConfig, vocab: VocabSizes, run: &str, extent: &Extent, held: Held) -> Option<Msg> {
    let longest = limits::longest(extent);
    if let Some(rows) = limits::table(model).filter(|rows| *rows < longest) {
        let msg = Msg::new("config.max_len").arg("tokens", longest);
        return Some(msg.arg("max_len", rows));
    }
    let cells = limits::cells(model, vocab, extent);
    if cells > limits::MAX_CELLS {
        let msg = Msg::new("scenario.too_much").arg("run", escape(run)).arg("tokens", longest).arg("value", cells);
        return Some(msg.arg("most", limits::MAX_CELLS));
    }
    too_large(cells, held)
        .map_or_else(|| calls(model, run, extent), |msg| Some(msg.arg("run", escape(run)).arg("tokens", longest)))
}

/// What is held of a run: numbers of which type, and how many bytes of them at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub precision: Precision,
    pub budget: Option<u64>,
}

/// Runs below this are started without asking how much memory there is.
const SMALL: u128 = 1 << 28;

/// Whether so many numbers are more than there is memory for.
fn too_large(cells: u128, held: Held) -> Option<Msg> {
    let each = match held.precision {
        Precision::F32 => 4,
        Precision::F64 => 8,
    };
    let bytes = cells.saturating_mul(each).min(held.budget.map_or(u128::MAX, u128::from));
    let free = (bytes > SMALL).then(memory::available)??;
    let gib = |bytes: u128| format!("{:.1}", bytes as f64 / f64::from(1 << 30));
    (bytes > u128::from(free)).then(|| {
        let msg = Msg::new("scenario.memory").arg("value", gib(bytes));
        msg.arg("most", gib(u128::from(free)))
    })
}

/// Whether a run goes through more layers than a program may have.
pub(super) fn calls(model: &ModelConfig, run: &str, extent: &Extent) -> Option<Msg> {
    let layers = limits::layer_calls(model, extent);
    (layers > limits::MAX_LAYER_CALLS).then(|| {
        let msg = Msg::new("scenario.too_many_calls").arg("run", escape(run)).arg("value", layers);
        msg.arg("most", limits::MAX_LAYER_CALLS)
    })
}

fn optimiser(o: &Optimiser, at: &str, found: &mut Vec<Problem>) {
    for BadSetting { field, why } in o.faults() {
        let problem = Problem::new(format!("{at}.{field}"), fault(&why));
        found.push(match why {
            Fault::Pattern { .. } => problem,
            _ => problem.help(Msg::new("scenario.optimiser_help")),
        });
    }
    let usual = Optimiser::default();
    let sgd = o.kind == OptimiserKind::Sgd;
    let unread = [
        ("momentum", !sgd && o.momentum != usual.momentum),
        ("betas", sgd && o.betas != usual.betas),
        ("eps", sgd && o.eps != usual.eps),
    ];
    for (field, _) in unread.into_iter().filter(|u| u.1) {
        let msg = Msg::new("scenario.optimiser_unread").arg("field", field).arg("kind", format!("{:?}", o.kind));
        found.push(Problem::new(format!("{at}.{field}"), msg));
    }
}

/// A limit beyond this holds whatever a run computes.
const LARGEST_TOLERANCE: f64 = 1e9;
/// No f64 has more decimals that mean something.
const MOST_PRINTED: u8 = 17;

/// Expectations that hold whatever is computed, or never.
fn expectations(s: &Scenario, found: &mut Vec<Problem>) {
    for (i, e) in s.expected.iter().enumerate() {
        let at = format!("expected[{i}]");
        for (field, limit, most) in
            [("tolerance", e.tolerance, LARGEST_TOLERANCE), ("relative", e.relative, LARGEST_TOLERANCE)]
        {
            if let Some(x) = limit.filter(|x| !(*x >= 0.0 && *x < most)) {
                let msg = Msg::new("scenario.tolerance").arg("value", x);
                found.push(Problem::new(format!("{at}.{field}"), msg));
            }
        }
        if let Some(digits) = e.printed.filter(|d| *d > MOST_PRINTED) {
            let msg = Msg::new("scenario.printed").arg("value", digits).arg("most", MOST_PRINTED);
            found.push(Problem::new(format!("{at}.printed"), msg));
        }
        if e.values.flat().iter().any(|x| x.is_nan()) {
            found.push(Problem::new(format!("{at}.values"), Msg::new("scenario.expected_nan")));
        }
    }
}

fn initialisers(s: &Scenario, found: &mut Vec<Problem>) {
    for (i, rule) in s.weights.init.iter().enumerate() {
        let at = format!("weights.init[{i}]");
        if let Err(e) = globset::Glob::new(&rule.paths) {
            let msg = Msg::new("weights.pattern")
                .arg("pattern", escape(&rule.paths))
                .arg("why", escape(&e.kind().to_string()));
            found.push(Problem::new(format!("{at}.paths"), msg));
        }
        let wrong = match rule.with {
            Init::Normal { mean, std } => {
                let good = mean.is_finite() && std.is_finite() && std >= 0.0;
                (!good).then(|| Msg::new("weights.init_normal").arg("mean", mean).arg("std", std))
            }
            Init::Uniform { low, high } => {
                let good = low.is_finite() && high.is_finite() && low <= high;
                (!good).then(|| Msg::new("weights.init_uniform").arg("low", low).arg("high", high))
            }
            Init::Constant(c) => (!c.is_finite()).then(|| Msg::new("weights.init_constant").arg("value", c)),
            Init::Xavier | Init::Kaiming => None,
        };
        if let Some(msg) = wrong {
            let help = Msg::new("weights.init_help");
            found.push(Problem::new(format!("{at}.with"), msg).help(help));
        }
    }
}
