//! The reference against the types it is made from.

use super::*;
use crate::scenario::schema::Scenario;

/// `UPDATE_SCHEMA=1 cargo test --lib reference` writes it again after a change of the types.
#[test]
fn the_schema_is_that_of_the_types() {
    let schema = schemars::schema_for!(Scenario).to_value();
    let mut text = Vec::new();
    // Few bytes, and still a line for each change.
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    serde::Serialize::serialize(&schema, &mut serde_json::Serializer::with_formatter(&mut text, formatter)).unwrap();
    text.push(b'\n');
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/scenario.schema.json");
        std::fs::write(path, &text).unwrap();
    } else {
        assert!(text == SCHEMA.as_bytes(), "assets/scenario.schema.json: UPDATE_SCHEMA=1 cargo test --lib reference");
    }
}

/// Every key that a description may have, with the English one.
fn descriptions() -> Vec<(String, String)> {
    let mut out = Vec::new();
    for t in types() {
        out.push((t.name.clone(), t.doc.clone()));
        let fields = |out: &mut Vec<_>, at: &str, fields: &[FieldDoc]| {
            out.extend(fields.iter().map(|f| (format!("{at}.{}", f.name), f.doc.clone())));
        };
        match &t.kind {
            Kind::Fields(all) => fields(&mut out, &t.name, all),
            Kind::Choices(all) => {
                for c in all {
                    let at = format!("{}.{}", t.name, c.name);
                    out.push((at.clone(), c.doc.clone()));
                    fields(&mut out, &at, c.fields.as_deref().unwrap_or(&[]));
                }
            }
        }
    }
    out
}

#[test]
fn every_field_of_the_schema_is_in_the_reference_and_documented() {
    for (key, doc) in descriptions() {
        assert!(!doc.is_empty(), "{key} has no comment in the source");
    }
    let all = markdown(Lang::En);
    for wanted in ["| `d_model` |", "`By(number)`", "### Optimiser", "| `kv_cache` |", "`Part(text, text, text)`"] {
        assert!(all.contains(wanted), "{wanted}");
    }
}

#[test]
fn places_lead_to_types() {
    let named = |path: &str| type_at(path).map(|t| t.show(Lang::En));
    assert_eq!(named("model.attention.scale").as_deref(), Some("Scale"));
    assert_eq!(named("runs[0].optimiser.betas").as_deref(), Some("(number, number)"));
    assert_eq!(named("model.encoder.layers[1].norm").as_deref(), Some("NormOverrides"));
    assert_eq!(named("vocabulary.special").as_deref(), Some("[text]"));
    assert_eq!(named("weights.values.\"a.b\"").as_deref(), Some("WeightValue"));
    assert_eq!(named("model.nothing"), None);
}

#[test]
fn help_finds_places_types_and_names() {
    let get = |name: &str| text(Some(name), Lang::En);
    assert!(get("model.norm.eps").unwrap().starts_with("NormConfig.eps: number  [1e-5]"));
    assert!(get("Schedule").unwrap().contains("Cosine"));
    assert!(get("kv_heads").unwrap().contains("LayerConfig.kv_heads"));
    assert!(get("runs.Training.optimiser.lr").unwrap().contains("0.1"));
    let err = get("d_modle").unwrap_err();
    assert_eq!((err.key, err.args[1].1.as_str()), ("reference.unknown_near", "d_model"));
}
