//! `reload`, `open`.

use crate::app::app::App;
use crate::app::args::SourceLine;
use crate::app::effect::Effect;
use crate::app::messages::Level;
use crate::app::overlay::Overlay;
use crate::text::Msg;

/// `reload`: the source once more, as it is on disk now.
pub fn reload(app: &mut App) {
    app.ui.effects.push(Effect::Open(None));
}

/// `open SOURCE`: another source in place of this one.
pub fn open(app: &mut App, SourceLine(line): &SourceLine) {
    if line.trim().is_empty() {
        return app.ui.say(Level::Error, Msg::new("live.which"));
    }
    let effect = Effect::Open(Some(line.clone()));
    let unsaved = app.edits.unsaved(&app.nav);
    if app.ui.interactive && unsaved > 0 {
        let question = Msg::new("tui.ask.unsaved").arg("count", unsaved);
        app.ui.overlays.push(Overlay::Confirm { question, effect: Box::new(effect) });
    } else {
        app.ui.effects.push(effect);
    }
}

/// `auto-reload`: reload by itself when the files change, or no more.
pub fn auto(app: &mut App) {
    let files = app.nav.session.files();
    if app.live.opener.is_none() || files.is_empty() {
        return app.ui.say(Level::Error, Msg::new("live.no_files"));
    }
    app.live.watch = !app.live.watch;
    let key = if app.live.watch { "live.watching" } else { "live.not_watching" };
    app.ui.say(Level::Info, Msg::new(key).arg("files", files.len()));
}
