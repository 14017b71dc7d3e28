//! `counts`, `heads`, `depth`: tables about the model and the run looked at.

use crate::app::answer::{Answer, Row};
use crate::app::app::App;
use crate::app::messages::Level;
use crate::app::navigator::Navigator;
use crate::app::views::counts::{TextTable, tables};
use crate::debug::counts::{Counts, Wanted};
use crate::debug::depth;
use crate::debug::heads;
use crate::text::{Lang, Msg, NumberFormat, escape, tr};
use crate::trace::RunError;

/// `counts`: what the model is made of and what it costs.
pub fn counts(app: &mut App) {
    let (session, lang) = (&app.nav.session, app.ui.settings.lang);
    match Counts::of(session, app.nav.run_here(), &Wanted::default()) {
        Ok(counts) => {
            let all = tables(&counts, session, lang);
            answer(app, Msg::new("tui.view.counts"), &all);
        }
        Err(e) => app.ui.say(Level::Error, Msg::new("scenario.build").arg("why", e)),
    }
}

/// `heads`: what every head does, over the real tokens of each sentence.
pub fn heads(app: &mut App) {
    let made = heads_table(&app.nav, app.ui.settings.digits, app.ui.settings.lang);
    show(app, made, "heads.none");
}

/// `depth`: norms along the residual stream, and gradients by layer.
pub fn depth(app: &mut App) {
    let made = depth_tables(&app.nav, app.ui.settings.digits, app.ui.settings.lang);
    show(app, made, "depth.none");
}

fn show(app: &mut App, made: Result<Vec<TextTable>, RunError>, none: &'static str) {
    match made {
        Ok(all) if all.is_empty() => app.ui.say(Level::Info, Msg::new(none)),
        Ok(all) => {
            let name = escape(&app.nav.session.runs[app.nav.run_here()].name).into_owned();
            answer(app, Msg::new("tables.of_run").arg("run", name), &all);
        }
        Err(e) => app.ui.say(Level::Error, Msg::new("cli.cannot_run").arg("why", e)),
    }
}

fn answer(app: &mut App, title: Msg, tables: &[TextTable]) {
    let mut answer = Answer::new(title);
    for table in tables {
        answer.push(Row::plain(table.title.clone()));
        for line in table.lines().iter().chain(&table.notes) {
            answer.push(Row::plain(format!("  {line}")));
        }
    }
    app.ui.answer(answer);
}

fn headings(lang: Lang, of: &str, keys: &[&str]) -> Vec<String> {
    keys.iter().map(|k| tr(lang, &format!("{of}.{k}")).to_owned()).collect()
}

fn heads_table(nav: &Navigator, digits: NumberFormat, lang: Lang) -> Result<Vec<TextTable>, RunError> {
    let run = nav.run_here();
    let call = nav.view().and_then(|v| nav.session.runs[v.run].program.node(v.node).name.call);
    let rows = heads::table(&nav.session, run, call)?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let number = |x: f64| if x.is_nan() { "–".to_owned() } else { digits.format(x) };
    let row = |r: &heads::HeadRow| {
        vec![
            r.attention.clone(),
            (r.head + 1).to_string(),
            (r.sentence + 1).to_string(),
            format!("{} × {}", r.size.0, r.size.1),
            number(r.diagonal),
            number(r.elsewhere),
            number(r.entropy),
            tr(lang, &format!("heads.tends.{}", r.tendency.name())).to_owned(),
        ]
    };
    Ok(vec![TextTable {
        title: tr(lang, "heads.title").to_owned(),
        columns: headings(
            lang,
            "heads",
            &["attention", "head", "sentence", "size", "diagonal", "elsewhere", "entropy", "tends"],
        ),
        rows: rows.iter().map(row).collect(),
        notes: vec![tr(lang, "heads.note").to_owned()],
    }])
}

fn depth_tables(nav: &Navigator, digits: NumberFormat, lang: Lang) -> Result<Vec<TextTable>, RunError> {
    let run = nav.run_here();
    let call = nav.view().and_then(|v| nav.session.runs[v.run].program.node(v.node).name.call);
    let stream = depth::stream(&nav.session, run, call)?;
    let mut out = Vec::new();
    if !stream.is_empty() {
        let row = |r: &depth::StreamRow| {
            let kind = tr(lang, &format!("depth.kind.{}", r.kind.name())).to_owned();
            vec![r.path.clone(), kind, digits.format(r.norm), digits.format(r.rms), r.rows.to_string()]
        };
        out.push(TextTable {
            title: tr(lang, "depth.stream").to_owned(),
            columns: headings(lang, "depth", &["tensor", "kind", "norm", "rms", "rows"]),
            rows: stream.iter().map(row).collect(),
            notes: vec![tr(lang, "depth.note").to_owned()],
        });
    }
    let gradients = depth::gradients(&nav.session, run)?;
    if !gradients.is_empty() {
        let row = |r: &depth::GradientRow| {
            vec![r.layer.clone(), NumberFormat::Scientific(3).format(r.norm), r.parameters.to_string()]
        };
        out.push(TextTable {
            title: tr(lang, "depth.gradients").to_owned(),
            columns: headings(lang, "depth", &["layer", "gradient", "parameters"]),
            rows: gradients.iter().map(row).collect(),
            notes: Vec::new(),
        });
    }
    Ok(out)
}
