//! Generation whose length is not known before: a program of a scenario's decoder, run call by call until an end
//! token or a maximum, keeping only what a user asks for.

use std::ops::Range;
use std::sync::Arc;

use super::check;
use super::open::calls;
use super::{AnyBindings, Session};
use crate::model::config::Positions;
use crate::model::generate::{Calls, Part, generate};
use crate::model::limits::Extent;
use crate::model::params::{VocabSizes, cacheable, turns_with_length};
use crate::model::{ModelBuilder, Sequences};
use crate::program::{Name, Node, NodeId, Program, Site, cost, name};
use crate::scenario::schema;
use crate::tensor::{Precision, Real, Value};
use crate::text::Msg;
use crate::trace::{
    AnyTrace, ChainSink, Flow, Keep, PinnedSink, Rounder, Rounding, RunError, Settings, Sink, run_with,
};

/// One decoding call, as it ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// Its number, from 0.
    pub call: usize,
    /// Logits of the last position, one row a beam, `[beam, vocab]`.
    pub logits: Vec<Vec<f64>>,
    /// Their softmax, `[beam, vocab]`.
    pub probs: Vec<Vec<f64>>,
    /// The number that was drawn, where one was.
    pub drawn: Option<f64>,
    /// Tokens that were chosen: one, or one a kept beam; none where the prefixes are forced.
    pub ids: Vec<i64>,
    /// Probability of each chosen token at its place.
    pub chosen_probs: Vec<f64>,
    /// Several tokens share the largest probability; the first of them is the greedy choice. Of a beam search: a
    /// candidate that was kept shares its score with another.
    pub tie: bool,
    /// The beam that each kept beam goes on from; empty without beam search.
    pub parents: Vec<usize>,
    /// Sums of logarithms, one a kept beam; empty without beam search.
    pub scores: Vec<f64>,
    /// All tokens of each kept beam; empty without beam search.
    pub beams: Vec<Vec<i64>>,
}

impl Call {
    /// The most probable token of the first row; the first of equals.
    pub fn argmax(&self) -> Option<i64> {
        let row = self.probs.first()?;
        let best = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter().position(|p| *p == best).map(|i| i as i64)
    }
}

impl Session {
    /// What a scenario's inference run decodes; `None` for other runs.
    pub fn calls_of(&self, run: usize) -> Option<(Calls, bool)> {
        let name = &self.runs.get(run)?.name;
        let spec = self.scenario.runs.iter().find(|r| r.name() == name)?;
        let schema::Run::Inference { decode, kv_cache, .. } = spec else {
            return None;
        };
        calls(self, decode, "runs").ok().map(|c| (c, *kv_cache))
    }

    /// Decoding calls of an inference run: those after the one that chose the end token are not made, and of a beam
    /// search those after the one with which all beams had ended. The run is executed to know.
    pub fn calls_made(&self, run: usize) -> usize {
        let program = &self.runs[run].program;
        let all = frames(program);
        let forced = matches!(self.calls_of(run), None | Some((Calls::Forced(_), _)));
        let ends = self.ends();
        if forced || ends.is_empty() {
            return all;
        }
        let Ok(trace) = self.trace(run) else {
            return all;
        };
        let ended = |call: &usize| {
            let id = program.named(&Name::of(Site::Next).then(name::Role::Id).in_call(*call as u32));
            id.and_then(|id| trace.get(id))
                .is_some_and(|v| (0..v.shape().len()).all(|i| ends.contains(&(v.get(i) as i64))))
        };
        (0..all).find(ended).map_or(all, |call| call + 1)
    }

    /// Ids that end a generation.
    pub fn ends(&self) -> Vec<i64> {
        let given = self.scenario.end.clone();
        given.unwrap_or_else(|| self.target_words.id("<eos>").into_iter().collect())
    }

    /// Most tokens that the decoder of run `run` has positions for, where there is a limit.
    pub fn most_positions(&self, run: usize) -> Option<usize> {
        match self.model_of(run).positions {
            Positions::Learned { max_len, offset, .. } => Some(max_len.saturating_sub(offset)),
            _ => None,
        }
    }

    /// The program of a decoding with the model and the source of run `run`.
    ///
    /// # Errors
    /// Where the model has no decoder, or parts do not fit.
    pub fn generation(&self, run: usize, calls: &Calls, cached: bool) -> Result<Arc<Program>, Msg> {
        self.can_generate(run, calls, cached)?;
        self.generation_part(run, calls, &Part::whole(calls), cached)
    }

    /// Whether the model of run `run` decodes, and so much.
    ///
    /// # Errors
    /// Why it does not.
    pub fn can_generate(&self, run: usize, calls: &Calls, cached: bool) -> Result<(), Msg> {
        let (model, inputs) = (self.model_of(run), &self.runs[run].inputs);
        if model.decoder.is_none() || model.output.none {
            return Err(Msg::new("scenario.no_decoder"));
        }
        let prompts = match calls {
            Calls::Batch { from, .. } => from.len(),
            _ => 1,
        };
        if let Some(several) = inputs.source.as_ref().filter(|s| s.batch > 1 && s.batch != prompts) {
            return Err(Msg::new("generate.one_sentence").arg("batch", several.batch));
        }
        if cached && !cacheable(model) {
            let turns = turns_with_length(model);
            return Err(Msg::new(if turns { "generate.cache_turns" } else { "generate.cache_not_causal" }));
        }
        // Calls come one after the other, and few of their numbers are kept: the longest one counts.
        let extent = Extent {
            batch: match calls {
                Calls::Beam { beams, .. } => *beams,
                _ => prompts,
            },
            source: inputs.source.as_ref().map_or(0, Sequences::tokens),
            target: calls.lengths().into_iter().max().unwrap_or(0),
            calls: 1,
            cached,
        };
        let all = Extent { calls: calls.count(), ..extent };
        let vocab = self.vocab_sizes();
        let too_large = check::size(
            model,
            vocab,
            "generate",
            &extent,
            check::Held { precision: self.precision, budget: self.budget },
        );
        match too_large.or_else(|| check::calls(model, "generate", &all)) {
            Some(msg) => Err(msg),
            None => Ok(()),
        }
    }

    fn vocab_sizes(&self) -> VocabSizes {
        VocabSizes { source: self.source_words.len(), target: self.target_words.len() }
    }

    fn generation_part(&self, run: usize, calls: &Calls, part: &Part, cached: bool) -> Result<Arc<Program>, Msg> {
        let inputs = &self.runs[run].inputs;
        let known = inputs.target.as_ref().filter(|t| t.batch == 1);
        let m = ModelBuilder::new(self.model_of(run), self.vocab_sizes(), false);
        generate(m, inputs.source.as_ref(), calls, part, known.map(|t| t.ids.as_slice()), cached)
            .map(Arc::new)
            .map_err(|e| Msg::new("scenario.build").arg("why", e))
    }

    /// Runs a program over this session's parameters, keeping the nodes for which `keep` holds. The scenario's edits
    /// for all runs act in it.
    ///
    /// # Errors
    /// Where it cannot run.
    pub fn run_program<S: Sink<f32> + Sink<f64>>(
        &self,
        program: &Arc<Program>,
        keep: impl Fn(NodeId) -> bool,
        sink: &mut S,
    ) -> Result<AnyTrace, RunError> {
        fn settings<T: Real>(keep: Keep, rounding: Option<Rounding>) -> Settings<T> {
            Settings { keep, timed: false, rounder: rounding.map(Rounder::from), ..Settings::default() }
        }
        let rounding = self.rounding;
        let keep = Keep::only(program, keep);
        let held = self.held_in(program);
        let sink = &mut ChainSink(PinnedSink(&held), sink);
        Ok(match &self.params {
            AnyBindings::F32(b) => AnyTrace::F32(run_with(program, b, &settings(keep, rounding), sink)?),
            AnyBindings::F64(b) => AnyTrace::F64(run_with(program, b, &settings(keep, rounding), sink)?),
        })
    }

    /// Runs a decoding, telling of each call as it ends; `told` says whether to go on. Without a cache, each call's
    /// program is as large as all tokens so far: the calls are built and run part by part.
    ///
    /// # Errors
    /// Where it cannot be built or run.
    pub fn generate(
        &self,
        run: usize,
        calls: &Calls,
        cached: bool,
        reported: &mut (dyn FnMut(&Call) -> bool + Send),
    ) -> Result<(), Failed> {
        self.can_generate(run, calls, cached).map_err(Failed::Build)?;
        let lengths = calls.lengths();
        let mut part = Part::whole(calls);
        let mut go_on = true;
        while go_on && part.calls.start < lengths.len() {
            part.calls.end = if cached { lengths.len() } else { part_end(&lengths, part.calls.start) };
            let program = self.generation_part(run, calls, &part, cached).map_err(Failed::Build)?;
            let beam = matches!(calls, Calls::Beam { .. });
            let reported = &mut |call: &Call| {
                if beam {
                    part.tokens.clone_from(&call.beams);
                    part.scores.clone_from(&call.scores);
                } else {
                    // One token a sequence; none where prefixes are forced.
                    for (row, id) in part.tokens.iter_mut().zip(&call.ids) {
                        row.push(*id);
                    }
                }
                go_on = reported(call);
                go_on
            };
            let mut watcher = Watcher {
                roles: roles(&program, part.calls.clone()),
                call: Call::default(),
                candidates: Vec::new(),
                reported,
            };
            self.run_program(&program, |_| false, &mut watcher).map_err(Failed::Run)?;
            part.calls.start = part.calls.end;
        }
        Ok(())
    }

    /// Arithmetic of a decoding, from the program of its first calls alone.
    ///
    /// # Errors
    /// Where the program cannot be built.
    pub fn decoding_flops(&self, run: usize, calls: &Calls, cached: bool) -> Result<Flops, Msg> {
        self.can_generate(run, calls, cached)?;
        let forced = matches!(calls, Calls::Forced(_));
        let few = calls.first(if forced { usize::MAX } else { FITTED });
        let program = self.generation(run, &few, cached)?;
        let mut calls_flops = frame_flops(&program, self.precision);
        // A node's arithmetic is a product of sizes of which at most two, queries and keys, grow by one with each
        // call: a square function of the call's number, whose second differences are all the same. The first call
        // may differ: it fills the cache, and reads one sequence where beams follow.
        if let [_, a, b, c] = *calls_flops
            && !forced
        {
            let (mut step, bend) = (c - b, (c - b) - (b - a));
            let mut last = c;
            while calls_flops.len() < calls.count() {
                step += bend;
                last += step;
                calls_flops.push(last);
            }
        }
        Ok(Flops { before: flops_before(&program, self.precision), calls: calls_flops })
    }
}

/// Floating-point operations of a decoding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flops {
    /// Of what comes before the first call, the encoder; done once.
    pub before: u64,
    /// Of each call.
    pub calls: Vec<u64>,
}

impl Flops {
    /// All together.
    pub fn all(&self) -> u64 {
        self.before + self.calls.iter().sum::<u64>()
    }
}

/// Calls that are built to know the arithmetic of all: three that are alike, after the first.
const FITTED: usize = 4;

/// Most cells of the masks of one part: the sum of the squared lengths of its calls.
const PART_CELLS: usize = 1 << 22;

/// The end of the part that begins with call `start`: as many calls as fit, at least one.
fn part_end(lengths: &[usize], start: usize) -> usize {
    let mut cells = 0usize;
    let fits = |len: &&usize| {
        cells = cells.saturating_add(len.saturating_mul(**len));
        cells <= PART_CELLS
    };
    let count = lengths[start..].iter().take_while(fits).count();
    start + count.max(1)
}

/// Why a decoding could not be made.
#[derive(Clone, Debug)]
pub enum Failed {
    /// The program could not be built.
    Build(Msg),
    /// It could not be run.
    Run(RunError),
}

impl Failed {
    /// What to tell of it.
    pub fn message(&self) -> Msg {
        match self {
            Failed::Build(msg) => msg.clone(),
            Failed::Run(e) => Msg::new("cli.cannot_run").arg("why", e),
        }
    }
}

impl From<RunError> for Failed {
    fn from(e: RunError) -> Self {
        Failed::Run(e)
    }
}

/// Number of decoding calls of a program.
pub fn frames(program: &Program) -> usize {
    let probs = Name::of(Site::Output).then(name::Role::Probs);
    (0..program.len() as u32).take_while(|call| program.named(&probs.in_call(*call)).is_some()).count()
}

/// Bytes of its own numbers that a decoding holds on to unless more are requested.
const MOST_DECODED: u64 = 3 << 29;

/// Which values of a run stay where nothing else is requested: all, but of a long decoding as many as fit.
pub fn keep_of(program: &Program, precision: Precision) -> Keep {
    if frames(program) == 0 { Keep::All } else { Keep::within(program, precision, MOST_DECODED) }
}

/// The decoding call that a node belongs to.
pub fn frame_of(node: &Node) -> Option<usize> {
    node.name.call.map(|call| call as usize)
}

/// Arithmetic of each decoding call, in floating-point operations. What comes before the calls (the encoder) is not
/// in it.
pub fn frame_flops(program: &Program, precision: Precision) -> Vec<u64> {
    let mut flops = vec![0; frames(program)];
    for (id, node) in program.nodes() {
        if let Some(of) = frame_of(node).and_then(|i| flops.get_mut(i)) {
            *of += cost(program, id, precision).flops;
        }
    }
    flops
}

/// Arithmetic before the first call: the encoder, where there is one.
fn flops_before(program: &Program, precision: Precision) -> u64 {
    program.nodes().filter(|(_, n)| frame_of(n).is_none()).map(|(id, _)| cost(program, id, precision).flops).sum()
}

/// What a node is to a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Logits,
    Probs,
    Candidates,
    Drawn,
    Parents,
    Scores,
    Beams,
    Ids,
}

/// Roles by node; the last node of a call, whichever it is, ends it.
fn roles(program: &Program, calls: Range<usize>) -> Vec<Option<(Role, usize, bool)>> {
    let mut roles = vec![None; program.len()];
    for call in calls {
        let mut last = None;
        for (role, site, quantity) in [
            (Role::Logits, Site::Output, name::Role::Logits),
            (Role::Probs, Site::Output, name::Role::Probs),
            (Role::Candidates, Site::Next, name::Role::Candidates),
            (Role::Drawn, Site::Next, name::Role::Drawn),
            (Role::Scores, Site::Next, name::Role::KeptScores),
            (Role::Parents, Site::Next, name::Role::Parents),
            (Role::Ids, Site::Next, name::Role::Id),
            (Role::Beams, Site::Next, name::Role::Tokens),
        ] {
            if let Some(id) = program.named(&Name::of(site).then(quantity).in_call(call as u32)) {
                roles[id.index()] = Some((role, call, false));
                last = last.max(Some(id));
            }
        }
        if let Some((_, _, ends)) = last.and_then(|id: NodeId| roles[id.index()].as_mut()) {
            *ends = true;
        }
    }
    roles
}

struct Watcher<'a> {
    roles: Vec<Option<(Role, usize, bool)>>,
    call: Call,
    /// Scores of all candidates of a beam search.
    candidates: Vec<f64>,
    reported: &'a mut (dyn FnMut(&Call) -> bool + Send),
}

/// The last position of each sequence: `[batch, token, vocab]` → `[batch][vocab]`.
fn last_rows<T: Real>(value: &Value<T>) -> Vec<Vec<f64>> {
    let t = value.float();
    let d = t.shape().dims();
    let (tokens, words) = (d[1].max(1), d[2].max(1));
    t.data().chunks(tokens * words).map(|s| s[(tokens - 1) * words..].iter().map(|x| x.to_f64()).collect()).collect()
}

impl<T: Real> Sink<T> for Watcher<'_> {
    fn node(&mut self, _: &Program, id: NodeId, value: &Value<T>) -> Flow<T> {
        let Some((role, number, ends)) = self.roles[id.index()] else {
            return Flow::Go;
        };
        let call = &mut self.call;
        match role {
            Role::Logits => *call = Call { call: number, logits: last_rows(value), ..Call::default() },
            Role::Probs => {
                call.probs = last_rows(value);
                let row = &call.probs[0];
                let best = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                call.tie = row.iter().filter(|p| **p == best).count() > 1;
            }
            Role::Candidates => {
                self.candidates = (0..value.shape().len()).map(|i| value.get(i)).collect();
            }
            Role::Drawn => call.drawn = Some(value.get(0)),
            Role::Scores => {
                call.scores = (0..value.shape().len()).map(|i| value.get(i)).collect();
                let shared = |s: &f64| self.candidates.iter().filter(|c| *c == s).count() > 1;
                call.tie = call.scores.iter().any(|s| s.is_finite() && shared(s));
            }
            Role::Parents => {
                call.parents = value.int().data().iter().map(|p| *p as usize).collect();
            }
            Role::Ids => {
                call.ids = value.int().data().to_vec();
                let several = call.probs.len() > 1;
                let row = |i: usize| call.parents.get(i).copied().unwrap_or(if several { i } else { 0 });
                let prob = |(i, id): (usize, &i64)| call.probs[row(i)][*id as usize];
                call.chosen_probs = call.ids.iter().enumerate().map(prob).collect();
            }
            Role::Beams => {
                let tokens = value.shape().dims()[1];
                call.beams = value.int().data().chunks(tokens).map(<[i64]>::to_vec).collect();
            }
        }
        if ends && !(self.reported)(&self.call) {
            return Flow::Stop;
        }
        Flow::Go
    }
}
