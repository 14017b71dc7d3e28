//! What lints must be given, since a program does not say it: which tokens are padding, whether dropout may act.

use crate::debug::teacher::{Shift, shift_of};
use crate::model::Sequences;
use crate::model::config::Positions;
use crate::scenario::schema::Input;
use crate::scenario::tokenise::Vocab;
use crate::session::{RunKind, Session, padding};
use crate::tensor::Precision;

/// What is known of a run next to its program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether the run trains: dropout may act.
    pub training: bool,
    /// Whether the encoder itself predicts next tokens, so that it must not look ahead.
    pub source_predicts: bool,
    /// Padding of what the encoder reads.
    pub source: Padding,
    /// Padding of what the decoder reads; decoding calls have none.
    pub target: Padding,
    /// Row of the table of positions that the model gives the first token.
    pub first_row: usize,
    /// Whether the scenario itself is in f32: such a model is run in half precision too.
    pub is_f32: bool,
    /// Nodes of the program's beginning that another run has shown already.
    pub from: usize,
}

/// Which tokens of a batch are padding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Padding {
    tokens: usize,
    flags: Vec<bool>,
}

impl Padding {
    /// Sentences as flags, true where a token is padding; all equally long.
    pub fn new(rows: &[Vec<bool>]) -> Self {
        Self { tokens: rows.first().map_or(0, Vec::len), flags: rows.concat() }
    }

    /// Whether any token is padding.
    pub fn any(&self) -> bool {
        self.flags.contains(&true)
    }

    /// Tokens a sentence; 0 where nothing is known.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Whether token `token` of sentence `batch` is padding. One sentence denotes all beams that read it.
    pub fn at(&self, batch: usize, token: usize) -> bool {
        let sentences = self.flags.len() / self.tokens.max(1);
        let row = batch.min(sentences.saturating_sub(1));
        token < self.tokens && self.flags.get(row * self.tokens + token) == Some(&true)
    }

    /// What is padding in `sequences`, as [`padding::seen`] decides.
    fn of(sequences: &Sequences, given: Option<&Input>, words: &Vocab) -> Self {
        let tokens = sequences.tokens();
        Self { tokens, flags: padding::seen(&sequences.ids, tokens, sequences.real.as_deref(), given, words) }
    }
}

impl Facts {
    /// What a session knows of its run `run`.
    pub fn of(session: &Session, run: usize) -> Self {
        let r = &session.runs[run];
        let inputs = &r.inputs;
        let trains = matches!(r.kind, RunKind::Training | RunKind::Backward | RunKind::Update);
        let named = |name: &str| session.scenario.runs.iter().find(|r| r.name() == name);
        let forward = &session.runs[session.forward_of(run).unwrap_or(run)].name;
        let own = named(forward).map(crate::scenario::schema::Run::with);
        let source = own.and_then(|w| w.source.as_ref());
        let source = source.or(session.scenario.source.as_ref());
        let target = own.and_then(|w| w.target.as_ref());
        let target = target.or(session.scenario.target.as_ref());
        let padding = |s: &Option<Sequences>, given, words| {
            s.as_ref().map_or_else(Padding::default, |s| Padding::of(s, given, words))
        };
        Self {
            training: trains,
            is_f32: session.scenario.precision == Precision::F32,
            source_predicts: trains && source_predicts(session, run),
            source: padding(&inputs.source, source, &session.source_words),
            target: padding(&inputs.target, target, &session.target_words),
            first_row: match session.model_of(run).positions {
                Positions::Learned { offset, .. } => offset,
                _ => 0,
            },
            from: match r.kind {
                RunKind::Backward | RunKind::Update => session.runs[run - 1].program.len(),
                _ => 0,
            },
        }
    }
}

/// Whether a model without decoder has next tokens of its source as labels.
fn source_predicts(session: &Session, run: usize) -> bool {
    let inputs = &session.runs[run].inputs;
    let (Some(source), Some(labels), None) = (&inputs.source, &inputs.labels, &inputs.target) else {
        return false;
    };
    shift_of(&source.ids, labels, source.tokens()) == Some(Shift::Next)
}
