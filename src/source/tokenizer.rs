//! Text to ids and back, by the `tokenizers` crate: from `tokenizer.json`, or from the vocabulary of a GGUF file.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use tokenizers::{EncodeInput, NormalizedString, Normalizer as _};

use super::gguf::{self, Gguf};
use super::gguf_vocab;
use super::mapped::Mapped;
use crate::text::{Msg, escape};

/// A text in tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// Their ids.
    pub ids: Vec<u32>,
    /// Their pieces, as the vocabulary writes them.
    pub tokens: Vec<String>,
    /// Start and end of each in its text, in Unicode characters; `(0, 0)` for a special token.
    pub offsets: Vec<(usize, usize)>,
    /// 1 for the tokens of the second text of a pair, where the tokenizer says so.
    pub type_ids: Vec<u32>,
}

/// A tokenizer.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// Its file, for messages.
    file: String,
    /// Whether pieces are written in the characters that byte-level vocabularies use for bytes.
    byte_level: bool,
    /// Ids below this are tokens of the model; see `gguf_vocab`.
    end: u32,
}

/// Bytes of a `tokenizer.json`, at most.
const MAX_FILE: usize = 256 << 20;

impl Tokenizer {
    /// The tokenizer of a folder (its `tokenizer.json`), of a GGUF file, or in a file in the format of `tokenizer.json`.
    ///
    /// # Errors
    /// Where there is none, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self, Msg> {
        let within = path.join("tokenizer.json");
        let path = if path.is_dir() { &within } else { path };
        let file = Mapped::open(path)?;
        if file.starts_with(gguf::MAGIC) {
            let (header, _) = gguf::read(&file)?;
            return Self::of_gguf(&header, &file.name());
        }
        if file.len() > MAX_FILE {
            return Err(Msg::new("source.tokenizer_too_large").arg("file", file.name()));
        }
        Self::from_json(&file, file.name())
    }

    /// The tokenizer of the vocabulary in a GGUF file; `file` is its name for messages.
    ///
    /// # Errors
    /// Where it has none, or one of a kind that is not read.
    pub fn of_gguf(header: &Gguf, file: &str) -> Result<Self, Msg> {
        let (json, tokens) = gguf_vocab::to_json(header, file)?;
        let end = u32::try_from(tokens).unwrap_or(u32::MAX);
        Ok(Self { end, ..Self::from_json(json.to_string().as_bytes(), file.to_owned())? })
    }

    fn from_json(json: &[u8], file: String) -> Result<Self, Msg> {
        let broken = |why: String| Msg::new("source.tokenizer_broken").arg("file", &file).arg("why", escape(&why));
        // The crate takes JSON for granted in some of its parts.
        serde_json::from_slice::<Sound>(json).map_err(|e| broken(e.to_string()))?;
        let merges = serde_json::from_slice::<Merges>(json).map_err(|e| broken(e.to_string()))?;
        if let Some((a, b)) = merges.without_piece() {
            return Err(Msg::new("source.tokenizer_merge").arg("file", &file).arg("a", escape(a)).arg("b", escape(b)));
        }
        let mut inner = tokenizers::Tokenizer::from_bytes(json).map_err(|e| broken(e.to_string()))?;
        // Settings of a batch, not of the text at hand.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|e| broken(e.to_string()))?;
        let decoder = serde_json::to_value(inner.get_decoder()).unwrap_or(Json::Null);
        let byte_level = decoder.to_string().contains("\"ByteLevel\"");
        Ok(Self { inner, file, byte_level, end: u32::MAX })
    }

    /// The tokens of `text`, or of a pair of texts.
    ///
    /// # Errors
    /// Where the vocabulary has no token for a part of it and none for what it does not know.
    pub fn encode(&self, text: &str, pair: Option<&str>, special_tokens: bool) -> Result<Encoding, Msg> {
        let input = match pair {
            Some(pair) => EncodeInput::Dual(text.into(), pair.into()),
            None => EncodeInput::Single(text.into()),
        };
        let e = self
            .inner
            .encode_char_offsets(input, special_tokens)
            .map_err(|e| Msg::new("source.not_encoded").arg("file", &self.file).arg("why", escape(&e.to_string())))?;
        let mut out = Encoding::default();
        for (i, (id, token)) in e.get_ids().iter().zip(e.get_tokens()).enumerate() {
            for (id, token) in self.known(*id, token)? {
                out.ids.push(id);
                out.tokens.push(token);
                out.offsets.push(e.get_offsets()[i]);
                out.type_ids.push(e.get_type_ids()[i]);
            }
        }
        Ok(out)
    }

    /// The tokens of the model for `id`, with their pieces: itself (of what the vocabulary does not know, the part of the
    /// text), or for a character that is no piece its bytes, else the unknown token.
    fn known(&self, id: u32, token: &str) -> Result<Vec<(u32, String)>, Msg> {
        if id < self.end {
            return Ok(vec![(id, token.to_owned())]);
        }
        let piece = |name: String| self.id(&name).map(|id| (id, name));
        let bytes: Option<Vec<_>> = token.bytes().map(|b| piece(format!("<0x{b:02X}>"))).collect();
        let unknown = || self.id("<unk>").map(|id| vec![(id, token.to_owned())]);
        bytes
            .or_else(unknown)
            .ok_or_else(|| Msg::new("source.not_encoded").arg("file", &self.file).arg("why", escape(token)))
    }

    /// The text of `ids`, special tokens left out.
    ///
    /// # Errors
    /// Where the decoder fails.
    pub fn decode(&self, ids: &[u32]) -> Result<String, Msg> {
        self.inner
            .decode(ids, true)
            .map_err(|e| Msg::new("source.not_decoded").arg("file", &self.file).arg("why", escape(&e.to_string())))
    }

    /// `text` as the model of the tokenizer reads it: in its normal form.
    pub fn normalized(&self, text: &str) -> String {
        let mut normal = NormalizedString::from(text);
        match self.inner.get_normalizer().map(|n| n.normalize(&mut normal)) {
            Some(Ok(())) => normal.get().to_owned(),
            _ => text.to_owned(),
        }
    }

    /// Number of tokens, added ones included.
    pub fn len(&self) -> usize {
        self.inner.get_vocab_size(true).min(self.end as usize)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The piece with this id, as the vocabulary writes it.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// The id of a piece as the vocabulary writes it.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The piece with this id as a reader wants it: `Ġthe` as ` the`, a byte that is no text by itself as `⟨E6⟩`.
    pub fn readable(&self, id: u32) -> Option<String> {
        Some(readable(&self.token(id)?, self.byte_level))
    }
}

/// JSON whose every text and number can be read; nothing of it is kept. What is merely skipped may have escapes that stand
/// for no character.
struct Sound;

impl<'de> Deserialize<'de> for Sound {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Sound)
    }
}

impl<'de> Visitor<'de> for Sound {
    type Value = Sound;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E>(self, _: &str) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_unit<E>(self) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Sound, A::Error> {
        while all.next_element::<Sound>()?.is_some() {}
        Ok(Sound)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Sound, A::Error> {
        while all.next_entry::<Sound, Sound>()?.is_some() {}
        Ok(Sound)
    }
}

/// What a `tokenizer.json` says of merges of pieces. Fields that are given twice are refused: which one counts is not ours to
/// decide.
#[derive(serde::Deserialize)]
struct Merges {
    #[serde(default)]
    model: MergingModel,
}

#[derive(Default, serde::Deserialize)]
struct MergingModel {
    #[serde(default)]
    vocab: Names,
    #[serde(default)]
    merges: Pairs,
    #[serde(default)]
    continuing_subword_prefix: Json,
}

/// Pieces of a vocabulary: the names of an object; other models write lists, and have no merges.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Names {
    Pieces(HashMap<String, u32>),
    Other(IgnoredAny),
}

impl Default for Names {
    fn default() -> Self {
        Self::Other(IgnoredAny)
    }
}

/// Merges as they are written today, and as they were before.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Pairs {
    Two(Vec<(String, String)>),
    Line(Vec<String>),
    Other(IgnoredAny),
}

impl Default for Pairs {
    fn default() -> Self {
        Self::Other(IgnoredAny)
    }
}

impl Merges {
    /// The first merge that joins what is no piece, or to no piece of the vocabulary. The crate copies each into a buffer as
    /// long as the longest piece, and cuts the prefix of inner pieces off by bytes, both unchecked.
    fn without_piece(&self) -> Option<(&str, &str)> {
        let Names::Pieces(vocab) = &self.model.vocab else { return None };
        let prefix = self.model.continuing_subword_prefix.as_str().unwrap_or_default();
        let sound = |(a, b): &(&str, &str)| {
            let joined = b.get(prefix.len()..).map(|rest| [a, rest].concat());
            vocab.contains_key(*a) && vocab.contains_key(*b) && joined.is_some_and(|j| vocab.contains_key(&j))
        };
        match &self.model.merges {
            Pairs::Two(pairs) => pairs.iter().map(|(a, b)| (a.as_str(), b.as_str())).find(|pair| !sound(pair)),
            // A line that is no pair is an error of the crate's own.
            Pairs::Line(lines) => lines
                .iter()
                .filter(|l| !l.starts_with("#version"))
                .filter_map(|l| l.split_once(' '))
                .find(|pair| !sound(pair)),
            Pairs::Other(_) => None,
        }
    }
}

/// A piece of a vocabulary as a reader wants it.
fn readable(token: &str, byte_level: bool) -> String {
    let byte = token.strip_prefix("<0x").and_then(|t| t.strip_suffix('>'));
    if let Some(byte) = byte.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
        return format!("⟨{byte:02X}⟩");
    }
    if !byte_level {
        return token.to_owned();
    }
    // An added token is written as it is.
    let Some(bytes) = token.chars().map(byte_of).collect::<Option<Vec<u8>>>() else { return token.to_owned() };
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|b| format!("⟨{b:02X}⟩")));
    }
    out
}

/// The byte that a character of a byte-level vocabulary denotes: printable ones for themselves, the other 68 moved to
/// U+0100 and on, in order.
fn byte_of(c: char) -> Option<u8> {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let code = u32::from(c);
    match u8::try_from(code) {
        Ok(b) => printable(b).then_some(b),
        Err(_) => (0..=255).filter(|b| !printable(*b)).nth(usize::try_from(code - 0x100).ok()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_readable() {
        assert_eq!(readable("Ġthe", true), " the");
        assert_eq!(readable("æĪĳ", true), "我");
        assert_eq!(readable("æĪ", true), "⟨E6⟩⟨88⟩");
        assert_eq!(readable("Ċ", true), "\n");
        assert_eq!(readable("▁the", false), "▁the");
        assert_eq!(readable("<0xE6>", false), "⟨E6⟩");
        assert_eq!(readable("<0x>", false), "<0x>");
        assert_eq!(readable("##s", false), "##s");
        assert_eq!(readable("你", true), "你");
    }
}
