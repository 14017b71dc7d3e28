//! `export`.

use crate::app::app::App;
use crate::app::args::ExportArgs;
use crate::app::effect::Effect;
use crate::export::document::{self, document};
use crate::export::select::Selection;
use crate::export::{Format, Options, Writer};
use crate::text::Msg;

/// `export [FORMAT] [RANGE] [PATH]`.
pub fn export(app: &mut App, args: &ExportArgs) {
    match exported(app, args) {
        Ok(effect) => app.ui.effects.push(effect),
        Err(msg) => app.ui.refuse_export(1, msg),
    }
}

fn exported(app: &App, args: &ExportArgs) -> Result<Effect, Msg> {
    let d = &app.nav;
    let format = args.format.as_deref().map_or(Ok(Format::Text), Format::parse)?;
    let label = d.step().map(crate::walkthrough::Step::label).unwrap_or_default();
    let selection = Selection::parse(args.range.as_deref().unwrap_or(&label))?;
    let path = args.path.clone().unwrap_or_else(|| format!("{}.{}", app.ui.export_stem, format.extension()));
    let settings = &app.ui.settings;
    let options =
        Options { lang: settings.lang, number: settings.digits, array: selection.is_several(), ..Options::default() };
    let making = document::Settings {
        lang: settings.lang,
        number: settings.digits,
        round: d.round(),
        derivations: 20_000,
        terms: usize::MAX,
        inputs: false,
    };
    let failed = |e: &dyn std::fmt::Display| Msg::new("tui.said.not_exported").arg("why", e);
    let mut bytes = Vec::new();
    let mut writer = Writer::begin(format, &options, &mut bytes).map_err(|e| failed(&e))?;
    let mut any = false;
    for (at, step) in d.steps.list().iter().enumerate() {
        let step = match &selection {
            Selection::One(path) if path.len() > 1 && path[0] == step.number[0] => d.session.step_at(&d.steps, path),
            s if s.holds(step.number[0]) => Some(step.clone()),
            _ => None,
        };
        let Some(step) = step else { continue };
        let doc = document(&d.session, &d.steps, at, &step, &making).map_err(|e| failed(&e))?;
        writer.step(&doc).map_err(|e| failed(&e))?;
        any = true;
    }
    writer.end().map_err(|e| failed(&e))?;
    if !any {
        return Err(Msg::new("tui.said.no_step"));
    }
    Ok(Effect::write(path, bytes))
}
