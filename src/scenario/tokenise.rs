//! Text to ids and back.

use std::collections::HashMap;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization;

use super::diagnostic::Problem;
use super::schema::{Characters, Vocabulary};
use crate::source::Tokenizer;
use crate::text::{Msg, escape};

/// A vocabulary ready for use.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Vocab {
    entries: Vec<String>,
    #[serde(skip)]
    index: HashMap<String, i64>,
    /// Size where there is no text.
    size: usize,
    /// Whether a token is one character.
    characters: bool,
    lowercase: bool,
    spaces: bool,
    #[serde(skip)]
    tokenizer: Option<Shared>,
}

/// A tokenizer that vocabularies share.
#[derive(Clone, Debug)]
struct Shared(Arc<Tokenizer>);

impl PartialEq for Shared {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Shared {}

/// One token of a text.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Token {
    /// The piece of text.
    pub text: String,
    /// Its id.
    pub id: i64,
    /// Whether the vocabulary does not have it.
    pub unknown: bool,
}

impl Vocab {
    /// From the scenario's vocabulary; `read` gives the text of a corpus file.
    ///
    /// # Errors
    /// Where words is repeated, or the corpus cannot be read.
    pub fn new(vocabulary: &Vocabulary, at: &str, read: &dyn Fn(&str) -> Result<String, Msg>) -> Result<Self, Problem> {
        match vocabulary {
            // Who opens a tokenizer makes its vocabulary by `of_tokenizer`.
            Vocabulary::Tokenizer { size, .. } => Ok(Self { size: size.unwrap_or(0), ..Self::default() }),
            Vocabulary::Size(size) => Ok(Self { size: *size, ..Self::default() }),
            Vocabulary::Words(words) => {
                let mut index = HashMap::new();
                for (i, word) in words.iter().enumerate() {
                    if index.insert(word.clone(), i as i64).is_some() {
                        let msg = Msg::new("scenario.word_twice").arg("word", escape(word));
                        return Err(Problem::new(format!("{at}[{i}]"), msg).help(Msg::new("scenario.word_twice_help")));
                    }
                }
                Ok(Self { entries: words.clone(), index, size: words.len(), ..Self::default() })
            }
            Vocabulary::Characters(c) => Self::from_corpus(c, at, read),
        }
    }

    /// The vocabulary of a tokenizer, for a model with `size` ids where it is given.
    pub fn of_tokenizer(tokenizer: Tokenizer, size: Option<usize>) -> Self {
        let size = size.unwrap_or_else(|| tokenizer.len());
        Self { size, tokenizer: Some(Shared(Arc::new(tokenizer))), ..Self::default() }
    }

    /// The tokenizer, where there is one.
    pub fn tokenizer(&self) -> Option<&Tokenizer> {
        self.tokenizer.as_ref().map(|t| &*t.0)
    }

    /// The text of ids: words with spaces between, characters without, tokens as their tokenizer joins them.
    pub fn text_of(&self, ids: &[i64]) -> String {
        if let Some(tokenizer) = self.tokenizer() {
            let known: Vec<u32> = ids.iter().filter_map(|id| u32::try_from(*id).ok()).collect();
            if let Ok(text) = tokenizer.decode(&known) {
                return text;
            }
        }
        let words: Vec<String> = ids.iter().map(|id| self.word(*id)).collect();
        words.join(if self.characters { "" } else { " " })
    }

    fn from_corpus(c: &Characters, at: &str, read: &dyn Fn(&str) -> Result<String, Msg>) -> Result<Self, Problem> {
        let wrong = |field: &str, msg: Msg, help: &'static str| {
            Err(Problem::new(format!("{at}{field}"), msg).help(Msg::new(help)))
        };
        if c.corpus.is_none() && c.corpus_file.is_none() {
            return wrong("", Msg::new("scenario.no_corpus"), "scenario.corpus_help");
        }
        let mut corpus = match &c.corpus_file {
            Some(file) => read(file)
                .map_err(|msg| Problem::new(format!("{at}.corpus_file"), msg).help(Msg::new("scenario.corpus_help")))?,
            None => String::new(),
        };
        corpus.push_str(c.corpus.as_deref().unwrap_or(""));
        for (i, word) in c.special.iter().enumerate() {
            if c.special[..i].contains(word) {
                let msg = Msg::new("scenario.word_twice").arg("word", escape(word));
                return wrong(&format!(".special[{i}]"), msg, "scenario.word_twice_help");
            }
        }
        if let Some(most) = c.max_size.filter(|most| *most < c.special.len()) {
            let msg = Msg::new("scenario.max_size").arg("value", most).arg("special", c.special.len());
            return wrong(".max_size", msg, "scenario.max_size_help");
        }
        let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
        let mut out = Self { characters: true, lowercase: c.lowercase, spaces: c.spaces, ..Self::default() };
        for (i, piece) in out.cut(&corpus).into_iter().enumerate() {
            counts.entry(piece).or_insert((0, i)).0 += 1;
        }
        // Most frequent first; of equals, the one that comes first in the corpus.
        let mut order: Vec<(String, (usize, usize))> = counts.into_iter().collect();
        order.sort_by_key(|(_, (count, first))| (std::cmp::Reverse(*count), *first));
        out.entries.clone_from(&c.special);
        out.entries.extend(order.into_iter().map(|o| o.0).filter(|w| !c.special.contains(w)));
        out.entries.truncate(c.max_size.unwrap_or(usize::MAX));
        out.index = out.entries.iter().enumerate().map(|(i, w)| (w.clone(), i as i64)).collect();
        out.size = out.entries.len();
        Ok(out)
    }

    /// As it is kept in a file: the words of a tokenizer, without the tokenizer.
    #[must_use]
    pub fn kept(&self) -> Self {
        if self.tokenizer.is_none() {
            return self.clone();
        }
        let entries = (0..self.size as i64).map(|id| self.word(id)).collect();
        Self { entries, size: self.size, ..Self::default() }
    }

    /// As read from a file, which keeps the words only.
    #[must_use]
    pub fn indexed(mut self) -> Self {
        self.index = self.entries.iter().enumerate().map(|(i, w)| (w.clone(), i as i64)).collect();
        self
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.size
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// The words, in the order of their ids; none where the vocabulary has ids only.
    pub fn list(&self) -> &[String] {
        &self.entries
    }

    /// The id of a word.
    pub fn id(&self, word: &str) -> Option<i64> {
        match self.tokenizer() {
            Some(tokenizer) => tokenizer.id(word).map(i64::from),
            None => self.index.get(word).copied(),
        }
    }

    /// The word of an id; `#7` where the vocabulary has no text.
    pub fn word(&self, id: i64) -> String {
        if let Some(tokenizer) = self.tokenizer() {
            let word = u32::try_from(id).ok().and_then(|id| tokenizer.readable(id));
            return word.unwrap_or_else(|| format!("#{id}"));
        }
        let known = usize::try_from(id).ok().and_then(|i| self.entries.get(i));
        known.cloned().unwrap_or_else(|| format!("#{id}"))
    }

    /// Pieces of a text at the character level.
    fn cut(&self, text: &str) -> Vec<String> {
        text.chars()
            .filter(|c| self.spaces && *c == ' ' || !c.is_whitespace())
            .flat_map(|c| if self.lowercase { c.to_lowercase().collect::<Vec<_>>() } else { vec![c] })
            .map(String::from)
            .collect()
    }

    /// The tokens of a text. A character vocabulary cuts at every character; a word list at spaces, and what is no
    /// word as a whole into the longest words that fit. Unknown pieces become `<unk>`.
    ///
    /// # Errors
    /// Where a piece is unknown and there is no `<unk>`, or the vocabulary has no text.
    pub fn encode(&self, text: &str) -> Result<Vec<Token>, Msg> {
        if let Some(tokenizer) = self.tokenizer() {
            let ids = tokenizer.encode(text, None, true)?.ids;
            let token = |id: u32| Token { text: self.word(i64::from(id)), id: i64::from(id), unknown: false };
            return Ok(ids.into_iter().map(token).collect());
        }
        let unknown = |tokens: &Result<Vec<Token>, Msg>| match tokens {
            Ok(tokens) => tokens.iter().filter(|t| t.unknown).count(),
            Err(_) => usize::MAX,
        };
        let mut best = self.encode_exactly(text);
        if unknown(&best) > 0 && !text.is_ascii() {
            // The same letter may be written as one code point or as several.
            let forms: [String; 2] = [text.nfc().collect(), text.nfd().collect()];
            for form in forms.iter().filter(|f| *f != text) {
                let other = self.encode_exactly(form);
                if unknown(&other) < unknown(&best) {
                    best = other;
                }
            }
        }
        best
    }

    fn encode_exactly(&self, text: &str) -> Result<Vec<Token>, Msg> {
        if self.entries.is_empty() {
            return Err(Msg::new("scenario.no_text_vocabulary"));
        }
        let pieces = if self.characters { self.cut(text) } else { self.words_of(text) };
        let unknown = self.id("<unk>");
        pieces
            .into_iter()
            .map(|piece| match (self.id(&piece), unknown) {
                (Some(id), _) => Ok(Token { text: piece, id, unknown: false }),
                (None, Some(id)) => Ok(Token { text: piece, id, unknown: true }),
                (None, None) => {
                    Err(Msg::new("scenario.unknown_token").arg("token", escape(&piece)).arg("text", escape(text)))
                }
            })
            .collect()
    }

    /// Pieces of a text at the word level. Words of a vocabulary may begin with the space that comes before them
    /// (byte-pair encodings do that): such a word goes before the same one without a space.
    fn words_of(&self, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        let mut spaced = text.starts_with(char::is_whitespace);
        for part in text.split_whitespace() {
            let with_space = format!(" {part}");
            let cut = if spaced { self.longest(&with_space) } else { Vec::new() };
            // A space alone is no word of the text.
            let alone = cut.first().is_none_or(|first| first == " ");
            let known = !alone && cut.iter().all(|piece| self.index.contains_key(piece));
            pieces.extend(if known { cut } else { self.longest(part) });
            spaced = true;
        }
        pieces
    }

    fn longest(&self, part: &str) -> Vec<String> {
        if self.index.contains_key(part) {
            return vec![part.to_owned()];
        }
        let mut pieces = Vec::new();
        let mut rest = part;
        while !rest.is_empty() {
            let ends: Vec<usize> = rest.char_indices().map(|(i, c)| i + c.len_utf8()).collect();
            let fits = |end: &&usize| self.index.contains_key(&rest[..**end]);
            // Where nothing fits, the rest is one unknown piece.
            let end = ends.iter().rev().find(fits).copied().unwrap_or(rest.len());
            pieces.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Vocab {
        let list = Vocabulary::Words(list.iter().map(|w| (*w).to_owned()).collect());
        Vocab::new(&list, "vocabulary", &|_| Ok(String::new())).expect("a vocabulary")
    }

    #[test]
    fn a_word_list_cuts_at_spaces_or_into_the_longest_words() {
        let w = words(&["我", "爱", "我爱", "水", "love", "I"]);
        let ids = |t: &str| w.encode(t).map(|t| t.iter().map(|t| t.id).collect::<Vec<_>>());
        assert_eq!(ids("我爱水"), Ok(vec![2, 3]));
        assert_eq!(ids("I love"), Ok(vec![5, 4]));
        assert!(ids("I hate").is_err());
    }

    #[test]
    fn a_character_vocabulary_is_ordered_by_frequency_and_knows_the_unknown() {
        let c = Vocabulary::Characters(Characters {
            corpus_file: None,
            corpus: Some("bb aA".into()),
            max_size: Some(6),
            special: vec!["<pad>".into(), "<unk>".into()],
            lowercase: true,
            spaces: false,
        });
        let w = Vocab::new(&c, "vocabulary", &|_| Ok(String::new())).expect("a vocabulary");
        assert_eq!((w.word(2), w.word(3), w.len()), ("b".into(), "a".into(), 4));
        let t = w.encode("Bx").expect("tokens");
        assert_eq!((t[0].id, t[1].id, t[1].unknown), (2, 1, true));
    }

    #[test]
    fn words_that_begin_with_their_space_are_reached() {
        let w = words(&["<eos>", "Hello", " world", "world", " ", "wor", "ld", " the"]);
        let ids = |t: &str| w.encode(t).map(|t| t.iter().map(|t| t.id).collect::<Vec<_>>());
        assert_eq!(ids("Hello the world"), Ok(vec![1, 7, 2]));
        assert_eq!(ids("world world"), Ok(vec![3, 2]));
        assert_eq!(ids("Hello Hello"), Ok(vec![1, 1]));
        assert!(ids("the world").is_err());
    }

    #[test]
    fn a_letter_of_two_code_points_is_the_same_letter() {
        let composed = words(&["é", "a"]);
        let decomposed = words(&["e\u{301}", "a"]);
        for w in [composed, decomposed] {
            for text in ["é a", "e\u{301} a"] {
                assert_eq!(w.encode(text).map(|t| t[0].id), Ok(0), "{text:?}");
            }
        }
    }

    #[test]
    fn a_word_twice_is_refused() {
        let list = Vocabulary::Words(vec!["a".into(), "a".into()]);
        assert!(Vocab::new(&list, "vocabulary", &|_| Ok(String::new())).is_err());
    }
}
