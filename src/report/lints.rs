//! What the lints found: one line a finding, with why it is one and what to do.

use std::collections::HashMap;

use super::{About, Level, Line, number};
use crate::debug::lints::Finding;
use crate::scenario::lint::{Lint, Severity};
use crate::session::Session;
use crate::text::{Lang, Msg, escape, tr};

/// Whether none of `found` is an error, nor, where `strict`, a warning.
pub fn good(found: &[Finding], strict: bool) -> bool {
    let fails = if strict { Severity::Warning } else { Severity::Error };
    found.iter().all(|f| f.severity < fails)
}

/// A line for each finding, the gravest first, of `alike` findings of a kind at most. The first of a kind is followed by why
/// it is one and what to do.
pub fn lines(session: &Session, found: &[Finding], alike: usize, lang: Lang) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut said: HashMap<(Lint, Severity), usize> = HashMap::new();
    let mut sorted: Vec<&Finding> = found.iter().collect();
    sorted.sort_by_key(|f| std::cmp::Reverse(f.severity));
    for f in &sorted {
        let kind = (f.lint, f.severity);
        let before = *said.entry(kind).and_modify(|n| *n += 1).or_insert(1) - 1;
        if before == alike {
            let left = sorted.iter().filter(|o| (o.lint, o.severity) == kind);
            let msg = Msg::new("check.lint.more").arg("severity", severity(f.severity, lang)).arg("lint", f.lint.id());
            lines.push(Line::new(msg.arg("count", left.count() - alike)));
        }
        if before >= alike {
            continue;
        }
        lines.push(line(session, f, lang));
        if before == 0 && f.severity > Severity::Info {
            for (key, text) in [("check.lint.why", f.why()), ("check.lint.mend", f.mend())] {
                lines.push(Line::new(Msg::new(key).arg("text", text.render(lang))));
            }
        }
    }
    lines
}

/// One finding: how grave it is, where and what it is.
pub fn line(session: &Session, f: &Finding, lang: Lang) -> Line {
    let key = if f.allowed { "check.lint.allowed" } else { "check.lint" };
    let msg = Msg::new(key)
        .arg("severity", severity(f.severity, lang))
        .arg("lint", f.lint.id())
        .arg("place", place(session, f, lang))
        .arg("what", escape(&f.msg.render(lang)));
    let level = match f.severity {
        Severity::Info => Level::Info,
        Severity::Warning => Level::Warning,
        Severity::Error => Level::Error,
    };
    let about = f.run.filter(|_| f.node.is_some()).map(|run| About::Node {
        run: Some(session.runs[run].name.clone()),
        path: f.path.clone(),
        index: f.cell.clone(),
    });
    Line { about, ..Line::new(msg).level(level) }
}

/// How many findings there are of each severity.
pub fn counts(found: &[Finding], key: &'static str) -> Msg {
    let of = |s: Severity| found.iter().filter(|f| f.severity == s).count();
    Msg::new(key)
        .arg("errors", of(Severity::Error))
        .arg("warnings", of(Severity::Warning))
        .arg("infos", of(Severity::Info))
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

/// The findings for programs.
pub fn to_json(session: &Session, found: &[Finding], lang: Lang) -> serde_json::Value {
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
