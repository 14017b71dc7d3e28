//! The scenario that uses every field of the format: it opens, runs, and leaves no field out.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;
use tui_transformer::scenario::place::{self, Written};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/reference/every_field.ron");

/// A type of the format, and which fields of it the text has.
struct Walk<'a> {
    text: &'a str,
    types: &'a Json,
    used: BTreeSet<(String, String)>,
}

impl Walk<'_> {
    fn value(&self, path: &str) -> Option<std::ops::Range<usize>> {
        match place::value(self.text, path)? {
            Written::There(at) => Some(at),
            Written::Absent(_) => None,
        }
    }

    /// The value at `path` is of the type `schema`, which is called `name`.
    fn see(&mut self, schema: &Json, name: &str, path: &str) {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().expect("a name");
            let types = self.types;
            return self.see(&types[name], name, path);
        }
        for part in ["allOf", "anyOf"].iter().filter_map(|k| schema[k].as_array()).flatten() {
            self.see(part, name, path);
        }
        let at = if path.is_empty() { Some(place::whole(self.text)) } else { self.value(path) };
        let Some(at) = at else { return };
        let head: String = self.text[at.clone()].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        for choice in schema["oneOf"].as_array().into_iter().flatten() {
            if let Some(payload) = choice["properties"].get(&head) {
                self.see(payload, &format!("{name}.{head}"), path);
            }
        }
        for (field, of) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
            if self.value(&path).is_some() {
                self.used.insert((name.to_owned(), field.clone()));
                self.see(of, name, &path);
            }
        }
        if schema["items"].is_object() {
            let items =
                (0..).map(|i| format!("{path}[{i}]")).take_while(|p| place::find(self.text, p).is_some_and(|f| f.1));
            for item in items.collect::<Vec<_>>() {
                self.see(&schema["items"], name, &item);
            }
        }
        if schema["additionalProperties"].is_object() {
            let keys = place::parts(self.text, at).map(|p| p.children).unwrap_or_default();
            for key in keys.into_iter().filter_map(|(key, _)| key) {
                self.see(&schema["additionalProperties"], name, &format!("{path}.\"{key}\""));
            }
        }
    }
}

/// All fields of the format, by type.
fn fields(schema: &Json) -> BTreeSet<(String, String)> {
    let mut out = BTreeSet::new();
    let mut add = |name: &str, of: &Json| {
        for field in of["properties"].as_object().into_iter().flatten() {
            out.insert((name.to_owned(), field.0.clone()));
        }
    };
    add("Scenario", schema);
    for (name, of) in schema["$defs"].as_object().expect("types") {
        add(name, of);
        for choice in of["oneOf"].as_array().into_iter().flatten() {
            for (variant, payload) in choice["properties"].as_object().into_iter().flatten() {
                add(&format!("{name}.{variant}"), payload);
            }
        }
    }
    out
}

#[test]
fn one_scenario_uses_every_field_and_passes_check() {
    let output = Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .args(["help", "scenario", "--json-schema"])
        .output()
        .expect("runs");
    let schema: Json = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = std::fs::read_to_string(Path::new(FILE)).expect("text");
    let mut walk = Walk { text: &text, types: &schema["$defs"], used: BTreeSet::new() };
    walk.see(&schema, "Scenario", "");
    let all = fields(&schema);
    assert!(all.len() > 300, "{}", all.len());
    let left_out: Vec<_> = all.difference(&walk.used).collect();
    assert!(left_out.is_empty(), "these fields are not used: {left_out:?}");

    let output = Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .args(["--lang", "en", "check", FILE])
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
}
