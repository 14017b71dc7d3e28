//! Tables of words: what the runs did stage by stage, teacher forcing, the KV cache.

use std::sync::Arc;

use super::Navigator;
use crate::app::view::View;
use crate::debug::cache::{self, cache_bytes};
use crate::debug::teacher::{self, Shift};
use crate::explain::Explainer;
use crate::export::document::COMPARISON;
use crate::model::generate::Calls;
use crate::program::{Name, Role, Side, Site};
use crate::session::generation::frame_of;
use crate::session::{RunKind, Table, stages};
use crate::tensor::Axis;
use crate::text::{Lang, Msg, tr};
use crate::trace::derive::{Arithmetic, Cell, Line};

/// A table of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextTable {
    /// Training beside inference.
    Stages,
    /// What each position of a training run sees and must predict.
    Teacher(usize),
    /// What each call of an inference run finds in the cache and adds to it.
    Cache(usize),
}

/// A table with what is said above it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RenderedTable {
    /// Said above; empty for nothing.
    pub head: String,
    /// The table.
    pub table: Table,
    /// Lines of numbers that go with the rows, by name: drawn where there is room.
    pub lines: Vec<(String, Vec<f64>)>,
}

/// A table, or why there is none.
pub type TableResult = Result<Arc<RenderedTable>, Msg>;

/// Arithmetic of a decoding beyond which it is not computed a second time to be compared.
const MAX_FLOPS: u64 = 4_000_000_000;

/// Positions of a training run that are listed.
const MAX_POSITIONS: usize = 256;
/// Tokens that a position sees, as far as they are written out.
const MAX_SEEN: usize = 12;

/// Tokens in a row; of many, the last ones.
fn seen(tokens: &[String]) -> String {
    match tokens.len().checked_sub(MAX_SEEN) {
        None | Some(0) => tokens.join(" "),
        Some(left) => format!("… {} ({})", tokens[left..].join(" "), tokens.len()),
    }
}

impl Navigator {
    /// A table of words, made when it is first asked for.
    ///
    /// # Errors
    /// What the scenario lacks for it, or why a run cannot run.
    pub fn words(&self, which: TextTable, lang: Lang) -> TableResult {
        if let Some(made) = self.words.borrow().get(&(which, lang)) {
            return made.clone();
        }
        let made = match which {
            TextTable::Stages => self.stage_table(lang),
            TextTable::Teacher(run) => self.teacher_table(run, lang),
            TextTable::Cache(run) => self.cache_table(run, lang),
        }
        .map(Arc::new);
        self.words.borrow_mut().insert((which, lang), made.clone());
        made
    }

    /// The table that a view shows; `None` where it is none of words, or the scenario has no run for it.
    pub fn words_of(&self, view: View) -> Option<TextTable> {
        let run = |kind: RunKind| {
            let runs = &self.session.runs;
            let here = self.step().map(|s| s.run);
            here.filter(|r| runs[*r].kind == kind).or_else(|| runs.iter().position(|r| r.kind == kind))
        };
        match view {
            View::Step => {
                let step = self.step()?;
                (step.views.is_empty() && step.phase == COMPARISON).then_some(TextTable::Stages)
            }
            View::Stages => Some(TextTable::Stages),
            View::Teacher => run(RunKind::Training).map(TextTable::Teacher),
            View::Cache => run(RunKind::Inference).map(TextTable::Cache),
            _ => None,
        }
    }

    /// The row of a table that belongs to the place one is at.
    pub fn words_row(&self, which: TextTable) -> Option<usize> {
        let view = self.view()?;
        let node = self.session.runs[view.run].program.node(view.node);
        match which {
            TextTable::Stages => None,
            TextTable::Teacher(run) => {
                let shape = node.shape;
                let (_, cell) = self.cell().filter(|(r, _)| *r == run)?;
                let at = shape.unflat(cell.flat);
                let axis = |want: &[Axis]| shape.axes().iter().position(|a| want.contains(a));
                let position = at[axis(&[Axis::Token, Axis::Query])?];
                let tokens = self.session.runs[run].inputs.target.as_ref()?.tokens();
                let batch = axis(&[Axis::Batch]).map_or(0, |d| at[d]);
                let source = node.name.site.side() == Some(Side::Source);
                (!source && position < tokens).then_some(batch * tokens + position)
            }
            TextTable::Cache(run) => (view.run == run).then(|| frame_of(node)).flatten(),
        }
    }

    fn stage_table(&self, lang: Lang) -> Result<RenderedTable, Msg> {
        match stages(&self.session, lang) {
            Ok(Some(table)) => Ok(RenderedTable { table, ..RenderedTable::default() }),
            Ok(None) => Err(Msg::new("stages.none")),
            Err(e) => Err(Msg::new("cli.cannot_run").arg("why", e)),
        }
    }

    fn teacher_table(&self, run: usize, lang: Lang) -> Result<RenderedTable, Msg> {
        let s = &self.session;
        let positions = teacher::first_positions(s, run, MAX_POSITIONS);
        if positions.is_empty() {
            return Err(Msg::new("teacher.none"));
        }
        let several = positions.iter().any(|p| p.batch > 0);
        let predicted = self.predicted(run);
        let rows = positions.iter().enumerate().map(|(i, p)| {
            let place = if several { format!("{}.{}", p.batch, p.position) } else { p.position.to_string() };
            let label_at = match (p.label_at, &p.predicts) {
                (_, None) => tr(lang, "teacher.not_counted").to_owned(),
                (None, _) => tr(lang, "teacher.nowhere").to_owned(),
                (Some(0), _) => tr(lang, "teacher.own").to_owned(),
                (Some(1), _) => tr(lang, "teacher.next").to_owned(),
                (Some(by), _) => Msg::new("teacher.at").arg("by", format!("{by:+}")).render(lang),
            };
            vec![
                place,
                seen(&p.sees),
                p.predicts.clone().unwrap_or_else(|| "—".to_owned()),
                label_at,
                predicted.get(i).cloned().unwrap_or_default(),
            ]
        });
        let head = match teacher::shift(s, run) {
            Some(Shift::Next) => "teacher.shift.next",
            Some(Shift::Unshifted) => "teacher.shift.unshifted",
            Some(Shift::Twice) => "teacher.shift.twice",
            Some(Shift::Other) | None => "teacher.shift.other",
        };
        let mut head = tr(lang, head).to_owned();
        if positions.len() == MAX_POSITIONS {
            let first = Msg::new("teacher.first").arg("count", MAX_POSITIONS);
            head = format!("{head} {}", first.render(lang));
        }
        let columns = ["position", "sees", "predicts", "label_at", "predicted"];
        Ok(RenderedTable {
            head,
            table: Table {
                columns: columns.map(|c| tr(lang, &format!("teacher.column.{c}")).to_owned()).into(),
                rows: rows.collect(),
            },
            lines: Vec::new(),
        })
    }

    /// What the model predicts at each position of a training run, and how probable it finds that.
    fn predicted(&self, run: usize) -> Vec<String> {
        let program = &self.session.runs[run].program;
        let value = |path: &str| self.session.trace(run).ok()?.get(program.find(path)?);
        let (Some(ids), Some(probs)) = (value("output.argmax"), value("output.predicted_probs")) else {
            return Vec::new();
        };
        let words = self.session.words(self.session.spoken());
        let number = crate::text::NumberFormat::default();
        (0..ids.shape().len().min(probs.shape().len()))
            .map(|i| {
                let word = words.word(ids.get(i) as i64);
                format!("{word} {}", number.format(probs.get(i)))
            })
            .collect()
    }

    fn cache_table(&self, run: usize, lang: Lang) -> Result<RenderedTable, Msg> {
        let s = &self.session;
        let missing = || Msg::new("side.no_such").arg("what", "inference");
        let (calls, own) = s.calls_of(run).ok_or_else(missing)?;
        let planned = calls.count();
        let calls = calls.first(s.calls_made(run));
        let bytes = cache_bytes(&*s.generation(run, &calls, true)?, s.precision);
        let with = s.decoding_flops(run, &calls, true)?;
        let without = s.decoding_flops(run, &calls, false)?;
        let (less, more) = (&with.calls, &without.calls);
        let lengths = calls.lengths();
        let tokens = self.tokens_of_calls(run, &lengths);
        let compared = (without.all() <= MAX_FLOPS).then(|| cache::compare(s, run, &calls, &mut ()).ok()).flatten();
        let mut rows = Vec::new();
        let (mut all_with, mut all_without) = (with.before, without.before);
        let mut lines = [Vec::new(), Vec::new()];
        for call in 0..less.len().min(lengths.len()) {
            let old = call.checked_sub(1).map_or(0, |before| lengths[before]);
            let words = |range: std::ops::Range<usize>| {
                let text = tokens.get(call).and_then(|t| t.get(range.clone()));
                let text = text.filter(|t| !t.is_empty() && t.len() <= MAX_SEEN);
                let text = text.map_or_else(String::new, |t| format!("{} ", t.join(" ")));
                format!("{text}({})", range.len())
            };
            all_with += less[call];
            all_without += more[call];
            lines[0].push(all_with as f64);
            lines[1].push(all_without as f64);
            let bits = compared.as_ref().map(|r| {
                let key = if r.different.contains(&call) { "cache.differ" } else { "cache.same" };
                tr(lang, key).to_owned()
            });
            rows.push(vec![
                (call + 1).to_string(),
                words(0..old.min(lengths[call])),
                words(old.min(lengths[call])..lengths[call]),
                bytes.get(call).map_or_else(String::new, u64::to_string),
                less[call].to_string(),
                more[call].to_string(),
                format!("{:.2}", more[call] as f64 / less[call].max(1) as f64),
                bits.unwrap_or_else(|| "—".to_owned()),
            ]);
        }
        let columns = ["call", "old", "new", "bytes", "with", "without", "times", "bits"];
        let key = if own { "cache.with" } else { "cache.without" };
        let head = Msg::new(key)
            .arg("run", crate::text::escape(&s.runs[run].name))
            .arg("with", all_with)
            .arg("without", all_without);
        let mut notes = vec![head];
        if with.before > 0 {
            notes.push(Msg::new("cache.encoder").arg("flops", with.before));
        }
        if matches!(calls, Calls::Beam { .. }) {
            notes.push(Msg::new("cache.beams"));
        }
        let left = planned - calls.count();
        if left > 0 {
            notes.push(Msg::new("walk.stopped").arg("left", left));
        }
        let notes: Vec<String> = notes.iter().map(|n| n.render(lang)).collect();
        let [with, without] = lines;
        Ok(RenderedTable {
            head: notes.join(if lang == Lang::Zh { "" } else { " " }),
            table: Table { columns: columns.map(|c| tr(lang, &format!("cache.column.{c}")).to_owned()).into(), rows },
            lines: vec![
                (tr(lang, "cache.column.with").to_owned(), with),
                (tr(lang, "cache.column.without").to_owned(), without),
            ],
        })
    }

    /// All tokens that each call sees. A call with a cache reads the newest only: the others are those of before.
    fn tokens_of_calls(&self, run: usize, lengths: &[usize]) -> Vec<Vec<String>> {
        let program = &self.session.runs[run].program;
        let Ok(trace) = self.session.trace(run) else {
            return Vec::new();
        };
        let words = self.session.words(Side::Target);
        let mut all: Vec<Vec<String>> = Vec::new();
        for (call, length) in lengths.iter().enumerate() {
            let names = [(Site::Root, Role::Tokens), (Site::Embedding(Some(Side::Target)), Role::Ids)];
            let mut found = names
                .into_iter()
                .filter_map(|(site, role)| trace.get(program.named(&Name::of(site).then(role).in_call(call as u32))?));
            let Some(ids) = found.next() else { break };
            let row = ids.shape().dims().last().copied().unwrap_or(0);
            let read = (0..row).map(|i| words.word(ids.get(i) as i64));
            let before = all.last().filter(|_| row < *length);
            let mut seen: Vec<String> = before.cloned().unwrap_or_default();
            seen.truncate(length.saturating_sub(row));
            seen.extend(read);
            all.push(seen);
        }
        all
    }

    /// The first decoding call up to that of the place one is at that chose the end token, where the vocabulary has
    /// one: what is decoded after it would not be.
    pub(super) fn ended(&self) -> Option<usize> {
        let view = self.view()?;
        let run = &self.session.runs[view.run];
        let here = frame_of(run.program.node(view.node))?;
        let end = *self.session.ends().first()?;
        let trace = self.trace(view.run)?;
        (0..=here).find(|call| {
            let chosen = run.program.named(&Name::of(Site::Next).then(Role::Id).in_call(*call as u32));
            let chosen = chosen.filter(|id| *call < here || *id <= view.node);
            let value = chosen.and_then(|id| trace.get(id));
            value.is_some_and(|v| v.shape().len() == 1 && v.get(0) as i64 == end)
        })
    }

    /// How many of the numbers that an argmax chose from share the largest value, where they are more than one. The
    /// first of them is chosen.
    pub(super) fn tie(&self) -> Option<usize> {
        let (run, cell) = self.cell()?;
        let line = self.argmax_row(run, cell)?;
        let trace = self.trace(run)?;
        let explainer = Explainer::new(&trace);
        let row: Vec<f64> = line.cells().map(|c| explainer.value(c)).collect();
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let count = row.iter().filter(|x| **x == most).count();
        (count > 1).then_some(count)
    }

    /// The cells that an argmax chose `cell` from.
    pub(super) fn argmax_row(&self, run: usize, mut cell: Cell) -> Option<Line> {
        let trace = self.trace(run)?;
        let explainer = Explainer::new(&trace);
        loop {
            match explainer.arithmetic(cell) {
                Arithmetic::Copy(of) => cell = of,
                Arithmetic::ArgMax(line) => return Some(line),
                _ => return None,
            }
        }
    }
}
