//! Decoding: cached and uncached alike bit for bit, broken caches found, beams against exhaustive search, causality,
//! two runs side by side.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use tui_transformer::debug::cache::{self, Report};
use tui_transformer::debug::side::{self, Align, Mapping};
use tui_transformer::debug::teacher::{self, Shift};
use tui_transformer::debug::{causality, lints};
use tui_transformer::model::generate::{Barred, Calls, Choice};
use tui_transformer::program::{Name, NodeId, Program};
use tui_transformer::scenario::schema::{Decode, Init, InitRule, Prefix, Run, Vocabulary};
use tui_transformer::scenario::{EMBEDDED, load};
use tui_transformer::session::generation::{Call, frame_of};
use tui_transformer::session::{Options, RunKind, Session, open};
use tui_transformer::tensor::{Precision, Real, Tensor, Value};
use tui_transformer::text::Lang;
use tui_transformer::trace::{Flow, Sink};

const BOTH: [Precision; 2] = [Precision::F64, Precision::F32];

fn session(name: &str, precision: Precision) -> Session {
    let loaded = load(Path::new(name)).unwrap();
    changed(loaded.scenario, precision)
}

fn changed(scenario: tui_transformer::scenario::Scenario, precision: Precision) -> Session {
    let options = Options { precision: Some(precision), ..Options::default() };
    open(scenario, None, options).unwrap()
}

fn water_class(precision: Precision, change: impl FnOnce(&mut tui_transformer::scenario::Scenario)) -> Session {
    let mut scenario = load(Path::new("water_class")).unwrap().scenario;
    scenario.walkthrough.clear();
    scenario.symbols.clear();
    scenario.expected.clear();
    change(&mut scenario);
    changed(scenario, precision)
}

fn free(from: &[i64], max_new: usize, choice: Choice) -> Calls {
    Calls::Free { from: from.to_vec(), max_new, choice, barred: Barred::default() }
}

fn sample(seed: u64) -> Choice {
    Choice::Sample { temperature: 1.3, top_k: Some(6), top_p: Some(0.95), min_p: None, repetition_penalty: 1.0, seed }
}

fn generated(session: &Session, run: usize, calls: &Calls, cached: bool) -> Vec<Call> {
    let mut made = Vec::new();
    session
        .generate(run, calls, cached, &mut |call| {
            made.push(call.clone());
            true
        })
        .unwrap();
    made
}

#[test]
fn cached_and_uncached_have_the_same_bits_in_every_scenario() {
    let mut decoders = 0;
    for (name, _) in EMBEDDED {
        for precision in BOTH {
            let s = session(name, precision);
            for run in 0..s.runs.len() {
                let (model, kind) = (s.model_of(run), &s.runs[run].kind);
                let derived = matches!(kind, RunKind::Backward | RunKind::Update);
                let source = s.runs[run].inputs.source.as_ref();
                // One sentence at a time is decoded.
                let several = source.is_some_and(|s| s.batch > 1);
                if model.decoder.is_none() || model.output.none || derived || several {
                    continue;
                }
                decoders += 1;
                same_both_ways(name, &s, run);
            }
        }
    }
    assert!(decoders >= 4);
}

fn same_both_ways(name: &str, s: &Session, run: usize) {
    let words = s.target_words.len() as i64;
    let from = [4 % words, 5 % words];
    let room = s.most_positions(run).map(|most| most + 1 - from.len());
    let max_new = room.map_or(16, |room| room.min(16));
    for calls in [
        free(&from, max_new, Choice::Greedy),
        free(&from, max_new, sample(7)),
        Calls::Beam { from: from.to_vec(), max_new, beams: 3, end: Some(1), length_penalty: 0.0 },
    ] {
        let report = cache::compare(s, run, &calls, &mut ()).unwrap();
        assert_eq!(report.first, None, "{name} {run} {:?}", s.precision);
        assert_eq!(report.frames, max_new);
        assert!(report.cells > 1000, "{name}: {}", report.cells);
        // A call with the cache costs less, and calls grow by equal amounts: those of attention.
        let (with, without) = (&report.flops_cached, &report.flops_uncached);
        let last = max_new - 1;
        assert!(with[last] * 2 < without[last], "{name}");
        let growth = |i: usize| with[i] - with[i - 1];
        assert_eq!(growth(3), growth(last), "{name}");
        // Known from the first calls alone.
        for (cached, flops) in [(true, with), (false, without)] {
            let reported = s.decoding_flops(run, &calls, cached).unwrap();
            assert_eq!(&reported.calls, flops, "{name}");
            assert_eq!(reported.before > 0, s.model_of(run).encoder.is_some());
        }
        let cached = generated(s, run, &calls, true);
        assert_eq!(cached, generated(s, run, &calls, false), "{name}");
    }
}

/// `gpt_block` with the end token where the word stands that its second call draws.
fn ending_early() -> Session {
    let mut loaded = load(Path::new("gpt_block")).unwrap();
    let Vocabulary::Words(words) = &mut loaded.scenario.vocabulary else {
        panic!("a list of words");
    };
    words.swap(0, 5);
    changed(loaded.scenario, Precision::F32)
}

#[test]
fn steps_of_a_run_end_with_the_end_token() {
    let s = ending_early();
    let run = s.run_named("sample").unwrap();
    assert_eq!(s.calls_made(run), 2);
    let steps = s.steps_of(run);
    let last = steps.list().last().unwrap();
    assert_eq!(last.phase, "gen.1 next");
    assert_eq!(last.number, [steps.list().len() as u32]);
    for (lang, said) in [(Lang::En, "2 of the calls"), (Lang::Zh, "2 次调用不再进行")] {
        let note = last.note.render(lang);
        assert!(note.contains(said), "{note}");
    }
    // As it is shipped, no call draws the end token: all are made.
    let s = session("gpt_block", Precision::F32);
    let run = s.run_named("sample").unwrap();
    assert_eq!(s.calls_made(run), 4);
    let last = s.steps_of(run).list().last().unwrap().clone();
    assert_eq!(last.phase, "gen.3 next");
    assert!(!last.note.render(Lang::En).contains("stops here"));
}

#[test]
fn steps_of_beams_have_titles_and_end_where_all_beams_end() {
    let mut loaded = load(Path::new("gpt_block")).unwrap();
    let Some(Run::Inference { decode, .. }) = loaded.scenario.runs.last_mut() else {
        panic!("an inference run");
    };
    *decode = Decode::Beam { from: Prefix::Ids(vec![1, 2]), max_new: 3, beams: 2, length_penalty: 0.0 };
    let s = changed(loaded.scenario, Precision::F64);
    let run = s.run_named("sample").unwrap();
    assert_eq!(s.calls_made(run), 3);
    for step in s.steps_of(run).list() {
        for lang in [Lang::En, Lang::Zh] {
            let title = step.title.render(lang);
            assert!(!title.contains(".next.") && !title.contains(".cache."), "{title}");
        }
    }
}

/// Without a cache, a long generation is run part by part; each part goes on from what the one before left.
#[test]
fn a_long_generation_without_a_cache_is_the_same_as_with() {
    let s = session("water_class", Precision::F32);
    for calls in [
        free(&[4], 260, sample(7)),
        Calls::Beam { from: vec![4], max_new: 70, beams: 2, end: Some(1), length_penalty: 0.0 },
    ] {
        let cached = generated(&s, 0, &calls, true);
        assert_eq!(cached.len(), calls.count());
        assert_eq!(cached, generated(&s, 0, &calls, false));
    }
}

/// Forced prefixes that go on from one another are cached too.
#[test]
fn forced_prefixes_with_a_cache() {
    let s = session("water_class", Precision::F64);
    for prefixes in [vec![vec![4], vec![4, 5], vec![4, 5, 6]], vec![vec![4], vec![4, 5, 6], vec![7, 5], vec![7, 5, 4]]]
    {
        let calls = Calls::Forced(prefixes);
        let report = cache::compare(&s, 0, &calls, &mut ()).unwrap();
        assert_eq!(report.first, None);
        assert!(report.flops_cached[1] < report.flops_uncached[1]);
    }
}

/// What is done to a cache on purpose.
#[derive(Clone, Copy, Debug)]
enum Break {
    /// The rows of this node stand one place off.
    RowOff(&'static str),
    /// This node of the call has the value of the call before.
    PositionOff(&'static str),
}

#[derive(Debug)]
struct Breaker<T: Real> {
    how: Break,
    frame: usize,
    before: HashMap<String, Value<T>>,
}

/// Either number type: only one is ever used by a session.
struct Any {
    f32: Breaker<f32>,
    f64: Breaker<f64>,
}

impl<T: Real> Breaker<T> {
    fn see(&mut self, program: &Program, id: NodeId, value: &Value<T>) -> Flow<T> {
        let node = program.node(id);
        let Some(frame) = frame_of(node) else {
            return Flow::Go;
        };
        let rest = node.name.outside_call().to_string();
        let old = self.before.insert(rest.clone(), value.clone());
        match self.how {
            Break::RowOff(name) if frame == self.frame && rest == name => {
                let t = value.float();
                let d = t.shape().dims();
                let (rows, width) = (d[2], d[3]);
                let mut data = Vec::new();
                for head in t.data().chunks(rows * width) {
                    for row in 0..rows {
                        let from = row.saturating_sub(1) * width;
                        data.extend_from_slice(&head[from..from + width]);
                    }
                }
                Flow::Replace(Value::Float(Tensor::new(*t.shape(), data)))
            }
            Break::PositionOff(name) if frame == self.frame && rest == name => Flow::Replace(old.unwrap()),
            _ => Flow::Go,
        }
    }
}

impl Sink<f32> for Any {
    fn node(&mut self, p: &Program, id: NodeId, v: &Value<f32>) -> Flow<f32> {
        self.f32.see(p, id, v)
    }
}

impl Sink<f64> for Any {
    fn node(&mut self, p: &Program, id: NodeId, v: &Value<f64>) -> Flow<f64> {
        self.f64.see(p, id, v)
    }
}

fn broken(s: &Session, how: Break, frame: usize) -> Report {
    let mut any = Any {
        f32: Breaker { how, frame, before: HashMap::new() },
        f64: Breaker { how, frame, before: HashMap::new() },
    };
    cache::compare(s, 0, &free(&[4], 8, Choice::Greedy), &mut any).unwrap()
}

#[test]
fn a_broken_cache_is_found_where_it_breaks() {
    for precision in BOTH {
        let s = session("water_class", precision);
        for how in [
            Break::RowOff("decoder.0.self_attn.k_cache"),
            Break::RowOff("decoder.1.self_attn.v_cache"),
            Break::PositionOff("embed.target.positions"),
        ] {
            let (Break::RowOff(name) | Break::PositionOff(name)) = how;
            let first = broken(&s, how, 3).first.unwrap();
            assert_eq!((first.frame, first.path), (3, format!("gen.3.{name}")), "{how:?}");
        }
        // Rotary positions: the cosines of the position before.
        let s = water_class(precision, |sc| {
            sc.model.positions = ron::from_str("Rotary()").unwrap();
        });
        let first = broken(&s, Break::PositionOff("decoder.rotary.cos"), 4).first.unwrap();
        assert_eq!((first.frame, &*first.path), (4, "gen.4.decoder.rotary.cos"));
    }
}

/// With as many beams as there are sentences nothing is ever dropped: the best beam is the best sentence.
#[test]
fn beams_find_what_exhaustive_search_finds() {
    let s = session("water_class", Precision::F64);
    let words = s.target_words.len() as i64;
    let beam = Calls::Beam { from: vec![4], max_new: 2, beams: 64, end: None, length_penalty: 0.0 };
    let made = generated(&s, 0, &beam, true);
    let last = made.last().unwrap();
    assert_eq!(last.beams.len(), 64);
    let log_prob = |prefix: &[i64], next: i64| {
        let calls = Calls::Forced(vec![prefix.to_vec()]);
        let call = generated(&s, 0, &calls, false).remove(0);
        call.probs[0][next as usize].ln()
    };
    let mut all: Vec<(f64, Vec<i64>)> = Vec::new();
    for a in 0..words {
        for b in 0..words {
            let score = log_prob(&[4], a) + log_prob(&[4, a], b);
            all.push((score, vec![4, a, b]));
        }
    }
    all.sort_by(|x, y| y.0.total_cmp(&x.0));
    for (i, (score, tokens)) in all.iter().enumerate() {
        assert_eq!(&last.beams[i], tokens, "beam {i}");
        assert!((last.scores[i] - score).abs() < 1e-12);
    }
    // One beam is the greedy choice.
    let one = Calls::Beam { from: vec![4], max_new: 5, beams: 1, end: None, length_penalty: 0.0 };
    let greedy: Vec<i64> = generated(&s, 0, &free(&[4], 5, Choice::Greedy), true).iter().map(|c| c.ids[0]).collect();
    assert_eq!(generated(&s, 0, &one, true).last().unwrap().beams[0][1..], greedy);
}

/// A beam that has ended keeps its score and repeats its end token.
#[test]
fn an_ended_beam_stays_as_it_is() {
    let s = session("water_class", Precision::F64);
    // The token that greedy decoding takes first serves as the end token.
    let end = generated(&s, 0, &free(&[4], 1, Choice::Greedy), true)[0].ids[0];
    let calls = Calls::Beam { from: vec![4], max_new: 4, beams: 4, end: Some(end), length_penalty: 0.0 };
    let made = generated(&s, 0, &calls, true);
    let score = made[0].scores[0];
    assert_eq!(made[0].beams[0], [4, end]);
    let last = made.last().unwrap();
    let at = last.beams.iter().position(|b| *b == [4, end, end, end, end]).unwrap();
    assert_eq!(last.scores[at].to_bits(), score.to_bits());
    for beam in &last.beams {
        let ended = beam.iter().position(|t| *t == end);
        assert!(ended.is_none_or(|i| beam[i..].iter().all(|t| *t == end)), "{beam:?}");
    }
}

/// With a length penalty the best is the sentence whose mean (or the like) is best, whether it has ended or not; every
/// sentence is kept, so that nothing is dropped.
#[test]
fn a_length_penalty_ranks_by_score_over_a_power_of_the_length() {
    let s = session("water_class", Precision::F64);
    let words = s.target_words.len() as i64;
    let end = generated(&s, 0, &free(&[4], 1, Choice::Greedy), true)[0].ids[0];
    let log_probs = |prefix: &[i64]| -> Vec<f64> {
        let call = generated(&s, 0, &Calls::Forced(vec![prefix.to_vec()]), false).remove(0);
        call.probs[0].iter().map(|p| p.ln()).collect()
    };
    let first = log_probs(&[4]);
    let second: Vec<Vec<f64>> = (0..words).map(|a| log_probs(&[4, a])).collect();
    for alpha in [0.5, 1.0, 3.0] {
        let mut all: Vec<(f64, Vec<i64>)> = vec![(first[end as usize], vec![4, end, end])];
        for a in (0..words).filter(|a| *a != end) {
            for b in 0..words {
                let score = first[a as usize] + second[a as usize][b as usize];
                all.push((score / 2f64.powf(alpha), vec![4, a, b]));
            }
        }
        all.sort_by(|x, y| y.0.total_cmp(&x.0));
        for cached in [false, true] {
            let calls = Calls::Beam { from: vec![4], max_new: 2, beams: 57, end: Some(end), length_penalty: alpha };
            let last = generated(&s, 0, &calls, cached).pop().expect("a call");
            for (i, (ranked, tokens)) in all.iter().enumerate() {
                assert_eq!(&last.beams[i], tokens, "α {alpha}, beam {i}");
                let length = if tokens[1] == end { 1.0 } else { 2f64.powf(alpha) };
                assert!((last.scores[i] / length - ranked).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn the_same_seed_draws_the_same_tokens() {
    let s = session("water_class", Precision::F64);
    let text = |seed: u64| -> Vec<i64> {
        generated(&s, 0, &free(&[4], 12, sample(seed)), true).iter().map(|c| c.ids[0]).collect()
    };
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
    for call in generated(&s, 0, &free(&[4], 12, sample(1)), true) {
        // The drawn token is among the six most probable.
        let p = call.chosen_probs[0];
        assert!(call.probs[0].iter().filter(|q| **q > p).count() < 6);
        assert!((0.0..1.0).contains(&call.drawn.unwrap()));
    }
}

#[test]
fn ties_take_the_first_and_are_flagged() {
    // An output head of zeros: every token is as probable as any other.
    let s = water_class(Precision::F64, |sc| {
        let zeros = sc.weights.values.get_mut("output.weight").unwrap();
        *zeros = ron::from_str("OutIn([[0.0,0.0,0.0,0.0],[0.0,0.0,0.0,0.0],[0.0,0.0,0.0,0.0],[0.0,0.0,0.0,0.0],[0.0,0.0,0.0,0.0],[0.0,0.0,0.0,0.0],[0.0,0.0,0.0,0.0],[0.0,0.0,0.0,0.0]])").unwrap();
    });
    let call = generated(&s, 0, &free(&[4], 1, Choice::Greedy), true).remove(0);
    assert!(call.tie);
    assert_eq!((call.ids[0], call.argmax()), (0, Some(0)));
    let s = session("water_class", Precision::F64);
    assert!(!generated(&s, 0, &free(&[4], 1, Choice::Greedy), true)[0].tie);
}

#[test]
fn ties_are_flagged_in_beams_and_by_a_lint() {
    let mut loaded = load(Path::new("gpt_block")).unwrap();
    loaded.scenario.weights.init.insert(0, InitRule { paths: "*".to_owned(), with: Init::Constant(0.0) });
    if let Some(Run::Inference { decode, .. }) = loaded.scenario.runs.last_mut() {
        *decode = Decode::Greedy { from: Prefix::Ids(vec![1, 2]), max_new: 2 };
    }
    let s = changed(loaded.scenario, Precision::F64);
    let run = s.run_named("sample").unwrap();
    let beams = Calls::Beam { from: vec![1, 2], max_new: 2, beams: 2, end: None, length_penalty: 0.0 };
    assert!(generated(&s, run, &beams, true).iter().all(|c| c.tie));
    let found = lints::check(&s, |r| r == run).unwrap();
    let ties: Vec<_> = found.iter().filter(|f| f.lint.id() == "tie").collect();
    assert_eq!(ties.len(), 1);
    assert_eq!(ties[0].path, "gen.0.output.logits");
    let plain = session("gpt_block", Precision::F64);
    assert!(generated(&plain, run, &beams, true).iter().all(|c| !c.tie));
}

#[test]
fn what_a_generation_begins_with_and_costs_is_said() {
    let failed = |arguments: &[&str], said: &str| {
        let out =
            Command::new(env!("CARGO_BIN_EXE_tui-transformer")).args(arguments).env("LC_ALL", "C").output().unwrap();
        let err = String::from_utf8(out.stderr).unwrap();
        assert!(err.contains(said), "{arguments:?}: {err}");
        out.status.code()
    };
    assert_eq!(failed(&["generate", "gpt_block", "--prompt", ""], "--prompt"), Some(2));
    let out_of_range = [("--temperature", "number above 0"), ("--max-new", "whole number")];
    for (option, said) in out_of_range {
        assert_eq!(failed(&["generate", "gpt_block", option, "-1"], said), Some(2));
    }
    let both = ["generate", "gpt_block", "--beams", "2", "--seed", "3"];
    assert_eq!(failed(&both, "--seed"), Some(2));
    let flops = "floating-point operations";
    assert_eq!(failed(&["generate", "gpt_block"], flops), Some(0));
    // The weights after the scenario's own training.
    let trained = ["generate", "water_class_trained", "--update", "101"];
    let (code, text) = printed(&trained);
    assert_eq!(code, Some(0));
    assert!(text.ends_with("I love easy courses\n"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("w.safetensors");
    let file = file.to_str().unwrap();
    let save = ["train", "water_class_trained", "--steps", "100", "--save", file];
    assert_eq!(printed(&save).0, Some(0));
    let (_, text) = printed(&["generate", "water_class_trained", "--weights", file]);
    assert!(text.ends_with("I love easy courses\n"), "{text}");
}

#[test]
fn a_later_token_changes_no_earlier_row() {
    let leak = |s: &Session| {
        let ids = s.runs[0].program.find("embed.target.ids").unwrap();
        causality::check(s.trace(0).unwrap(), ids, s.target_words.len())
    };
    for precision in BOTH {
        let good = leak(&session("water_class", precision));
        assert_eq!((good.positions, good.leak), (3, None));
        // No mask at all: the first row that sees what comes later is the softmax of the first layer.
        let s = water_class(precision, |sc| sc.model.attention.causal = Some(false));
        let found = leak(&s).leak.unwrap();
        assert_eq!((found.changed, found.row), (1, 0));
        assert!(found.path.starts_with("decoder.0.self_attn."), "{found:?}");
        // A mask that hides too little.
        let s = water_class(precision, |sc| {
            sc.model.attention.fill = ron::from_str("Value(-2.0)").unwrap();
        });
        let found = leak(&s).leak.unwrap();
        assert_eq!(found.path, "decoder.0.self_attn.exp");
        assert_eq!(found.mask.as_deref(), Some("decoder.0.self_attn.mask"));
    }
}

#[test]
fn label_shifts() {
    assert_eq!(teacher::shift(&session("water_class", Precision::F64), 0), Some(Shift::Unshifted));
    let ids = [0, 4, 5, 6];
    for (labels, shift) in [
        ([4, 5, 6, 1], Shift::Next),
        ([4, 5, 6, -1], Shift::Next),
        ([0, 4, 5, 6], Shift::Unshifted),
        ([5, 6, 1, -1], Shift::Twice),
        ([7, 7, 2, 2], Shift::Other),
    ] {
        assert_eq!(teacher::shift_of(&ids, &labels, 4), Some(shift), "{labels:?}");
    }
    let first = teacher::positions(&session("water_class", Precision::F64), 0).remove(1);
    assert_eq!(first.sees, ["I", "love"]);
    assert_eq!((first.predicts.as_deref(), first.label_at), (Some("love"), Some(0)));
}

fn layers_of(from: Name, to: Name) -> Mapping {
    Mapping::Scopes { from: Box::new(from), to: Box::new(to) }
}

#[test]
fn training_beside_inference() {
    let s = session("water_class", Precision::F64);
    let inference = s.run_named("inference").unwrap();
    let (left, right) = (s.trace(0).unwrap(), s.trace(inference).unwrap());
    // The rows of a causal pass do not depend on what comes later: call 2 is the first three rows of training.
    let mapping = layers_of(Name::default(), Name::parse("gen.2"));
    let pairs = side::pair(left, right, &mapping, Align::First);
    let logits = pairs.iter().find(|p| p.path == "output.logits").unwrap();
    assert_eq!((logits.cells, logits.differing), (24, 0));
    assert_eq!(side::next_difference(&pairs, 0), None);
    // One head next to another: the first difference is at the queries.
    let heads = Mapping::Heads { left: 0, right: 1 };
    let pairs = side::pair(left, left, &heads, Align::First);
    assert!(pairs[0].differing > 0 && pairs[0].path.starts_with("encoder.0.self_attn.q"), "{:?}", pairs[0]);
    assert_eq!(side::previous_difference(&pairs, 1), Some(0));
    let cells = side::differing(left, left, &pairs[0], &heads, Align::First);
    assert_eq!(cells.len(), pairs[0].differing);
    assert_eq!(Some(cells[0]), pairs[0].first);
    // Layers: weights have the same shapes, and differ.
    let layers = layers_of(Name::parse("encoder.0"), Name::parse("encoder.1"));
    assert!(side::pair(left, left, &layers, Align::First).iter().any(|p| p.max_difference > 0.1));
}

fn printed(arguments: &[&str]) -> (Option<i32>, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tui-transformer")).args(arguments).env("LC_ALL", "C").output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn generate_as_json() {
    let (code, text) = printed(&["generate", "water_class", "--max-new", "3", "--json"]);
    assert_eq!(code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    // The forced run's first call: its most probable word after `I` is `courses` with 0.2841.
    assert_eq!(json["prefix"]["texts"], serde_json::json!(["I"]));
    let first = &json["calls"][0];
    assert_eq!((&first["text"], &first["tie"]), (&"courses".into(), &false.into()));
    assert!((first["prob"].as_f64().unwrap() - 0.2841).abs() < 5e-5);
    assert!((first["logits"][7].as_f64().unwrap() - 0.7112).abs() < 5e-5);
    let probs = first["probs"].as_array().unwrap().iter();
    assert!((probs.map(|p| p.as_f64().unwrap()).sum::<f64>() - 1.0).abs() < 1e-12);
    assert_eq!(json["calls"].as_array().unwrap().len(), 3);
    assert_eq!(json["stopped"], "max_new");
    // With and without cache the tokens are the same, whatever the choice.
    for choice in [&["--greedy"][..], &["--beams", "3"], &["--temperature", "1.5", "--seed", "4"]] {
        let both = ["on", "off"].map(|cache| {
            let base = ["generate", "water_class", "--kv-cache", cache, "--max-new", "6"];
            printed(&[&base[..], choice].concat())
        });
        assert_eq!(both[0], both[1], "{choice:?}");
        assert_eq!(both[0].0, Some(0));
    }
}

#[test]
fn what_cannot_be_generated_is_said() {
    for arguments in [
        &["generate", "water_class", "--prefix-ids", "99"][..],
        &["generate", "water_class", "--prompt", "nowhere"],
        &["generate", "water_class", "--run", "training"],
        &["generate", "bert_block", "--prefix-ids", "1"],
        &["generate", "water_class", "--beams", "100000"],
    ] {
        let (code, text) = printed(arguments);
        assert_eq!((code, &*text), (Some(2), ""), "{arguments:?}");
    }
}

/// Positions are learned up to 16: a generation that draws no end token before ends there by itself.
#[test]
fn generation_ends_where_positions_end() {
    let mut ended = 0;
    for seed in 0..6 {
        let seed = seed.to_string();
        let arguments = ["generate", "gpt_block", "--max-new", "40", "--json", "--seed", &seed];
        let (code, text) = printed(&arguments);
        assert_eq!(code, Some(0));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let count = |of: &serde_json::Value| of.as_array().unwrap().len();
        let tokens = count(&json["prefix"]["ids"]) + count(&json["ids"]);
        match json["stopped"].as_str().unwrap() {
            "max_len" => {
                assert_eq!(tokens, 17);
                ended += 1;
            }
            "eos" => assert_eq!(json["texts"].as_array().unwrap().last().unwrap(), "<eos>"),
            other => panic!("stopped by {other}"),
        }
    }
    assert!(ended > 0, "every seed drew an end token");
}

#[test]
fn check_tells_of_decoding() {
    let (code, text) = printed(&["check", "water_class", "--json"]);
    assert_eq!(code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let decoding = &json["decoding"];
    assert_eq!(decoding["cache"][0]["calls"], 3);
    assert!(decoding["cache"][0]["first_different"].is_null());
    assert!(decoding["causality"][0]["leak"].is_null());
    assert_eq!(decoding["labels"][0]["shift"], "unshifted");
    assert_eq!(decoding["labels"][0]["positions"][2]["label_at"], 0);
    // The comparison of step 95 comes from the runs.
    let (_, text) = printed(&["export", "water_class", "--step", "95", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = json["table"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 13);
    assert_eq!(rows[0][1], "[0, 1, 2, 3] 我 爱 水 课");
    assert_eq!(rows[2][2], "1, 2, 3: 6 rows in 3 calls");
    assert_eq!(rows[6][2], "1×1 (0 hidden), 2×2 (1 hidden), 3×3 (3 hidden)");
}

/// The logits that are drawn from, against the formulas of `transformers` (`RepetitionPenaltyLogitsProcessor`,
/// `MinPLogitsWarper`) written out over the model's own logits.
#[test]
fn repeated_tokens_are_penalised_and_improbable_ones_left_out() {
    let s = session("gpt_block", Precision::F64);
    let choice = Choice::Sample {
        temperature: 1.0,
        top_k: None,
        top_p: None,
        min_p: Some(0.3),
        repetition_penalty: 1.5,
        seed: 5,
    };
    let calls = free(&[4, 2, 4], 1, choice);
    let run = s.run_named("sample").unwrap();
    let program = s.generation(run, &calls, false).unwrap();
    let trace = s.run_program(&program, |_| true, &mut ()).unwrap();
    let get = |path: &str| {
        let id = program.find(path).unwrap_or_else(|| panic!("{path}"));
        let value = trace.value(id);
        (0..program.node(id).shape.len()).map(|i| value.get(i)).collect::<Vec<f64>>()
    };
    let logits = get("gen.0.next.logits");
    let mut wanted = logits.clone();
    for seen in [2, 4] {
        wanted[seen] = if logits[seen] < 0.0 { logits[seen] * 1.5 } else { logits[seen] / 1.5 };
    }
    assert_eq!(get("gen.0.next.penalised"), wanted);
    assert_ne!(wanted, logits);
    let probs = get("gen.0.next.probs");
    let kept = get("gen.0.next.probable");
    for (p, kept) in probs.iter().zip(kept) {
        assert_eq!(kept, if *p < 0.3 * probs[0] { 0.0 } else { *p });
    }
    assert!(probs.iter().any(|p| *p < 0.3 * probs[0]));
}
