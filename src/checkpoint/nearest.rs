//! What to say of a `model_type` that no family has: the family whose keys its configuration shares most.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::family::{Expr, Family, embedded};
use crate::text::{Msg, escape};

/// Names that expressions have without a configuration.
const BUILT_IN: [&str; 12] =
    ["L", "E", "config", "rope", "sqrt", "int", "len", "min", "max", "activation_of", "has_tensor", "numbers_of"];

/// What the model types of GGUF files begin with.
const GGUF: &str = "gguf-";

/// Names that a message lists.
const MOST: usize = 8;

/// The message.
pub fn unknown(model_type: &str, config: &Map<String, Json>) -> Msg {
    let own: BTreeSet<&str> = config.keys().map(String::as_str).filter(|k| !of_any(k)).collect();
    // Configurations of GGUF files have other keys.
    let same_kind =
        |family: &&Family| family.model_types.iter().any(|t| t.starts_with(GGUF)) == model_type.starts_with(GGUF);
    let scored = embedded().filter(same_kind).map(|family| {
        let read = keys(family);
        let shared = own.iter().filter(|k| read.contains(**k)).count();
        // Of families with as many keys in common, the one that needs fewest others.
        let absent = read.iter().filter(|k| !own.contains(k.as_str())).count();
        ((shared * 2) as isize - absent as isize, family, read)
    });
    let known: Vec<&str> = embedded().filter(same_kind).map(|f| f.name.as_str()).collect();
    let msg = Msg::new("checkpoint.unknown_type").arg("type", escape(model_type)).arg("names", known.join(", "));
    // A slip in a known name says more than any keys; of families with the same keys, the name says which.
    let apart = |f: &Family| {
        let names = f.model_types.iter().map(String::as_str).chain([f.name.as_str()]);
        names.map(|name| strsim::levenshtein(model_type, name)).min().unwrap_or(usize::MAX)
    };
    let most = model_type.chars().count() / 4;
    let likely = |family: &Family, score: isize| {
        let apart = apart(family);
        (Reverse(if apart <= most { apart } else { usize::MAX }), score, Reverse(apart))
    };
    let Some((_, family, read)) = scored.max_by_key(|(score, family, _)| likely(family, *score)) else {
        return msg;
    };
    let list = |names: Vec<&str>| {
        let some: Vec<_> = names.iter().take(MOST).map(|n| escape(n)).collect();
        let more = if names.len() > MOST { ", …" } else { "" };
        if some.is_empty() { "—".to_owned() } else { some.join(", ") + more }
    };
    let extra: Vec<&str> = own.iter().copied().filter(|k| !read.contains(*k)).collect();
    let lacks: Vec<&str> = read.iter().map(String::as_str).filter(|k| !own.contains(k)).collect();
    msg.arg("near", escape(&family.name)).arg("extra", list(extra)).arg("lacks", list(lacks))
}

/// Keys that say nothing of how a model computes.
fn of_any(key: &str) -> bool {
    const OF_ANY: [&str; 12] = [
        "architectures",
        "model_type",
        "dtype",
        "torch_dtype",
        "transformers_version",
        "use_cache",
        "initializer_range",
        "auto_map",
        "id2label",
        "label2id",
        "pretraining_tp",
        "is_decoder",
    ];
    OF_ANY.contains(&key) || key.ends_with("_token_id") || key.contains("dropout") || key.contains("pdrop")
}

/// Names that a family's expressions use and that it does not define itself: keys of the configuration.
fn keys(family: &Family) -> BTreeSet<String> {
    let mut exprs: Vec<&Expr> = Vec::new();
    for map in [&family.defaults, &family.values, &family.model] {
        exprs.extend(map.0.iter().map(|(_, e)| e));
    }
    for stack in [&family.encoder, &family.decoder].into_iter().flatten() {
        exprs.extend(&stack.layers);
        exprs.extend(stack.settings.0.iter().chain(&stack.each.0).map(|(_, e)| e));
    }
    exprs.extend([&family.vocabulary, &family.target_vocabulary, &family.experts].into_iter().flatten());
    let env = minijinja::Environment::empty();
    let mut names: BTreeSet<String> = BTreeSet::new();
    for expr in exprs {
        if let Ok(compiled) = env.compile_expression(&expr.0) {
            names.extend(compiled.undeclared_variables(false));
        }
    }
    names.extend(family.defaults.0.iter().map(|(key, _)| key.clone()));
    let own = |name: &String| family.values.0.iter().any(|(n, _)| n == name);
    names.retain(|name| !own(name) && !BUILT_IN.contains(&name.as_str()) && !of_any(name));
    names
}
