//! `counts`: what the model is made of and what it costs.

use crate::app::answer::{Answer, Row};
use crate::app::app::App;
use crate::app::messages::Level;
use crate::app::views::counts::tables;
use crate::debug::counts::{Counts, Wanted};
use crate::text::Msg;

/// All tables, as an answer.
pub fn list(app: &mut App) {
    let (session, lang) = (&app.nav.session, app.ui.settings.lang);
    let counts = match Counts::of(session, app.nav.run_here(), &Wanted::default()) {
        Ok(counts) => counts,
        Err(e) => return app.ui.say(Level::Error, Msg::new("scenario.build").arg("why", e)),
    };
    let mut answer = Answer::new(Msg::new("tui.view.counts"));
    for table in tables(&counts, session, lang) {
        answer.push(Row::plain(table.title.clone()));
        for line in table.lines().iter().chain(&table.notes) {
            answer.push(Row::plain(format!("  {line}")));
        }
    }
    app.ui.answer(answer);
}
