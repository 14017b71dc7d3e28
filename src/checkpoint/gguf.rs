//! The metadata of a GGUF file as a configuration: keys with dots are groups, and `model_type` is `gguf-` and the
//! architecture.

use serde_json::{Map, Value as Json, json};

use crate::source::Gguf;
use crate::source::gguf::Meta;

/// Longer lists are vocabularies, which no expression reads.
const LONGEST: usize = 4096;

/// The configuration.
pub fn config(header: Option<&Gguf>) -> Map<String, Json> {
    let mut all = Map::new();
    let Some(header) = header else {
        return all;
    };
    for (key, value) in &header.metadata {
        if let Some(value) = json(value) {
            put(&mut all, key, value);
        }
    }
    let architecture = header.architecture().unwrap_or_default();
    // The settings of the architecture, whichever it is, are `gguf`.
    let own = all.get(architecture).cloned().unwrap_or(Json::Null);
    all.insert("gguf".to_owned(), own);
    for (key, of) in [("eos_token_id", "tokenizer.ggml.eos_token_id"), ("bos_token_id", "tokenizer.ggml.bos_token_id")]
    {
        if let Some(id) = header.get(of).and_then(json) {
            all.insert(key.to_owned(), id);
        }
    }
    let words = header.get("tokenizer.ggml.tokens").and_then(|tokens| Some(tokens.list()?.len()));
    all.insert("gguf_tokens".to_owned(), json!(words));
    all.insert("model_type".to_owned(), format!("gguf-{architecture}").into());
    all
}

fn json(value: &Meta) -> Option<Json> {
    Some(match value {
        Meta::Int(i) => i64::try_from(*i).ok()?.into(),
        Meta::Float(x) => json!(x),
        Meta::Bool(b) => (*b).into(),
        Meta::Text(t) => t.as_str().into(),
        Meta::List(items) if items.len() > LONGEST => return None,
        Meta::List(items) => items.iter().map(json).collect::<Option<Vec<_>>>()?.into(),
    })
}

fn put(tree: &mut Map<String, Json>, key: &str, value: Json) {
    match key.split_once('.') {
        None => drop(tree.insert(key.to_owned(), value)),
        Some((first, rest)) => {
            let inside = tree.entry(first).or_insert_with(|| Json::Object(Map::new()));
            if let Some(inside) = inside.as_object_mut() {
                put(inside, rest, value);
            }
        }
    }
}
