//! What phases are called, and titles next to them.

use crate::program::{Block, Name, Site};
use crate::tensor::Slice;
use crate::text::{Lang, Msg, tr};

/// The name of a phase as a user reads it: `encoder.1 (training)` is "Encoder layer 1 (training)". LocalizedText that the
/// catalogue does not have stay as they are: a scenario may have its own.
pub fn phase_name(phase: &str, lang: Lang) -> String {
    let words: Vec<String> = phase.split(' ').map(|word| one(word, lang)).collect();
    // Chinese words follow one another without blanks; brackets keep theirs.
    let glue = if lang == Lang::Zh { "" } else { " " };
    words.join(glue)
}

fn one(word: &str, lang: Lang) -> String {
    let bare = word.trim_start_matches('(').trim_end_matches(')');
    let key = |w: &str| match w {
        "input" => Some("phase.input"),
        "output" => Some("phase.output"),
        "encoder" => Some("phase.encoder"),
        "decoder" => Some("phase.decoder"),
        "decoder.weights" => Some("phase.decoder_weights"),
        "encoder.weights" => Some("phase.encoder_weights"),
        "training" => Some("phase.training"),
        "inference" => Some("phase.inference"),
        "comparison" => Some("phase.comparison"),
        "cross-attention" => Some("phase.cross_attention"),
        "grad" => Some("phase.grad"),
        "update" => Some("phase.update"),
        _ => None,
    };
    let numbered = |prefix: &str, key: &'static str| {
        let n: u32 = bare.strip_prefix(prefix)?.parse().ok()?;
        Some(Msg::new(key).arg("n", n).render(lang))
    };
    let name = key(bare)
        .map(|k| tr(lang, k).to_owned())
        .or_else(|| numbered("encoder.", "phase.encoder_layer"))
        .or_else(|| numbered("decoder.", "phase.decoder_layer"))
        .or_else(|| numbered("gen.", "phase.call"));
    match name {
        Some(name) if bare.len() < word.len() => Msg::new("phase.brackets").arg("name", name).render(lang),
        Some(name) => name,
        None => word.to_owned(),
    }
}

/// A title without what the phase above it says already.
pub fn short_title(title: &str, phase: &str, lang: Lang) -> String {
    let place = phase.split(' ').next().unwrap_or("");
    let name = one(place, lang);
    if let Some(rest) = title.strip_prefix(&name) {
        let rest = rest.trim_start_matches([' ', ',', ':', '，', '：', '的']);
        if !rest.is_empty() && rest.len() < title.len() {
            return rest.to_owned();
        }
    }
    // Titles of plans end in where they are: `· decoder 1 · self_attn`.
    let spaced = word(place, lang);
    let parts: Vec<&str> = title.split(" · ").filter(|p| *p != spaced).collect();
    parts.join(" · ")
}

/// Where a node stands, as the titles of plans end: ` · decoder 1 · self_attn · [head=0]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    words: Vec<String>,
    slice: Option<Slice>,
}

impl Location {
    /// Of the node called `name`, seen through `slice`.
    pub(super) fn of(name: &Name, slice: &Slice) -> Self {
        let call = name.call.map(|call| format!("gen.{call}"));
        let layer = name.site.layer().map(|(stack, layer)| format!("{}.{}", stack.as_str(), layer + 1));
        let part = match name.site {
            Site::Embedding(Some(side)) | Site::EmbeddingNorm(side) => Some(side.name()),
            Site::Layer(_, _, Block::SelfAttention) => Some("self_attn"),
            Site::Layer(_, _, Block::CrossAttention) => Some("cross_attn"),
            Site::Layer(_, _, Block::Layer | Block::FeedForward | Block::Norm(_) | Block::PostNorm(_))
            | Site::Root
            | Site::Vocabulary
            | Site::Embedding(None)
            | Site::Stack(_)
            | Site::Rotary(_)
            | Site::FinalNorm(_)
            | Site::Output
            | Site::Pooler
            | Site::Classifier
            | Site::Loss
            | Site::Beam
            | Site::Next
            | Site::Cache(_) => None,
        };
        let words = call.into_iter().chain(layer).chain(part.map(str::to_owned)).collect();
        Self { words, slice: (!slice.is_all()).then(|| slice.clone()) }
    }

    pub(super) fn render(&self, lang: Lang) -> String {
        let words = self.words.iter().map(|w| word(w, lang));
        let slice = self.slice.iter().map(ToString::to_string);
        words.chain(slice).fold(String::new(), |mut out, part| {
            out.push_str(" · ");
            out.push_str(&part);
            out
        })
    }
}

/// A part of a location: `decoder 1`, 解码器第 1 层.
fn word(part: &str, lang: Lang) -> String {
    if lang == Lang::En {
        return part.replace('.', " ");
    }
    let key = match part {
        "source" => "phase.source_side",
        "target" => "phase.target_side",
        "self_attn" => "phase.self_attention",
        "cross_attn" => "phase.cross_attention",
        _ => return one(part, lang).trim_end_matches('：').to_owned(),
    };
    tr(lang, key).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_named_in_both_languages() {
        let en = |p| phase_name(p, Lang::En);
        let zh = |p| phase_name(p, Lang::Zh);
        assert_eq!(en("encoder.1"), "Encoder layer 1");
        assert_eq!(zh("encoder.1"), "编码器第 1 层");
        assert_eq!(en("decoder.2 cross-attention (training)"), "Decoder layer 2 cross-attention (training)");
        assert_eq!(zh("decoder.1 (training)"), "解码器第 1 层（训练）");
        assert_eq!(en("gen.3 decoder.1"), "Call 3: Decoder layer 1");
        assert_eq!(en("my own"), "my own");
    }

    #[test]
    fn titles_lose_what_the_phase_says() {
        let en = |t, p| short_title(t, p, Lang::En);
        assert_eq!(en("Encoder layer 1, head 1: attention scores", "encoder.1"), "head 1: attention scores");
        assert_eq!(en("Queries · decoder 2 · self_attn", "decoder.2"), "Queries · self_attn");
        assert_eq!(en("Encoder layer 1", "encoder.1"), "Encoder layer 1");
        assert_eq!(
            short_title("解码器第 1 层：掩码后的 softmax", "decoder.1 (training)", Lang::Zh),
            "掩码后的 softmax"
        );
    }
}
