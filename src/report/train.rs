//! What a training run came to.

use std::path::Path;

use serde_json::{Value as Json, json};

use super::{Level, Line};
use crate::program::optimiser::{Optimiser, OptimiserKind};
use crate::session::Session;
use crate::session::insight::{GradientNorm, ModelSnapshot};
use crate::text::{Lang, Msg, NumberFormat, escape};
use crate::trace::train::Stopped;

/// Rows of losses in the text.
const ROWS: usize = 20;

/// What a training run came to.
pub struct Train<'a> {
    /// What is trained.
    pub session: &'a Session,
    /// Its run.
    pub run: usize,
    /// The optimiser.
    pub rule: &'a Optimiser,
    /// Sequences an update, where not all.
    pub batch: Option<usize>,
    /// Seed of batches and dropout.
    pub seed: u64,
    /// Updates that were requested.
    pub requested: usize,
    /// Updates that the weights have behind them.
    pub made: u64,
    /// Loss of each update.
    pub losses: &'a [f64],
    /// At the start, at points between where they were requested, at the end.
    pub looks: &'a [ModelSnapshot],
    /// Whether the JSON has attention maps and embeddings.
    pub maps: bool,
    /// Whether a signal ended it.
    pub interrupted: bool,
    /// Why it ended before its time.
    pub stopped: Option<&'a Stopped>,
    /// Where the weights are.
    pub saved: Option<&'a Path>,
}

impl Train<'_> {
    /// For programs.
    pub fn to_json(&self) -> Json {
        let (momentum, betas, eps) = match self.rule.kind {
            OptimiserKind::Sgd => (Some(self.rule.momentum), None, None),
            OptimiserKind::Adam | OptimiserKind::AdamW => (None, Some(self.rule.betas), Some(self.rule.eps)),
        };
        let stopped = self.stopped.map(|s| {
            let (update, path) = match s {
                Stopped::Build { update, .. }
                | Stopped::Run { update, .. }
                | Stopped::NoLabels { update, .. }
                | Stopped::NoSuchUpdate { update, .. } => (update + 1, None),
                Stopped::NotFinite { update, path, .. } => (update + 1, Some(path.to_string())),
            };
            json!({ "update": update, "path": path, "why": Msg::from(s).render(Lang::En) })
        });
        json!({
            "scenario": self.session.scenario.name,
            "run": self.session.runs[self.run].name,
            "precision": format!("{:?}", self.session.precision).to_lowercase(),
            "config": {
                "optimizer": self.rule.kind.name(),
                "lr": self.rule.lr,
                "momentum": momentum,
                "betas": betas,
                "eps": eps,
                "weight_decay": self.rule.weight_decay,
                "clip": self.rule.clip,
                "warmup": self.rule.warmup,
                "steps": self.requested,
                "batch": self.batch,
                "seed": self.seed,
            },
            "updates": self.made,
            "loss": self.losses,
            "final_loss": self.looks.last().map(|l| l.loss),
            "interrupted": self.interrupted,
            "stopped": stopped,
            "saved": self.saved.map(|p| p.to_string_lossy()),
            "looks": self.looks.iter().map(|l| self.look(l)).collect::<Vec<_>>(),
        })
    }

    fn look(&self, look: &ModelSnapshot) -> Json {
        let mut out = json!({
            "update": look.update,
            "loss": look.loss,
            "gradient_norms": look.gradients.iter().map(norm).collect::<Vec<_>>(),
        });
        if self.maps {
            let words = self.session.words(self.session.spoken());
            let tokens: Vec<String> = (0..look.embeddings.len() as i64).map(|i| words.word(i)).collect();
            out["attention"] = look
                .attention
                .iter()
                .map(|m| json!({ "path": m.path, "head": m.head, "weights": m.weights }))
                .collect();
            out["embeddings"] = json!({ "tokens": tokens, "points": look.embeddings });
        }
        out
    }

    /// The settings, losses evenly spread over the run, the last loss and gradients, and where the weights are.
    pub fn lines(&self, number: Option<NumberFormat>) -> Vec<Line> {
        let head = Msg::new(if self.made == 1 { "train.head_one" } else { "train.head" })
            .arg("name", escape(&self.session.scenario.name))
            .arg("optimizer", self.rule.kind.name())
            .arg("lr", NumberFormat::Shortest.format(self.rule.lr))
            .arg("updates", self.made);
        let mut lines = vec![Line::new(head)];
        let count = self.losses.len();
        let shown = count.min(ROWS);
        lines.extend((0..shown).map(|i| {
            let at = if shown > 1 { i * (count - 1) / (shown - 1) } else { 0 };
            let msg = Msg::new("train.row").arg("update", format!("{:>6}", at + 1));
            Line::new(msg.arg("loss", loss_text(self.losses[at], number)))
        }));
        if let Some(last) = self.looks.last() {
            lines.push(Line::new(Msg::new("train.final").arg("loss", loss_text(last.loss, number))));
            lines.push(Line::new(Msg::new("train.norms")));
            lines.extend(last.gradients.iter().map(|n| {
                Line::plain(format!("  {:<14} {:>12.4e} {:>12.4e}", escape(&n.part), n.activation, n.parameters))
            }));
        }
        if self.interrupted {
            let key = if self.saved.is_some() { "train.interrupted" } else { "train.interrupted_unsaved" };
            lines.push(Line::new(Msg::new(key)).level(Level::Warning));
        }
        if let Some(path) = self.saved {
            let msg = Msg::new("train.saved").arg("path", escape(&path.to_string_lossy()));
            lines.push(Line::new(msg).level(Level::Done));
        }
        lines
    }
}

/// A loss: six decimals unless a user chose; what would read as 0 in scientific notation.
pub fn loss_text(loss: f64, number: Option<NumberFormat>) -> String {
    let text = match number {
        Some(number) => number.format(loss),
        None => format!("{loss:.6}"),
    };
    if loss != 0.0 && text.parse() == Ok(0.0) { NumberFormat::Scientific(4).format(loss) } else { text }
}

fn norm(n: &GradientNorm) -> Json {
    json!({ "part": n.part, "activation": n.activation, "parameters": n.parameters })
}
