//! The order of a recording's tensors, and the modules they belong to.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use super::Recording;
use super::module::ModuleName;

/// Sorts tensors: as the metadata's `order` (a JSON list of names) says, the rest after it by name.
pub(super) fn sort(recording: &mut Recording) {
    let listed: Vec<String> = list(recording, "order");
    let place: HashMap<&str, usize> = listed.iter().enumerate().map(|(i, n)| (n.as_str(), i)).collect();
    let inputs: Vec<String> = list(recording, "inputs");
    let rank = |name: &str| match place.get(name) {
        Some(at) => (0, *at),
        // What a model is given comes before what it computes.
        None if place.is_empty() && is_input(name, &inputs) => (0, 0),
        None => (1, 0),
    };
    recording.tensors.sort_by(|a, b| rank(&a.name).cmp(&rank(&b.name)).then_with(|| natural(&a.name, &b.name)));
}

/// A list of names in the metadata.
pub(super) fn list(recording: &Recording, key: &str) -> Vec<String> {
    recording.metadata.get(key).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// By name, numbers as numbers: `_2` before `_10`.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        let (Some(&x), Some(&y)) = (a.first(), b.first()) else {
            return a.len().cmp(&b.len());
        };
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let digits = |s: &[u8]| s.iter().take_while(|c| c.is_ascii_digit()).count();
            let ((m, rest_a), (n, rest_b)) = (a.split_at(digits(a)), b.split_at(digits(b)));
            let bare = |s: &[u8]| s.iter().position(|c| *c != b'0').map_or(0, |zeros| s.len() - zeros);
            let value = |s: &[u8]| s[s.len() - bare(s)..].to_vec();
            let order = bare(m).cmp(&bare(n)).then_with(|| value(m).cmp(&value(n))).then(m.len().cmp(&n.len()));
            if order != Ordering::Equal {
                return order;
            }
            (a, b) = (rest_a, rest_b);
        } else if x != y {
            return x.cmp(&y);
        } else {
            (a, b) = (&a[1..], &b[1..]);
        }
    }
}

/// Whether a tensor is one that a model is given.
pub(super) fn is_input(name: &str, inputs: &[String]) -> bool {
    const INPUTS: [&str; 8] = [
        "input_ids",
        "attention_mask",
        "token_type_ids",
        "position_ids",
        "decoder_input_ids",
        "decoder_attention_mask",
        "inputs_embeds",
        "labels",
    ];
    inputs.iter().any(|i| i == name) || INPUTS.contains(&ModuleName::of(name).bare)
}

/// First words of names that have several.
pub fn modules<'n>(names: impl Iterator<Item = &'n str>) -> BTreeSet<&'n str> {
    let inside = |name| ModuleName::of(name).parent().is_some();
    names.filter(|name| inside(name)).filter_map(|name| ModuleName::of(name).words().next()).collect()
}

/// The part of the model that a tensor belongs to: its name up to the first number (`encoder.layer.0`), else its first
/// word (`embeddings`); `input` and `output` for the model's own.
pub fn phase(name: &str, inputs: &[String], modules: &BTreeSet<&str>) -> String {
    if is_input(name, inputs) {
        return "input".to_owned();
    }
    let name = ModuleName::of(name);
    let (bare, parts) = (name.bare, name.words().collect::<Vec<&str>>());
    let number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let module = match parts.iter().position(number) {
        Some(at) => parts[..=at].join("."),
        None if parts.len() > 1 || modules.contains(bare) => parts[0].to_owned(),
        None => {
            let stem = bare.trim_end_matches(|c: char| c.is_ascii_digit());
            let stem = if stem.len() < bare.len() { stem.trim_end_matches('_') } else { "" };
            if stem.is_empty() { "output".to_owned() } else { stem.to_owned() }
        }
    };
    match name.call {
        Some(call) => format!("{module} #{call}"),
        None => module,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_people_count() {
        let mut names = ["hidden_states_10", "hidden_states_2", "a.10.b", "a.9.c", "a.09.c", "a", "hidden_states_1"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["a", "a.9.c", "a.09.c", "a.10.b", "hidden_states_1", "hidden_states_2", "hidden_states_10"]);
    }

    #[test]
    fn tensors_are_grouped_by_module() {
        let modules = BTreeSet::from(["embeddings"]);
        let of = |name| phase(name, &["pixel_values".to_owned()], &modules);
        assert_eq!(of("embeddings"), "embeddings");
        assert_eq!(of("encoder.layer.0.attention.self.query"), "encoder.layer.0");
        assert_eq!(of("h.11.attn.weights#2"), "h.11 #2");
        assert_eq!(of("embeddings.LayerNorm"), "embeddings");
        assert_eq!(of("hidden_states_3"), "hidden_states");
        assert_eq!(of("logits"), "output");
        assert_eq!(of("input_ids"), "input");
        assert_eq!(of("pixel_values"), "input");
    }
}
