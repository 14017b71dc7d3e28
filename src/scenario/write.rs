//! A scenario as the text of a file, and one field of it set by name.

use ron::extensions::Extensions;
use ron::ser::PrettyConfig;

use super::diagnostic::{Diagnostic, Problem};
use super::place::{self, Written};
use super::schema::Scenario;
use super::{options, syntax};
use crate::model::config::{ModelConfig, NormConfig, NormKind};
use crate::text::{Msg, escape, nearest};

/// Levels of brackets that get lines of their own; deeper ones are on one line.
const OPEN_LEVELS: usize = 3;

/// The text of a scenario, as [`syntax::read`] reads it back.
pub fn write(scenario: &Scenario) -> String {
    let style = PrettyConfig::new()
        .depth_limit(OPEN_LEVELS)
        .extensions(Extensions::empty())
        .compact_arrays(false)
        .struct_names(false);
    // Through a trait object, so that the writer is compiled once and not once for each type of a scenario.
    let scenario: &dyn erased_serde::Serialize = scenario;
    let text = options().to_string_pretty(scenario, style);
    // Everything in a scenario is plain data.
    text.unwrap_or_default() + "\n"
}

/// Short names of settings, and the fields that they denote.
const SHORT: &[(&str, &str)] = &[
    ("activation", "model.ffn.activation"),
    ("causal", "model.attention.causal"),
    ("eps", "model.norm.eps"),
    ("epsilon", "model.norm.eps"),
    ("eps_at", "model.norm.eps_at"),
    ("fill", "model.attention.fill"),
    ("gated", "model.ffn.gated"),
    ("mask_by", "model.attention.mask_by"),
    ("norm.placement", "model.norm.position"),
    ("placement", "model.norm.position"),
    ("position", "model.norm.position"),
    ("scale", "model.attention.scale"),
    ("softmax", "model.attention.softmax"),
    ("tied", "model.output.tied"),
    ("unbiased", "model.norm.unbiased"),
    ("window", "model.attention.window"),
];

/// Fields of a scenario that are no settings of its runs.
const NO_SETTINGS: [&str; 9] =
    ["name", "title", "note", "vocabulary", "target_vocabulary", "edits", "remarks", "symbols", "expected"];

/// The whole path of a setting that may be given shortly: `norm.eps` for `model.norm.eps`, `scale` for
/// `model.attention.scale`.
pub fn setting(field: &str) -> String {
    let field = field.trim();
    let bare = field.strip_prefix("model.").unwrap_or(field);
    if let Some((_, whole)) = SHORT.iter().find(|(short, _)| *short == bare) {
        return (*whole).to_owned();
    }
    let first = field.split(['.', '[']).next().unwrap_or(field);
    let of_scenario =
        matches!(first, "model" | "precision" | "source" | "target" | "labels" | "runs" | "weights" | "walkthrough")
            || NO_SETTINGS.contains(&first);
    if of_scenario { field.to_owned() } else { format!("model.{field}") }
}

/// The scenario with one setting changed. `field` is a whole path such as `model.norm.eps`; `value` is written as in a
/// scenario, and a choice may be in lower case (`pre`, `gelu_tanh`, `by(0.5)`).
///
/// # Errors
/// A field that is not there or is no setting, a value that does not fit it.
pub fn set(scenario: &Scenario, field: &str, value: &str) -> Result<Scenario, Problem> {
    let first = field.split(['.', '[']).next().unwrap_or(field);
    let data = field.starts_with("weights.values") || first == "walkthrough";
    if NO_SETTINGS.contains(&first) || data {
        let msg = Msg::new("edit.no_setting").arg("field", escape(field));
        return Err(Problem::new(escape(field), msg));
    }
    // What is long and no setting is put aside meanwhile.
    let mut plain = scenario.clone();
    plain.weights.values.clear();
    plain.walkthrough.clear();
    plain.symbols.clear();
    plain.remarks.clear();
    plain.expected.clear();
    plain.edits.clear();
    let text = write(&plain);
    let unknown = || {
        let msg = Msg::new("edit.unknown_setting").arg("field", escape(field));
        let shorts = SHORT.iter().map(|s| s.0);
        let problem = Problem::new(escape(field), msg);
        match nearest(field.strip_prefix("model.").unwrap_or(field), shorts) {
            Some(near) => problem.help(Msg::new("diagnostic.did_you_mean").arg("name", near)),
            None => problem,
        }
    };
    let written = place::value(&text, field).ok_or_else(unknown)?;
    let name = field.rsplit('.').next().unwrap_or(field);
    let with = |value: &str| match &written {
        Written::There(at) => format!("{}{value}{}", &text[..at.start], &text[at.end..]),
        Written::Absent(at) => format!("{}{name}: {value}, {}", &text[..*at], &text[*at..]),
    };
    let read = |value: &str| syntax::read("", &with(value));
    // What is more than one value would change what corresponds to it.
    let alone = |value: &str| {
        let whole = Written::There(4..4 + value.len());
        place::value(&format!("(x: {value})"), "x") == Some(whole)
    };
    if !alone(value) {
        let msg = Msg::new("edit.setting_value").arg("value", escape(value));
        return Err(Problem::new(escape(field), msg));
    }
    let tried = read(value).or_else(|first| {
        let other = spellings(value).into_iter().find_map(|s| read(&s).ok());
        other.ok_or_else(|| no_choice(value, first, &read))
    });
    let mut next = tried.map_err(|d| {
        let mut problem = Problem::new(field, d.msg);
        problem.help = d.help;
        problem
    })?;
    if name == "kind" {
        forget_unread(&mut next.model);
    }
    next.weights.values.clone_from(&scenario.weights.values);
    next.walkthrough.clone_from(&scenario.walkthrough);
    next.symbols.clone_from(&scenario.symbols);
    next.remarks.clone_from(&scenario.remarks);
    next.expected.clone_from(&scenario.expected);
    next.edits.clone_from(&scenario.edits);
    Ok(next)
}

/// Takes back what no norm of the chosen kind reads: an edit of the kind alone would otherwise be refused for settings
/// that went with the kind before.
fn forget_unread(model: &mut ModelConfig) {
    let usual = NormConfig::default();
    let stacks = [&mut model.encoder, &mut model.decoder];
    let layers = stacks.into_iter().flatten().flat_map(|s| &mut s.layers);
    let mut others = false;
    for norm in layers.filter_map(|l| l.norm.as_mut()) {
        let kind = norm.kind.unwrap_or(model.norm.kind);
        others |= kind != model.norm.kind;
        if kind == NormKind::None {
            (norm.eps, norm.eps_at, norm.affine) = (None, None, None);
        }
        if kind != NormKind::LayerNorm {
            norm.unbiased = None;
        }
    }
    // A layer of another kind takes its other settings from the model's.
    let norm = &mut model.norm;
    if norm.kind == NormKind::None && !others {
        (norm.eps, norm.eps_at, norm.affine) = (usual.eps, usual.eps_at, usual.affine);
    }
    if norm.kind != NormKind::LayerNorm && !others {
        norm.unbiased = false;
    }
}

/// Choices that hold one number.
const OF_NUMBER: [&str; 3] = ["By", "Value", "Constant"];

/// What `value` may be for besides itself: a choice in lower case; a number for the choice that holds one.
fn spellings(value: &str) -> Vec<String> {
    if value.parse::<f64>().is_ok() {
        OF_NUMBER.map(|name| format!("{name}({value})")).into()
    } else {
        vec![choice(value)]
    }
}

/// What is wrong with a value that cannot be read: where a choice stands, that it is none, and which there are.
fn no_choice(
    value: &str,
    first: Box<Diagnostic>,
    read: &dyn Fn(&str) -> Result<Scenario, Box<Diagnostic>>,
) -> Box<Diagnostic> {
    // A name that no choice has.
    let Err(mut other) = read("NoSuchChoice") else {
        return first;
    };
    let wanted = "scenario.unknown_variant";
    if first.msg.key == wanted || other.msg.key != wanted {
        return first;
    }
    other.msg = Msg::new(wanted).arg("name", escape(value));
    other
}

/// A choice as a scenario writes it: `gelu_tanh` is `GeluTanh`.
fn choice(value: &str) -> String {
    let end = value.find(|c: char| !(c.is_alphanumeric() || "_- ".contains(c)));
    let (name, rest) = value.split_at(end.unwrap_or(value.len()));
    let mut out = String::new();
    for word in name.split(['_', '-', ' ']) {
        let mut chars = word.chars();
        out.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        out.push_str(chars.as_str());
    }
    out + rest
}
