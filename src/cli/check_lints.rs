//! What `check` says of the lints: one line a finding, with why and how to mend it; or JSON.

use std::collections::HashMap;
use std::io::{self, Write};

use crate::debug::lints::Finding;
use crate::scenario::lint::{Lint, Severity};
use crate::session::Session;
use crate::text::number::exact;
use crate::text::{Lang, Msg, escape, tr};

/// Findings of one lint and severity that are written.
const MAX_ALIKE: usize = 5;

/// Whether none of `found` is an error, nor, where `strict`, a warning.
pub(super) fn good(found: &[Finding], strict: bool) -> bool {
    let fails = if strict { Severity::Warning } else { Severity::Error };
    found.iter().all(|f| f.severity < fails)
}

/// Writes findings, the gravest first. Only the first of a kind is explained.
pub(super) fn write_text(out: &mut impl Write, session: &Session, found: &[Finding], lang: Lang) -> io::Result<()> {
    let of = |s: Severity| found.iter().filter(|f| f.severity == s).count();
    let mut said: HashMap<(Lint, Severity), usize> = HashMap::new();
    let mut sorted: Vec<&Finding> = found.iter().collect();
    sorted.sort_by_key(|f| std::cmp::Reverse(f.severity));
    for f in &sorted {
        let kind = (f.lint, f.severity);
        let before = *said.entry(kind).and_modify(|n| *n += 1).or_insert(1) - 1;
        if before == MAX_ALIKE {
            let left = sorted.iter().filter(|o| (o.lint, o.severity) == kind);
            let msg = Msg::new("check.lint.more").arg("severity", severity(f.severity, lang)).arg("lint", f.lint.id());
            let msg = msg.arg("count", left.count() - MAX_ALIKE);
            writeln!(out, "{}", msg.render(lang))?;
        }
        if before >= MAX_ALIKE {
            continue;
        }
        let key = if f.allowed { "check.lint.allowed" } else { "check.lint" };
        let msg = Msg::new(key)
            .arg("severity", severity(f.severity, lang))
            .arg("lint", f.lint.id())
            .arg("place", place(session, f, lang))
            .arg("what", escape(&f.msg.render(lang)));
        writeln!(out, "{}", msg.render(lang))?;
        if before == 0 && f.severity > Severity::Info {
            for (key, text) in [("check.lint.why", f.why()), ("check.lint.mend", f.mend())] {
                let line = Msg::new(key).arg("text", text.render(lang));
                writeln!(out, "{}", line.render(lang))?;
            }
        }
    }
    let msg = if found.is_empty() {
        Msg::new("check.lint.none")
    } else {
        Msg::new("check.lint.counts")
            .arg("errors", of(Severity::Error))
            .arg("warnings", of(Severity::Warning))
            .arg("infos", of(Severity::Info))
    };
    writeln!(out, "{}", msg.render(lang))
}

fn severity(s: Severity, lang: Lang) -> &'static str {
    tr(
        lang,
        match s {
            Severity::Error => "severity.error",
            Severity::Warning => "severity.warning",
            Severity::Info => "severity.info",
        },
    )
}

fn step(session: &Session, f: &Finding) -> Option<String> {
    let number = f.step(session)?;
    Some(number.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
}

fn place(session: &Session, f: &Finding, lang: Lang) -> String {
    let Some(run) = f.run else {
        return tr(lang, "check.lint.place.weights").to_owned();
    };
    let name = escape(&session.runs[run].name);
    let msg = match step(session, f) {
        Some(step) => Msg::new("check.lint.place.step").arg("step", step),
        None => Msg::new("check.lint.place.run"),
    };
    let place = msg.arg("run", name).render(lang);
    if f.also.is_empty() {
        return place;
    }
    let names = f.also.iter().map(|r| session.runs[*r].name.as_str());
    let names = names.collect::<Vec<_>>().join(", ");
    let msg = Msg::new("check.lint.place.also").arg("place", place);
    msg.arg("runs", escape(&names)).render(lang)
}

/// A number; `nan`, `inf` and `-inf` are these strings.
fn number(x: f64) -> serde_json::Value {
    if x.is_finite() { serde_json::json!(x) } else { serde_json::json!(exact(x)) }
}

/// The findings as they stand in `check --json`.
pub(super) fn to_json(session: &Session, found: &[Finding], lang: Lang) -> serde_json::Value {
    let one = |f: &Finding| {
        // The number of a step is a number; that of a sub-step is text.
        let step = step(session, f).map(|s| match s.parse::<u32>() {
            Ok(n) => serde_json::json!(n),
            Err(_) => serde_json::json!(s),
        });
        serde_json::json!({
            "lint": f.lint.id(),
            "severity": f.severity.name(),
            "allowed": f.allowed,
            "run": f.run.map(|r| &session.runs[r].name),
            "also": f.also.iter().map(|r| &session.runs[*r].name).collect::<Vec<_>>(),
            "step": step,
            "path": f.path,
            "cell": f.cell,
            "value": f.value.map(number),
            "count": f.count,
            "message": f.msg.render(lang),
            "why": f.why().render(lang),
            "mend": f.mend().render(lang),
        })
    };
    found.iter().map(one).collect()
}
