//! The names that a family of checkpoints gives its activations, from the family's file: those that it lists, and those that
//! follow from its tensors. Where the tensor `layers.{L}.self_attn.q_proj.weight` is the weight of our `q`, what the module
//! `layers.{L}.self_attn.q_proj` gives out is our `q`.

use std::collections::BTreeSet;

use super::fit::Reading;
use super::table::{Entry, Table};
use crate::checkpoint::family::{self, Family, RecordedName, Rule};

/// What the end of a parameter's path says of the module that it is of: the end of the path of what the module gives out, and
/// how that lies there.
const MODULES: [(&str, &str, Option<&str>); 15] = [
    (".q.weight", ".q", Some("b t (h d) -> b h t d")),
    (".k.weight", ".k", Some("b t (h d) -> b h t d")),
    (".v.weight", ".v", Some("b t (h d) -> b h t d")),
    (".o.weight", ".out", None),
    (".w1.weight", ".hidden", None),
    (".v1.weight", ".gate", None),
    (".w2.weight", ".out", None),
    (".gamma", ".out", None),
    (".positions.weight", ".positions", Some("0/* t d -> t d")),
    (".token_types.weight", ".token_types", None),
    ("embed.weight", "embed.{E}.lookup", None),
    ("embed.source.weight", "embed.source.lookup", None),
    ("embed.target.weight", "embed.target.lookup", None),
    ("output.weight", "output.logits_raw | output.logits", None),
    ("classifier.weight", "classifier.logits", None),
];

/// The families whose own files list names, in the order in which they are requested where nobody says which it is.
const ORDER: [&str; 6] = ["bert", "gpt2", "llama", "bart", "phi", "gptj"];

/// The tables of the families that come with the program.
pub(super) fn tables() -> Vec<Table> {
    let place = |family: &Family| ORDER.iter().position(|name| *name == family.name).unwrap_or(ORDER.len());
    let mut all: Vec<&Family> = family::embedded().collect();
    all.sort_by_key(|family| place(family));
    all.into_iter().map(table).collect()
}

/// The table of a family.
///
/// # Panics
/// Where a file that comes with the program is broken, which the tests would have said; [`Family::read`] checks others.
pub(super) fn table(family: &Family) -> Table {
    let mut names: Vec<Entry> = family.recorded.names.iter().map(listed).collect();
    // Entries of one name all hold: only the first thing that is said of a name is kept.
    let mut known: BTreeSet<String> = names.iter().map(|n| n.name.clone()).collect();
    let per_head =
        (family.model.0.iter()).any(|(path, expr)| path == "attention.qk_norm" && expr.0.contains("'PerHead"));
    let follows = family.tensors.iter().flat_map(|rule| derived(rule, per_head));
    names.extend(follows.filter(|n| known.insert(n.name.clone())));
    let mut prefixes = family.recorded.prefixes.clone();
    prefixes.extend(family.prefixes.iter().cloned().chain([String::new()]));
    prefixes.sort();
    prefixes.dedup();
    let about = match family.recorded.about.as_str() {
        "" => family.name.clone(),
        about => about.to_owned(),
    };
    let kinds = family.model_types.iter().chain(&family.recorded.also).cloned().collect();
    Table::new(about, prefixes, names).expect("names that make sense").of_family(kinds, family.names_recorded)
}

fn listed(name: &RecordedName) -> Entry {
    let reading = name.reading.as_deref().and_then(|reading| ron::from_str(reading).ok());
    Entry {
        name: name.name.clone(),
        path: name.path.clone(),
        layout: name.layout.clone(),
        reading: reading.unwrap_or_default(),
        needs: None,
    }
}

/// What follows from a rule: the names of its tensor and of its module. Nothing where the tensor is taken apart, or stacked of
/// many. Norms of queries and keys may read them `per_head`.
fn derived(rule: &Rule, per_head: bool) -> Vec<Entry> {
    let mut all = Vec::new();
    if !rule.with.is_empty() {
        return all;
    }
    for theirs in rule.theirs.split(" | ").filter(|name| !name.replace("{L}", "").contains('{')) {
        let entry = |name: &str, path: String, layout: Option<&str>| Entry {
            name: name.to_owned(),
            path,
            layout: layout.map(str::to_owned),
            ..Entry::default()
        };
        all.push(entry(theirs, rule.ours.clone(), None));
        let Some(module) = theirs.strip_suffix(".weight") else { continue };
        let Some((path, layout)) = MODULES
            .iter()
            .find_map(|(end, out, layout)| Some((format!("{}{out}", rule.ours.strip_suffix(end)?), *layout)))
        else {
            continue;
        };
        let of_heads = per_head && [".q_norm.gamma", ".k_norm.gamma"].iter().any(|end| rule.ours.ends_with(end));
        let layout = if of_heads { Some("b t h d -> b h t d") } else { layout };
        let reading = if rule.ours == "output.weight" { Reading::LastRows } else { Reading::Whole };
        all.push(Entry { reading, ..entry(module, path, layout) });
        if let Some(norm) = rule.ours.strip_suffix(".gamma") {
            all.push(entry(&format!("{module}.in"), format!("{norm}.in"), layout));
        }
    }
    all
}
