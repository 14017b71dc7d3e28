//! Tokens generated from a prefix: each call as it ends, and all of them.

use serde_json::{Value as Json, json};

use super::{Line, number};
use crate::model::generate::{Calls, Choice};
use crate::model::params::cacheable;
use crate::session::Session;
use crate::session::generation::{Call, Flops};
use crate::text::{Lang, Msg, NumberFormat, escape};

/// Words of the largest vocabulary whose logits are written whole.
const WHOLE_ROWS: usize = 4096;
/// Most probable tokens that are written of each call.
const TOP: usize = 10;

/// What is to be generated.
pub struct Plan {
    /// The run whose model and source are used.
    pub run: usize,
    /// Ids to go on from.
    pub from: Vec<i64>,
    /// The calls.
    pub calls: Calls,
    /// Whether keys and values of earlier positions are kept.
    pub cached: bool,
    /// The model has positions for no more than what is planned.
    pub limited: bool,
    /// Ids that end it.
    pub ends: Vec<i64>,
}

/// What was generated so far.
pub struct Generated<'a> {
    session: &'a Session,
    plan: &'a Plan,
    /// Calls that were made.
    made: usize,
    /// The first token that each of them chose.
    ids: Vec<i64>,
    /// All tokens of the best beam.
    best: Option<Vec<i64>>,
    /// The last call chose tokens that end it, and nothing else.
    ended: bool,
    /// The calls themselves, where they are kept for the JSON: long generations stay small without.
    kept: Option<Vec<Call>>,
}

impl<'a> Generated<'a> {
    /// Nothing yet; `keep` where [`Self::to_json`] is wanted at the end.
    pub fn new(session: &'a Session, plan: &'a Plan, keep: bool) -> Self {
        let kept = keep.then(Vec::new);
        Self { session, plan, made: 0, ids: Vec::new(), best: None, ended: false, kept }
    }

    /// One more call; whether there are more to come.
    pub fn push(&mut self, call: &Call) -> bool {
        self.made = call.call + 1;
        self.ids.extend(call.ids.first());
        self.best = call.beams.first().cloned();
        self.ended = !call.ids.is_empty() && call.ids.iter().all(|id| self.plan.ends.contains(id));
        if let Some(kept) = &mut self.kept {
            kept.push(call.clone());
        }
        !self.ended
    }

    /// What it goes on from.
    pub fn prefix(&self) -> Line {
        self.text(&self.plan.from)
    }

    /// The prefix and all that was generated, of the best beam where there are several.
    pub fn whole(&self) -> Line {
        let all = self.best.clone().unwrap_or_else(|| [self.plan.from.as_slice(), &self.ids].concat());
        self.text(self.trimmed(&all))
    }

    /// Tokens as a text: words with spaces between, characters without.
    fn text(&self, ids: &[i64]) -> Line {
        Line::plain(escape(&self.session.target_words.text_of(ids)))
    }

    /// Without the end tokens that a beam repeats after its end.
    fn trimmed<'i>(&self, ids: &'i [i64]) -> &'i [i64] {
        let end = |id: &i64| self.plan.ends.contains(id);
        let mut len = ids.len();
        while len > 1 && end(&ids[len - 1]) && end(&ids[len - 2]) {
            len -= 1;
        }
        &ids[..len]
    }

    /// What one call chose.
    pub fn call(&self, call: &Call, number: NumberFormat, lang: Lang) -> Line {
        let words = &self.session.target_words;
        let (mut line, tie) = if call.beams.is_empty() {
            let token = |(id, p): (&i64, &f64)| {
                let msg = Msg::new("generate.token").arg("word", escape(&words.word(*id)));
                format!("  {}", msg.arg("id", id).arg("prob", number.format(*p)).render(lang))
            };
            let chosen: String = call.ids.iter().zip(&call.chosen_probs).map(token).collect();
            (format!("{}{chosen}", call.call), "generate.tie")
        } else {
            let beam = |(ids, score): (&Vec<i64>, &f64)| {
                format!("{} ({})", escape(&words.text_of(self.trimmed(ids))), number.format(*score))
            };
            let beams: Vec<String> = call.beams.iter().zip(&call.scores).map(beam).collect();
            (format!("{}  {}", call.call, beams.join(" | ")), "generate.tie_beams")
        };
        if let Some(drawn) = call.drawn {
            line += &Msg::new("generate.drawn").arg("value", number.format(drawn)).render(lang);
        }
        if call.tie {
            line += &Msg::new(tie).render(lang);
        }
        Line::plain(line)
    }

    /// What it took, and why there is no more of it.
    ///
    /// # Errors
    /// Where its program does not build.
    pub fn remarks(&self) -> Result<Vec<Line>, Msg> {
        let (with, without) = self.flops()?;
        let flops = match with {
            Some(with) => Msg::new("generate.flops").arg("with", with.all()),
            None => Msg::new("generate.flops_uncached"),
        };
        let mut lines = vec![Line::new(flops.arg("without", without.all()))];
        if self.stop() == "max_len" {
            let most = self.session.most_positions(self.plan.run).unwrap_or(0);
            lines.push(Line::new(Msg::new("generate.max_len").arg("most", most)));
        }
        Ok(lines)
    }

    /// Why it ended.
    fn stop(&self) -> &'static str {
        match (self.ended, self.plan.limited) {
            (true, _) => "eos",
            (false, true) => "max_len",
            (false, false) => "max_new",
        }
    }

    /// Arithmetic with a cache, where the decoder can have one, and without.
    fn flops(&self) -> Result<(Option<Flops>, Flops), Msg> {
        let of = |cached| self.session.decoding_flops(self.plan.run, &self.plan.calls.first(self.made), cached);
        let with = cacheable(self.session.model_of(self.plan.run)).then(|| of(true)).transpose()?;
        Ok((with, of(false)?))
    }

    /// For programs, with the calls that were kept.
    ///
    /// # Errors
    /// Where its program does not build.
    pub fn to_json(&self) -> Result<Json, Msg> {
        let (session, plan) = (self.session, self.plan);
        let texts = |ids: &[i64]| -> Vec<String> { ids.iter().map(|id| session.target_words.word(*id)).collect() };
        let ids = self.best.as_ref().map_or(self.ids.as_slice(), |best| &self.trimmed(best)[plan.from.len()..]);
        let (with, without) = self.flops()?;
        let calls = self.kept.iter().flatten().enumerate();
        let calls: Vec<Json> = calls
            .map(|(i, call)| {
                let mut json = json!({
                    "call": call.call,
                    "tie": call.tie,
                    "drawn": call.drawn.map(number),
                    "argmax": call.argmax(),
                    "flops": { "cached": with.as_ref().and_then(|w| w.calls.get(i)), "uncached": without.calls.get(i) },
                });
                self.chosen(call, &mut json);
                json
            })
            .collect();
        let choice = match &plan.calls {
            Calls::Free {
                choice: Choice::Sample { temperature, top_k, top_p, min_p, repetition_penalty, seed },
                ..
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
            "prefix": { "ids": plan.from, "texts": texts(&plan.from) },
            "ids": ids,
            "texts": texts(ids),
            "text": session.target_words.text_of(&[plan.from.as_slice(), ids].concat()),
            "stopped": self.stop(),
            "flops": { "before": without.before, "cached": with.map(|w| w.all()), "uncached": without.all() },
            "calls": calls,
        }))
    }

    /// What a call chose, and from what.
    fn chosen(&self, call: &Call, json: &mut Json) {
        let word = |id: i64| self.session.target_words.word(id);
        let row = |row: &Vec<f64>| -> Json { row.iter().copied().map(number).collect() };
        if matches!(self.plan.calls, Calls::Beam { .. }) {
            json["logits"] = call.logits.iter().map(row).collect();
            json["probs"] = call.probs.iter().map(row).collect();
            let beam = |(b, tokens): (usize, &Vec<i64>)| {
                json!({
                    "parent": call.parents[b],
                    "id": call.ids[b],
                    "text": word(call.ids[b]),
                    "prob": number(call.chosen_probs[b]),
                    "score": number(call.scores[b]),
                    "ids": tokens,
                })
            };
            json["beams"] = call.beams.iter().enumerate().map(beam).collect();
            return;
        }
        let (logits, probs) = (&call.logits[0], &call.probs[0]);
        json["id"] = json!(call.ids.first());
        json["text"] = json!(call.ids.first().map(|id| word(*id)));
        json["prob"] = json!(call.chosen_probs.first().copied().map(number));
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
        let one = |id: &usize| {
            let (logit, prob) = (number(logits[*id]), number(probs[*id]));
            json!({ "id": id, "text": word(*id as i64), "logit": logit, "prob": prob })
        };
        json["top"] = order.iter().take(TOP).map(one).collect();
        if logits.len() <= WHOLE_ROWS {
            json["logits"] = row(logits);
            json["probs"] = row(probs);
        }
    }
}
