//! The reference of the format as a page of Markdown.

use std::fmt::Write as _;

use super::reference::{FieldDoc, Kind, described, types};
use crate::text::{Lang, tr};

/// The whole reference as Markdown.
pub fn markdown(lang: Lang) -> String {
    let mut out = String::new();
    for t in types() {
        let _ = writeln!(out, "### {}\n", t.name);
        let _ = writeln!(out, "{}\n", described(&t.name, &t.doc, lang));
        match &t.kind {
            Kind::Fields(fields) => fields_table(&mut out, &t.name, fields, lang),
            Kind::Choices(choices) => {
                let _ = writeln!(
                    out,
                    "| {} | {} |\n|---|---|",
                    tr(lang, "reference.choice"),
                    tr(lang, "reference.meaning")
                );
                for c in choices {
                    let key = format!("{}.{}", t.name, c.name);
                    let _ = writeln!(out, "| `{}` | {} |", c.written(lang), cell(described(&key, &c.doc, lang)));
                }
                out.push('\n');
                for c in choices {
                    if let Some(fields) = c.fields.as_deref().filter(|f| !f.is_empty()) {
                        let _ = writeln!(out, "`{}(…)`:\n", c.name);
                        fields_table(&mut out, &format!("{}.{}", t.name, c.name), fields, lang);
                    }
                }
            }
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn fields_table(out: &mut String, at: &str, fields: &[FieldDoc], lang: Lang) {
    let heading = |key: &'static str| tr(lang, key);
    let _ = writeln!(
        out,
        "| {} | {} | {} | {} |\n|---|---|---|---|",
        heading("reference.field"),
        heading("reference.type"),
        heading("reference.default"),
        heading("reference.meaning")
    );
    for f in fields {
        let of = match f.of.inner() {
            Some(name) => {
                let link = format!("[{name}](#{})", name.to_lowercase());
                f.of.show(lang).replace(name, &link)
            }
            None => f.of.show(lang),
        };
        let default = match &f.default {
            Some(d) if d != "None" => format!("`{d}`"),
            _ => f.given(lang),
        };
        let meaning = cell(described(&format!("{at}.{}", f.name), &f.doc, lang));
        let _ = writeln!(out, "| `{}` | {} | {} | {meaning} |", f.name, cell(&of), cell(&default));
    }
    out.push('\n');
}

/// A vertical bar would end a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
