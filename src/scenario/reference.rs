//! The format of scenarios as documentation: every type, field and choice with its default and what it means.
//!
//! It is read from the JSON Schema of the types that read the files, whose descriptions are the comments in the source:
//! `assets/scenario.schema.json`, which a test makes from the types and compares, so that every field that serde knows is
//! in it. `assets/scenario.zh.ron` has the Chinese descriptions.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use serde_json::Value as Json;

pub use super::reference_page::markdown;
use crate::text::{Lang, Msg, escape, nearest, tr};

/// One type of the format.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeDoc {
    /// Its name, such as `AttentionConfig`.
    pub name: String,
    /// What it is.
    pub doc: String,
    /// What it holds.
    pub kind: Kind,
}

/// What a type holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Fields, written `(name: value, …)`.
    Fields(Vec<FieldDoc>),
    /// One of several choices.
    Choices(Vec<ChoiceDoc>),
}

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDoc {
    /// Its name.
    pub name: String,
    /// Its type.
    pub of: Type,
    /// Its value where it is left out, as RON writes it; `None` where it must be given.
    pub default: Option<String>,
    /// What it means.
    pub doc: String,
}

/// One choice of an enumeration.
#[derive(Clone, Debug, PartialEq)]
pub struct ChoiceDoc {
    /// Its name.
    pub name: String,
    /// Values in parentheses after the name, without names of their own.
    pub holds: Vec<Type>,
    /// Fields in parentheses after the name.
    pub fields: Option<Vec<FieldDoc>>,
    /// What it means.
    pub doc: String,
}

/// A type as the reference names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// `true` or `false`.
    Bool,
    /// A whole number; whether it may be negative.
    Integer(bool),
    /// A number.
    Number,
    /// Text in quotes.
    Text,
    /// `[…]` of these.
    List(Box<Type>),
    /// `{"name": …}` of these.
    Map(Box<Type>),
    /// `(…, …)`.
    Tuple(Vec<Type>),
    /// A type of the reference.
    Named(String),
}

impl Type {
    /// How it is written: `whole number`, `[[number]]`, `{"…": Text}`.
    pub fn show(&self, lang: Lang) -> String {
        match self {
            Type::Bool => "true / false".to_owned(),
            Type::Integer(true) => tr(lang, "reference.integer").to_owned(),
            Type::Integer(false) => tr(lang, "reference.natural").to_owned(),
            Type::Number => tr(lang, "reference.number").to_owned(),
            Type::Text => tr(lang, "reference.text").to_owned(),
            Type::List(of) => format!("[{}]", of.show(lang)),
            Type::Map(of) => format!("{{\"…\": {}}}", of.show(lang)),
            Type::Tuple(of) => format!("({})", of.iter().map(|t| t.show(lang)).collect::<Vec<_>>().join(", ")),
            Type::Named(name) => name.clone(),
        }
    }

    /// The type of the reference inside it, if there is one.
    pub fn inner(&self) -> Option<&str> {
        match self {
            Type::Named(name) => Some(name),
            Type::List(of) | Type::Map(of) => of.inner(),
            Type::Tuple(of) => of.iter().find_map(Type::inner),
            Type::Bool | Type::Integer(_) | Type::Number | Type::Text => None,
        }
    }
}

/// The JSON Schema of scenarios: what JSON written for the same types would have to be.
///
/// # Panics
/// Never: the schema is part of the program, and a test reads it.
pub fn json_schema() -> Json {
    serde_json::from_str(SCHEMA).unwrap_or_else(|e| panic!("scenario.schema.json: {e}"))
}

const SCHEMA: &str = include_str!("../../assets/scenario.schema.json");

/// All types, the scenario first, each after the type that first names it.
pub fn types() -> &'static [TypeDoc] {
    static TYPES: OnceLock<Vec<TypeDoc>> = OnceLock::new();
    TYPES.get_or_init(|| {
        let schema = json_schema();
        let none = serde_json::Map::new();
        let definitions = schema["$defs"].as_object().unwrap_or(&none);
        let mut out = vec![type_doc("Scenario", &schema, definitions)];
        // Depth first, so that a type stands near what uses it.
        let mut open: Vec<String> = named(&out[0]).into_iter().rev().collect();
        while let Some(name) = open.pop() {
            if out.iter().any(|t| t.name == name) {
                continue;
            }
            if let Some(schema) = definitions.get(&name) {
                let made = type_doc(&name, schema, definitions);
                open.extend(named(&made).into_iter().rev());
                out.push(made);
            }
        }
        out
    })
}

/// The names of types in the fields of a type, in order.
fn named(t: &TypeDoc) -> Vec<String> {
    let of = |fields: &[FieldDoc]| fields.iter().filter_map(|f| f.of.inner().map(str::to_owned)).collect::<Vec<_>>();
    match &t.kind {
        Kind::Fields(fields) => of(fields),
        Kind::Choices(choices) => choices
            .iter()
            .flat_map(|c| {
                let mut all: Vec<String> = c.holds.iter().filter_map(|t| t.inner().map(str::to_owned)).collect();
                all.extend(of(c.fields.as_deref().unwrap_or(&[])));
                all
            })
            .collect(),
    }
}

fn doc(schema: &Json) -> String {
    schema["description"].as_str().unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ")
}

type Definitions = serde_json::Map<String, Json>;

fn type_doc(name: &str, schema: &Json, definitions: &Definitions) -> TypeDoc {
    let kind = if schema["properties"].is_object() {
        Kind::Fields(fields(schema, definitions))
    } else if let Some(all) = schema["oneOf"].as_array() {
        Kind::Choices(all.iter().flat_map(|c| choice(c, definitions)).collect())
    } else {
        // An enumeration none of whose choices has a comment.
        let names = schema["enum"].as_array().into_iter().flatten().filter_map(Json::as_str);
        Kind::Choices(names.map(|n| unit(n, String::new())).collect())
    };
    TypeDoc { name: name.to_owned(), doc: doc(schema), kind }
}

fn unit(name: &str, doc: String) -> ChoiceDoc {
    ChoiceDoc { name: name.to_owned(), holds: Vec::new(), fields: None, doc }
}

fn choice(schema: &Json, definitions: &Definitions) -> Vec<ChoiceDoc> {
    if let Some(name) = schema["const"].as_str() {
        return vec![unit(name, doc(schema))];
    }
    if let Some(names) = schema["enum"].as_array() {
        return names.iter().filter_map(Json::as_str).map(|n| unit(n, doc(schema))).collect();
    }
    let Some((name, inside)) = schema["properties"].as_object().and_then(|p| p.iter().next()) else {
        return Vec::new();
    };
    let mut made = unit(name, doc(schema));
    if inside["properties"].is_object() && inside["$ref"].is_null() {
        made.fields = Some(fields(inside, definitions));
    } else if let Some(several) = inside["prefixItems"].as_array() {
        made.holds = several.iter().map(of_schema).collect();
    } else {
        made.holds = vec![of_schema(inside)];
    }
    vec![made]
}

fn fields(schema: &Json, definitions: &Definitions) -> Vec<FieldDoc> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    properties
        .iter()
        .map(|(name, field)| {
            let of = of_schema(field);
            let default = match field.get("default") {
                _ if required.contains(&name.as_str()) => None,
                Some(value) => Some(value_text(value, &of, definitions)),
                // Left out where it is empty.
                None => Some(match of {
                    Type::List(_) => "[]".to_owned(),
                    Type::Map(_) => "{}".to_owned(),
                    Type::Text => "\"\"".to_owned(),
                    _ => "None".to_owned(),
                }),
            };
            FieldDoc { name: name.clone(), of, default, doc: doc(field) }
        })
        .collect()
}

fn of_schema(schema: &Json) -> Type {
    if let Some(path) = schema["$ref"].as_str() {
        return Type::Named(path.trim_start_matches("#/$defs/").to_owned());
    }
    if let Some(any) = schema["anyOf"].as_array() {
        // `Option`: the other half is null.
        return any.iter().find(|s| s["type"] != "null").map_or(Type::Text, of_schema);
    }
    let kind = match &schema["type"] {
        Json::Array(kinds) => kinds.iter().find_map(|k| k.as_str().filter(|k| *k != "null")).unwrap_or(""),
        kind => kind.as_str().unwrap_or(""),
    };
    match kind {
        "boolean" => Type::Bool,
        "integer" => Type::Integer(schema["minimum"].is_null()),
        "number" => Type::Number,
        "array" => match schema["prefixItems"].as_array() {
            Some(several) => Type::Tuple(several.iter().map(of_schema).collect()),
            None => Type::List(Box::new(of_schema(&schema["items"]))),
        },
        "object" => Type::Map(Box::new(of_schema(&schema["additionalProperties"]))),
        _ => Type::Text,
    }
}

/// A default as RON writes it.
fn value_text(value: &Json, of: &Type, definitions: &Definitions) -> String {
    match value {
        Json::Null => "None".to_owned(),
        Json::Object(fields) if matches!(of, Type::Named(_)) => {
            // A choice that holds something, or a struct of defaults.
            let name = of.inner().unwrap_or("");
            let struct_ = definitions.get(name).is_some_and(|d| d["properties"].is_object());
            match fields.iter().next() {
                Some((choice, inside)) if !struct_ => {
                    format!("{choice}({})", value_text(inside, &Type::Number, definitions))
                }
                _ => "()".to_owned(),
            }
        }
        Json::Object(_) => "{}".to_owned(),
        Json::String(text) if matches!(of, Type::Named(_)) => text.clone(),
        Json::String(text) => format!("{text:?}"),
        Json::Array(all) => {
            let inside = match of {
                Type::List(of) => (**of).clone(),
                _ => Type::Text,
            };
            let all: Vec<String> = all.iter().map(|v| value_text(v, &inside, definitions)).collect();
            if matches!(of, Type::Tuple(_)) { format!("({})", all.join(", ")) } else { format!("[{}]", all.join(", ")) }
        }
        Json::Number(n) => match n.as_f64() {
            Some(x) if *of == Type::Number && x.fract() == 0.0 && x.abs() < 1e6 => format!("{x:.1}"),
            Some(x) if x != 0.0 && x.abs() < 1e-3 => format!("{x:e}"),
            _ => n.to_string(),
        },
        Json::Bool(b) => b.to_string(),
    }
}

/// The description of `key` (`Type`, `Type.field`, `Type.Choice`, `Type.Choice.field`) in `lang`; `english` where there
/// is none of its own.
pub(super) fn described<'d>(key: &str, english: &'d str, lang: Lang) -> &'d str {
    if lang == Lang::En {
        return english;
    }
    chinese().get(key).or_else(|| chinese().get(english)).map_or(english, String::as_str)
}

/// Chinese descriptions by `Type`, `Type.field`, `Type.Choice` and `Type.Choice.field`.
///
/// # Panics
/// Never: the table is part of the program, and a test reads it.
pub fn chinese() -> &'static HashMap<String, String> {
    static TABLE: OnceLock<HashMap<String, String>> = OnceLock::new();
    TABLE.get_or_init(|| {
        ron::from_str(include_str!("../../assets/scenario.zh.ron")).unwrap_or_else(|e| panic!("scenario.zh.ron: {e}"))
    })
}

/// The type called `name`.
fn type_named(name: &str) -> Option<&'static TypeDoc> {
    types().iter().find(|t| t.name == name)
}

/// The fields of a type and of its choices, each with the key of its description.
fn fields_of(t: &'static TypeDoc) -> Vec<(String, &'static FieldDoc)> {
    match &t.kind {
        Kind::Fields(all) => all.iter().map(|f| (format!("{}.{}", t.name, f.name), f)).collect(),
        Kind::Choices(all) => {
            let inside = |c: &'static ChoiceDoc| {
                let fields = c.fields.as_deref().unwrap_or(&[]);
                fields.iter().map(move |f| (format!("{}.{}.{}", t.name, c.name, f.name), f))
            };
            all.iter().flat_map(inside).collect()
        }
    }
}

/// The type of what is at `path` (`model.attention`, `runs[0].optimiser`), where the format has such a place.
pub fn type_at(path: &str) -> Option<Type> {
    let mut at = Type::Named("Scenario".to_owned());
    for segment in super::place::segments(path) {
        at = match (segment, at) {
            (super::place::Segment::Index(i), Type::Tuple(of)) => of.get(i)?.clone(),
            (super::place::Segment::Index(_), Type::List(of)) | (super::place::Segment::Key(_), Type::Map(of)) => *of,
            (segment, Type::Named(name)) => inside(type_named(&name)?, &segment)?,
            _ => return None,
        };
    }
    Some(at)
}

/// What `segment` leads to from a value of a type. A choice that holds one value is looked through, as paths have no
/// names of choices.
fn inside(t: &'static TypeDoc, segment: &super::place::Segment) -> Option<Type> {
    if let super::place::Segment::Key(key) = segment
        && let Some((_, field)) = fields_of(t).into_iter().find(|(_, f)| f.name == *key)
    {
        return Some(field.of.clone());
    }
    let Kind::Choices(choices) = &t.kind else { return None };
    choices.iter().filter(|c| c.holds.len() == 1).find_map(|c| match (&c.holds[0], segment) {
        (Type::List(of), super::place::Segment::Index(_)) => Some((**of).clone()),
        (Type::Named(name), segment) => inside(type_named(name)?, segment),
        _ => None,
    })
}

/// What may be at `path`: the fields or choices of its type, or what it is.
pub fn fits(path: &str) -> Option<Msg> {
    if path.is_empty() {
        return None;
    }
    let of = type_at(path)?;
    let at = escape(path).into_owned();
    let Type::Named(name) = &of else {
        return Some(Msg::new("reference.fits_type").arg("at", at).arg("type", Shown(of)));
    };
    Some(match &type_named(name)?.kind {
        Kind::Fields(fields) => {
            let names: Vec<&str> = fields.iter().map(|f| f.name.as_str()).collect();
            Msg::new("reference.fits_fields").arg("at", at).arg("names", names.join(", "))
        }
        Kind::Choices(choices) => {
            let names: Vec<String> = choices.iter().map(ChoiceDoc::form).collect();
            Msg::new("reference.fits_choices").arg("at", at).arg("names", names.join(", "))
        }
    })
}

/// How a value of a type is written.
fn example(of: &Type) -> String {
    match of {
        Type::Bool => "true".to_owned(),
        Type::Integer(false) => "4".to_owned(),
        Type::Integer(true) => "-1".to_owned(),
        Type::Number => "0.5".to_owned(),
        Type::Text => "\"…\"".to_owned(),
        Type::List(of) => format!("[{}, …]", example(of)),
        Type::Map(of) => format!("{{\"…\": {}}}", example(of)),
        Type::Tuple(of) => format!("({})", of.iter().map(example).collect::<Vec<_>>().join(", ")),
        Type::Named(name) => name.clone(),
    }
}

/// A type in a message: an example, which is the same in both languages.
struct Shown(Type);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&example(&self.0))
    }
}

impl ChoiceDoc {
    /// How it is written, without its values: `Sgd`, `By(…)`.
    fn form(&self) -> String {
        if self.holds.is_empty() && self.fields.is_none() { self.name.clone() } else { format!("{}(…)", self.name) }
    }

    /// How it is written: `Xavier`, `By(number)`, `Normal(mean, std)`.
    pub(super) fn written(&self, lang: Lang) -> String {
        if let Some(fields) = &self.fields {
            let names: Vec<&str> = fields.iter().map(|f| f.name.as_str()).collect();
            return format!("{}({})", self.name, names.join(", "));
        }
        if self.holds.is_empty() {
            return self.name.clone();
        }
        let holds: Vec<String> = self.holds.iter().map(|t| t.show(lang)).collect();
        format!("{}({})", self.name, holds.join(", "))
    }
}

impl FieldDoc {
    /// Whether it must be given, or what it is where it is left out.
    pub(super) fn given(&self, lang: Lang) -> String {
        match self.default.as_deref() {
            None => tr(lang, "reference.required").to_owned(),
            Some("None") => tr(lang, "reference.not_given").to_owned(),
            Some(default) => default.to_owned(),
        }
    }
}

/// The reference as plain text: all of it, or what `field` names: a place (`model.attention`), a type, or the name of a
/// field wherever it is.
///
/// # Errors
/// Where nothing has that name.
pub fn text(field: Option<&str>, lang: Lang) -> Result<String, Msg> {
    let mut out = String::new();
    let Some(field) = field else {
        for t in types() {
            type_text(&mut out, t, lang);
            out.push('\n');
        }
        return Ok(out);
    };
    if let Some(t) = type_named(field) {
        type_text(&mut out, t, lang);
        return Ok(out);
    }
    let place = super::place::segments(field);
    if let [super::place::Segment::Key(name)] = &place[..] {
        // A name alone is that of a field anywhere.
        for t in types() {
            for (key, f) in fields_of(t).into_iter().filter(|(_, f)| f.name == *name) {
                field_text(&mut out, &key, f, lang);
            }
        }
    } else if let Some((_, f, key)) = field_at(&place) {
        field_text(&mut out, &key, f, lang);
    }
    if !out.is_empty() {
        return Ok(out);
    }
    let mut names: Vec<&str> = types().iter().map(|t| t.name.as_str()).collect();
    for t in types() {
        names.extend(fields_of(t).into_iter().map(|(_, f)| f.name.as_str()));
    }
    let msg = Msg::new("reference.unknown").arg("name", escape(field));
    Err(match nearest(field, names) {
        Some(near) => Msg::new("reference.unknown_near").arg("name", escape(field)).arg("near", near),
        None => msg,
    })
}

/// The field at a place such as `model.norm.eps`, and the key of its description.
fn field_at(place: &[super::place::Segment]) -> Option<(&'static TypeDoc, &'static FieldDoc, String)> {
    let keys: Vec<&str> = place
        .iter()
        .filter_map(|s| match s {
            super::place::Segment::Key(key) => Some(key.as_str()),
            super::place::Segment::Index(_) => None,
        })
        .collect();
    let mut t = type_named("Scenario")?;
    let mut found = None;
    for key in keys {
        // `Training` of `runs.Training.optimiser` is no field, and says only which choice is meant.
        if let Kind::Choices(all) = &t.kind
            && all.iter().any(|c| c.name == key)
        {
            continue;
        }
        let (name, field) = fields_of(t).into_iter().find(|(_, f)| f.name == key)?;
        found = Some((t, field, name));
        if let Some(next) = field.of.inner().and_then(type_named) {
            t = next;
        }
    }
    found
}

fn field_text(out: &mut String, key: &str, f: &FieldDoc, lang: Lang) {
    let _ = writeln!(out, "{key}: {}  [{}]", f.of.show(lang), f.given(lang));
    let _ = writeln!(out, "    {}", described(key, &f.doc, lang));
    if let Some(t) = f.of.inner().and_then(type_named) {
        out.push('\n');
        type_text(out, t, lang);
    }
    out.push('\n');
}

fn type_text(out: &mut String, t: &TypeDoc, lang: Lang) {
    let _ = writeln!(out, "{}: {}", t.name, described(&t.name, &t.doc, lang));
    let lines = |out: &mut String, at: &str, fields: &[FieldDoc], indent: &str| {
        for f in fields {
            let _ = writeln!(out, "{indent}{}: {}  [{}]", f.name, f.of.show(lang), f.given(lang));
            let _ = writeln!(out, "{indent}    {}", described(&format!("{at}.{}", f.name), &f.doc, lang));
        }
    };
    match &t.kind {
        Kind::Fields(fields) => lines(out, &t.name, fields, "  "),
        Kind::Choices(choices) => {
            for c in choices {
                let key = format!("{}.{}", t.name, c.name);
                let _ = writeln!(out, "  {}", c.written(lang));
                let _ = writeln!(out, "      {}", described(&key, &c.doc, lang));
                lines(out, &key, c.fields.as_deref().unwrap_or(&[]), "      ");
            }
        }
    }
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
