//! The vocabulary of a GGUF file as the `tokenizer.json` that gives the same ids.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde_json::{Value as Json, json};

use super::gguf::{Gguf, Meta};
use crate::text::{Msg, escape};

/// Types of tokens in the format.
const CONTROL: i128 = 3;
const USER_DEFINED: i128 = 4;

/// Cuts words, numbers, punctuation and spaces apart, as GPT-2 does.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// How byte-level vocabularies cut a text before they merge: names of `tokenizer.ggml.pre`, and what cuts, in order.
const CUTS: &[(&[&str], &[&str])] = &[
    (&["", "gpt-2", "phi-2", "olmo", "mpt", "jina-es", "jina-de", "gigachat", "trillion"], &[GPT2]),
    (&["default"], &[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"]),
    (&["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"], &[r"\p{N}", GPT2]),
    (&["llama-bpe", "llama3", "llama-v3", "falcon3", "dbrx", "smaug-bpe"], &[LLAMA3]),
    (&["qwen2", "stablelm2", "deepseek-r1-qwen", "hunyuan", "megrez"], &[QWEN2]),
    (&["falcon"], &[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"]),
];

/// The tokenizer of `header` in the format of `tokenizer.json`, and the number of its tokens; `file` is its name for
/// messages.
///
/// # Errors
/// Where there is no vocabulary, its parts contradict each other, or it is of a kind that is not read.
pub(super) fn to_json(header: &Gguf, file: &str) -> Result<(Json, usize), Msg> {
    let kind = header.get("tokenizer.ggml.model").and_then(Meta::text);
    let kind = kind.ok_or_else(|| Msg::new("source.gguf_no_vocabulary").arg("file", file))?;
    let vocab = Vocab::of(header).ok_or_else(|| Msg::new("source.gguf_vocabulary_broken").arg("file", file))?;
    let json = match kind {
        "llama" => vocab.sentence_piece(),
        "gpt2" => {
            let pre = header.get("tokenizer.ggml.pre").and_then(Meta::text).unwrap_or("");
            let cuts = CUTS.iter().find(|(names, _)| names.contains(&pre)).ok_or_else(|| {
                let known: Vec<&str> =
                    CUTS.iter().flat_map(|(names, _)| *names).copied().filter(|n| !n.is_empty()).collect();
                let msg = Msg::new("source.gguf_cuts").arg("file", file).arg("name", escape(pre));
                msg.arg("known", known.join(", "))
            })?;
            vocab.byte_level(cuts.1, pre)
        }
        _ => return Err(Msg::new("source.gguf_vocabulary_kind").arg("file", file).arg("kind", escape(kind))),
    };
    Ok((json, vocab.tokens.len()))
}

struct Vocab<'a> {
    header: &'a Gguf,
    tokens: Vec<&'a str>,
    scores: Vec<f64>,
    types: Vec<i128>,
}

impl<'a> Vocab<'a> {
    fn of(header: &'a Gguf) -> Option<Self> {
        let list = |key| header.get(key).and_then(Meta::list);
        let tokens = list("tokenizer.ggml.tokens")?.iter().map(Meta::text).collect::<Option<Vec<_>>>()?;
        let numbers = list("tokenizer.ggml.scores").unwrap_or_default();
        let scores = numbers.iter().map(Meta::number).collect::<Option<Vec<_>>>()?;
        let kinds = list("tokenizer.ggml.token_type").unwrap_or_default();
        let types = kinds.iter().map(Meta::int).collect::<Option<Vec<_>>>()?;
        let fits = |n: usize| n == 0 || n == tokens.len();
        (fits(scores.len()) && fits(types.len())).then_some(Self { header, tokens, scores, types })
    }

    /// A special token by the key of its id.
    fn special(&self, key: &str) -> Option<(usize, &'a str)> {
        let id = self.header.get(&format!("tokenizer.ggml.{key}_token_id")).and_then(Meta::int)?;
        let id = usize::try_from(id).ok()?;
        Some((id, *self.tokens.get(id)?))
    }

    fn flag(&self, key: &str, default: bool) -> bool {
        self.header.get(&format!("tokenizer.ggml.{key}")).and_then(Meta::bool).unwrap_or(default)
    }

    /// Ids by piece; of a piece that is there twice, the first.
    fn ids(&self) -> HashMap<&'a str, usize> {
        self.tokens.iter().enumerate().rev().map(|(i, t)| (*t, i)).collect()
    }

    /// Pieces are merged where the merged piece has the best score; what is left over falls apart into bytes.
    fn sentence_piece(&self) -> Json {
        let mut ids = self.ids();
        // Merges go through single characters that need not be pieces; such a character gets an id behind all others,
        // which `Tokenizer::encode` replaces by its bytes or the unknown token where it is left over.
        let mut next = self.tokens.len();
        for (from, c) in self.tokens.iter().flat_map(|t| t.char_indices().map(move |(at, c)| (&t[at..], c))) {
            ids.entry(&from[..c.len_utf8()]).or_insert_with(|| {
                next += 1;
                next - 1
            });
        }
        let score = |i: usize| self.scores.get(i).copied().unwrap_or(0.0);
        let mut merges: Vec<(f64, [&str; 2])> = Vec::new();
        for (i, token) in self.tokens.iter().enumerate() {
            let splits = token.char_indices().skip(1).map(|(at, _)| token.split_at(at));
            let mut both: Vec<_> = splits.filter_map(|(l, r)| Some((*ids.get(l)?, *ids.get(r)?, [l, r]))).collect();
            both.sort_by_key(|(l, r, _)| Reverse((*l, *r)));
            merges.extend(both.into_iter().map(|(_, _, pair)| (score(i), pair)));
        }
        merges.sort_by(|a, b| b.0.total_cmp(&a.0));
        let unknown = self.special("unknown").or_else(|| self.special("unk"));
        let unknown = unknown.or_else(|| self.types.iter().position(|t| *t == 2).map(|i| (i, self.tokens[i])));
        let space = self.flag("add_space_prefix", true);
        let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
        let normalizers =
            if space { vec![json!({"type": "Prepend", "prepend": "▁"}), replace] } else { vec![replace] };
        let mut decoders = vec![
            json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
            json!({"type": "ByteFallback"}),
            json!({"type": "Fuse"}),
        ];
        if space {
            decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
        }
        let merges: Vec<[&str; 2]> = merges.into_iter().map(|(_, pair)| pair).collect();
        self.assemble(
            &json!({
                "normalizer": {"type": "Sequence", "normalizers": normalizers},
                "pre_tokenizer": null,
                "decoder": {"type": "Sequence", "decoders": decoders},
                "model": {"type": "BPE", "unk_token": unknown.map(|u| u.1), "fuse_unk": true, "byte_fallback": true,
                    "ignore_merges": false, "vocab": vocabulary(&ids), "merges": merges},
            }),
            true,
        )
    }

    /// Bytes are merged in the order of the file's list of merges, within what `cuts` leaves together.
    fn byte_level(&self, cuts: &[&str], pre: &str) -> Json {
        let ids = self.ids();
        let list = self.header.get("tokenizer.ggml.merges").and_then(Meta::list).unwrap_or_default();
        let merges: Vec<[&str; 2]> = list
            .iter()
            .filter_map(|m| m.text()?.split_once(' '))
            .filter(|(l, r)| [*l, *r, &format!("{l}{r}")].iter().all(|t| ids.contains_key(t)))
            .map(|(l, r)| [l, r])
            .collect();
        let mut cutters: Vec<Json> = cuts
            .iter()
            .map(|cut| json!({"type": "Split", "pattern": {"Regex": cut}, "behavior": "Isolated", "invert": false}))
            .collect();
        cutters
            .push(json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}));
        // Llama 3 takes a whole word that is in the vocabulary as it is, and begins with its first token.
        let whole = cuts == [LLAMA3];
        self.assemble(
            &json!({
                "normalizer": null,
                "pre_tokenizer": {"type": "Sequence", "pretokenizers": cutters},
                "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
                "model": {"type": "BPE", "fuse_unk": false, "byte_fallback": false, "ignore_merges": whole,
                    "vocab": vocabulary(&ids), "merges": merges},
            }),
            whole && pre != "dbrx",
        )
    }

    /// Adds what all kinds share: the special tokens, and those at the beginning and the end. `begins`: whether a text
    /// begins with the first of them where the file does not say.
    fn assemble(&self, parts: &Json, begins: bool) -> Json {
        let added: Vec<Json> = self
            .types
            .iter()
            .enumerate()
            .filter(|(_, t)| matches!(**t, CONTROL | USER_DEFINED))
            .map(|(id, t)| {
                json!({"id": id, "content": self.tokens[id], "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false, "special": *t == CONTROL})
            })
            .collect();
        let first = self.special("bos").filter(|_| self.flag("add_bos_token", begins));
        let last = self.special("eos").filter(|_| self.flag("add_eos_token", false));
        let special = |s: &Option<(usize, &str)>, kind: u8| {
            s.map(|(_, token)| json!({"SpecialToken": {"id": token, "type_id": kind}}))
        };
        let part = |name: &str, kind: u8| {
            let text = json!({"Sequence": {"id": name, "type_id": kind}});
            [special(&first, kind), Some(text), special(&last, kind)].into_iter().flatten()
        };
        let named: serde_json::Map<String, Json> = [&first, &last]
            .into_iter()
            .flatten()
            .map(|(id, token)| ((*token).to_owned(), json!({"id": token, "ids": [id], "tokens": [token]})))
            .collect();
        let mut out = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
            "post_processor": {"type": "TemplateProcessing", "single": part("A", 0).collect::<Vec<_>>(),
                "pair": part("A", 0).chain(part("B", 1)).collect::<Vec<_>>(), "special_tokens": named},
        });
        if let (Some(out), Some(parts)) = (out.as_object_mut(), parts.as_object()) {
            out.extend(parts.clone());
        }
        out
    }
}

fn vocabulary(ids: &HashMap<&str, usize>) -> Json {
    ids.iter().map(|(token, id)| ((*token).to_owned(), Json::from(*id))).collect::<serde_json::Map<_, _>>().into()
}
