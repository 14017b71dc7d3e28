//! What is said next to the steps of an automatic plan: the scenario's remarks, and how the text was cut.

use super::Session;
use crate::program::{Role, Side, Site};
use crate::scenario::schema;
use crate::scenario::tokenise::Token;
use crate::text::{Msg, escape};
use crate::walkthrough::{LocalizedText, Step};

/// Tokens that a note lists.
const MAX_TOKENS: usize = 200;

/// A text of the scenario.
pub(super) fn given(t: &schema::Text) -> LocalizedText {
    if t.en.is_empty() && t.zh.is_empty() {
        LocalizedText::Empty
    } else {
        LocalizedText::Given { en: t.en.as_str().into(), zh: t.zh.as_str().into() }
    }
}

impl Session {
    /// The note of an automatic step, where it is not the catalogue's: a remark of the scenario, or the tokens.
    pub(super) fn remark(&self, run: usize, step: &Step) -> Option<LocalizedText> {
        let r = &self.runs[run];
        for node in step.views.iter().rev().map(|v| r.program.node(v.node)) {
            if let Some(text) = self.scenario.remarks.get(&*node.path) {
                return Some(given(text));
            }
            let name = &node.name;
            let ids = name.role == Role::Ids && name.inner.is_empty() && name.call.is_none() && !name.is_gradient();
            let sentences = match name.site {
                Site::Embedding(Some(Side::Source)) if ids => &r.inputs.source_tokens,
                Site::Embedding(Some(Side::Target)) if ids => &r.inputs.target_tokens,
                _ => continue,
            };
            return tokens(sentences).map(LocalizedText::Message);
        }
        None
    }
}

/// `我→4 爱→7`, sentence by sentence, and which of them the vocabulary does not have.
fn tokens(sentences: &[Vec<Token>]) -> Option<Msg> {
    let all: usize = sentences.iter().map(Vec::len).sum();
    if all == 0 || all > MAX_TOKENS {
        return None;
    }
    let lines: Vec<String> = sentences
        .iter()
        .map(|sentence| {
            let pairs = sentence.iter().map(|t| format!("{}→{}", escape(&t.text), t.id));
            pairs.collect::<Vec<_>>().join(" ")
        })
        .collect();
    let unknown: Vec<String> =
        sentences.iter().flatten().filter(|t| t.unknown).map(|t| escape(&t.text).into_owned()).collect();
    let listed = lines.join(" | ");
    Some(if unknown.is_empty() {
        Msg::new("walk.tokens").arg("tokens", listed)
    } else {
        Msg::new("walk.tokens_unknown").arg("tokens", listed).arg("unknown", unknown.join(" "))
    })
}
