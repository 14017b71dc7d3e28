//! Generation whose length is not known before: a program of a scenario's decoder, run call by call until an end
//! token or a maximum, keeping only what a person asks for.

use std::sync::Arc;

use super::check;
use super::open::calls;
use super::{AnyBindings, Session};
use crate::model::config::Positions;
use crate::model::generate::{Calls, generate};
use crate::model::limits::Extent;
use crate::model::params::{VocabSizes, cacheable};
use crate::model::{ModelBuilder, Sequences};
use crate::program::{NodeId, Program, cost};
use crate::scenario::schema;
use crate::tensor::{Precision, Real, Value};
use crate::text::Msg;
use crate::trace::{AnyTrace, Flow, HeldSink, Keep, RunError, Settings, Sink, Then, run_with};

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
    /// Several tokens share the largest probability (of the first beam); the first of them is the greedy choice.
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
        let schema::Run::Inference {
            decode, kv_cache, ..
        } = spec
        else {
            return None;
        };
        calls(self, decode, "runs").ok().map(|c| (c, *kv_cache))
    }

    /// Most tokens that the decoder of run `run` has positions for, where there is a limit.
    pub fn most_positions(&self, run: usize) -> Option<usize> {
        match self.model_of(run).positions {
            Positions::Learned { max_len } => Some(max_len),
            _ => None,
        }
    }

    /// The program of a decoding with the model and the source of run `run`.
    ///
    /// # Errors
    /// Where the model has no decoder, or parts do not fit.
    pub fn generation(&self, run: usize, calls: &Calls, cached: bool) -> Result<Arc<Program>, Msg> {
        let (model, inputs) = (self.model_of(run), &self.runs[run].inputs);
        if model.decoder.is_none() || model.output.none {
            return Err(Msg::new("scenario.no_decoder"));
        }
        if let Some(several) = inputs.source.as_ref().filter(|s| s.batch > 1) {
            return Err(Msg::new("generate.one_sentence").arg("batch", several.batch));
        }
        if cached && !cacheable(model) {
            return Err(Msg::new("generate.cache_not_causal"));
        }
        let vocab = VocabSizes {
            source: self.source_words.len(),
            target: self.target_words.len(),
        };
        // Calls come one after the other, and few of their numbers are kept: the longest one counts.
        let lengths = calls.lengths();
        let extent = Extent {
            batch: match calls {
                Calls::Beam { beams, .. } => *beams,
                _ => 1,
            },
            source: inputs.source.as_ref().map_or(0, Sequences::tokens),
            target: lengths.iter().copied().max().unwrap_or(0),
            calls: 1,
            cached,
        };
        let all = Extent {
            calls: lengths.len(),
            ..extent
        };
        let too_large = check::size(model, vocab, "generate", &extent, self.precision);
        if let Some(msg) = too_large.or_else(|| check::calls(model, "generate", &all)) {
            return Err(msg);
        }
        let known = inputs.target.as_ref().filter(|t| t.batch == 1);
        let m = ModelBuilder::new(model, vocab, false);
        generate(
            m,
            inputs.source.as_ref(),
            calls,
            known.map(|t| t.ids.as_slice()),
            cached,
        )
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
        fn settings<T: Real>(keep: Keep) -> Settings<T> {
            Settings {
                keep,
                timed: false,
                ..Settings::default()
            }
        }
        let keep = Keep::only(program, keep);
        let held = self.held_in(program);
        let sink = &mut Then(HeldSink(&held), sink);
        Ok(match &self.params {
            AnyBindings::F32(b) => AnyTrace::F32(run_with(program, b, &settings(keep), sink)?),
            AnyBindings::F64(b) => AnyTrace::F64(run_with(program, b, &settings(keep), sink)?),
        })
    }

    /// Runs a decoding, telling of each call as it ends; `told` says whether to go on.
    ///
    /// # Errors
    /// Where it cannot run.
    pub fn generate(
        &self,
        program: &Arc<Program>,
        told: &mut dyn FnMut(&Call) -> bool,
    ) -> Result<(), RunError> {
        let mut watcher = Watcher {
            roles: roles(program),
            call: Call::default(),
            told,
        };
        self.run_program(program, |_| false, &mut watcher)
            .map(|_| ())
    }
}

/// Number of decoding calls of a program.
pub fn frames(program: &Program) -> usize {
    (0..program.len())
        .take_while(|i| program.find(&format!("gen.{i}.output.probs")).is_some())
        .count()
}

/// The decoding call that a path belongs to: `gen.3.output.logits` is of call 3.
pub fn frame_of(path: &str) -> Option<usize> {
    path.strip_prefix("gen.")?.split('.').next()?.parse().ok()
}

/// Arithmetic of each decoding call, in floating-point operations. What comes before the calls (the encoder) is not
/// in it.
pub fn frame_flops(program: &Program, precision: Precision) -> Vec<u64> {
    let mut flops = vec![0; frames(program)];
    for (id, node) in program.nodes() {
        if let Some(of) = frame_of(&node.path).and_then(|i| flops.get_mut(i)) {
            *of += cost(program, id, precision).flops;
        }
    }
    flops
}

/// What a node is to a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Logits,
    Probs,
    Drawn,
    Parents,
    Scores,
    Beams,
    Ids,
}

/// Roles by node; the last node of a call, whichever it is, ends it.
fn roles(program: &Program) -> Vec<Option<(Role, usize, bool)>> {
    let mut roles = vec![None; program.len()];
    for call in 0..frames(program) {
        let mut last = None;
        for (role, name) in [
            (Role::Logits, "output.logits"),
            (Role::Probs, "output.probs"),
            (Role::Drawn, "next.drawn"),
            (Role::Scores, "next.kept_scores"),
            (Role::Parents, "next.parents"),
            (Role::Ids, "next.id"),
            (Role::Beams, "next.tokens"),
        ] {
            if let Some(id) = program.find(&format!("gen.{call}.{name}")) {
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
    told: &'a mut dyn FnMut(&Call) -> bool,
}

/// The last position of each sequence: `[batch, token, vocab]` → `[batch][vocab]`.
fn last_rows<T: Real>(value: &Value<T>) -> Vec<Vec<f64>> {
    let t = value.float();
    let d = t.shape().dims();
    let (tokens, words) = (d[1].max(1), d[2].max(1));
    t.data()
        .chunks(tokens * words)
        .map(|s| {
            s[(tokens - 1) * words..]
                .iter()
                .map(|x| x.to_f64())
                .collect()
        })
        .collect()
}

impl<T: Real> Sink<T> for Watcher<'_> {
    fn node(&mut self, _: &Program, id: NodeId, value: &Value<T>) -> Flow<T> {
        let Some((role, number, ends)) = self.roles[id.index()] else {
            return Flow::Go;
        };
        let call = &mut self.call;
        match role {
            Role::Logits => {
                *call = Call {
                    call: number,
                    logits: last_rows(value),
                    ..Call::default()
                }
            }
            Role::Probs => {
                call.probs = last_rows(value);
                let row = &call.probs[0];
                let best = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                call.tie = row.iter().filter(|p| **p == best).count() > 1;
            }
            Role::Drawn => call.drawn = Some(value.get(0)),
            Role::Scores => {
                call.scores = (0..value.shape().len()).map(|i| value.get(i)).collect();
            }
            Role::Parents => {
                call.parents = value.int().data().iter().map(|p| *p as usize).collect();
            }
            Role::Ids => {
                call.ids = value.int().data().to_vec();
                let row = |i: usize| call.parents.get(i).copied().unwrap_or(0);
                let prob = |(i, id): (usize, &i64)| call.probs[row(i)][*id as usize];
                call.chosen_probs = call.ids.iter().enumerate().map(prob).collect();
            }
            Role::Beams => {
                let tokens = value.shape().dims()[1];
                call.beams = value
                    .int()
                    .data()
                    .chunks(tokens)
                    .map(<[i64]>::to_vec)
                    .collect();
            }
        }
        if ends && !(self.told)(&self.call) {
            return Flow::Stop;
        }
        Flow::Go
    }
}
