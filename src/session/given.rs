//! The scenario of a session with another sentence.

use super::Session;
use crate::scenario::Scenario;
use crate::scenario::schema::{Decode, Input, Prefix, Run};
use crate::text::Msg;

impl Session {
    /// `scenario`, which is this session's with edits, in which `text` is read: by the encoder, or by a decoder without one, whose generations then go on
    /// from it where they went on from the sentence before.
    ///
    /// # Errors
    /// Text that the vocabulary does not have, or that is no token at all.
    pub fn with_text(&self, scenario: &Scenario, text: &str) -> Result<Scenario, Msg> {
        let mut scenario = scenario.clone();
        let encodes = scenario.model.encoder.is_some();
        let words = if encodes { &self.source_words } else { &self.target_words };
        let ids: Vec<i64> = words.encode(text)?.into_iter().map(|token| token.id).collect();
        if ids.is_empty() {
            return Err(Msg::new("scenario.no_tokens"));
        }
        let side = if encodes { &mut scenario.source } else { &mut scenario.target };
        let before = side.take().unwrap_or_default();
        let old = self.inputs.target.as_ref().map(|t| t.ids.clone()).unwrap_or_default();
        *side = Some(Input { ids: vec![ids.clone()], sos: before.sos, eos: before.eos, ..Input::default() });
        if !encodes {
            for run in &mut scenario.runs {
                let Run::Inference { decode, .. } = run else { continue };
                if let Decode::Greedy { from, .. } | Decode::Sample { from, .. } | Decode::Beam { from, .. } = decode
                    && matches!(from, Prefix::Ids(ids) if *ids == old)
                {
                    *from = Prefix::Ids(ids.clone());
                }
            }
        }
        Ok(scenario)
    }

    /// What run `run` reads first: the text of the encoder, else of the decoder; sentences with ` / ` between them.
    pub fn text_of(&self, run: usize) -> String {
        let inputs = &self.runs[run].inputs;
        let (read, words) = match (&inputs.source, &inputs.target) {
            (Some(source), _) => (source, &self.source_words),
            (None, Some(target)) => (target, &self.target_words),
            (None, None) => return String::new(),
        };
        let rows = read.ids.chunks(read.tokens().max(1));
        rows.map(|ids| words.text_of(ids)).collect::<Vec<_>>().join(" / ")
    }
}
