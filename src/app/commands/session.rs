//! `save-session`.

use crate::app::action::Action;
use crate::app::app::App;
use crate::app::args::FileName;
use crate::app::effect::Effect;
use crate::app::messages::Level;
use crate::app::record::place_commands;
use crate::text::Msg;

/// `save-session [FILE]`: the record as a file of commands that ends where one is.
pub fn save(app: &mut App, FileName(name): &FileName) {
    match script(app, name) {
        Ok(effect) => app.ui.effects.push(effect),
        Err(msg) => app.ui.say(Level::Error, msg),
    }
}

fn script(app: &App, name: &str) -> Result<Effect, Msg> {
    let file = if name.is_empty() { format!("{}.commands", app.ui.export_stem) } else { name.to_owned() };
    let scenario = &app.nav.session.scenario.name;
    let scenario = scenario.replace(['\n', '\r'], " ");
    let mut text = format!("# {scenario}\n");
    let here = place_commands(&app.nav);
    let end = if here == app.placed { &[][..] } else { &here };
    // The command that asks for this is the last one, and no part of it.
    let kept = |a: &&Action| !matches!(a, Action::SaveSession(_));
    for action in app.ui.record.iter().filter(kept).chain(end) {
        let line = action.line();
        if line.contains(['\n', '\r']) {
            return Err(Msg::new("tui.said.not_a_line"));
        }
        text.push_str(&line);
        text.push('\n');
    }
    Ok(Effect::write(file, text))
}
