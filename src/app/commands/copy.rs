//! Copying: the cell, the derivation, the table.

use crate::app::app::App;
use crate::app::effect::Effect;
use crate::app::navigator::{MAX_SCANNED, Navigator, Plane};
use crate::text::{Msg, number::exact};

fn send(app: &mut App, text: Option<String>, done: &'static str) {
    if let Some(text) = text {
        app.ui.effects.push(Effect::Copy { text, done: Msg::new(done) });
    }
}

/// `copy-cell`, at full precision.
pub fn cell(app: &mut App) {
    let nav = &app.nav;
    let value = nav.cell().and_then(|(run, cell)| Some(nav.trace(run)?.get(cell.node)?.get(cell.flat)));
    send(app, value.map(exact), "tui.sent.cell");
}

/// `copy-line`.
pub fn line(app: &mut App) {
    let settings = &app.ui.settings;
    let line = app.nav.line(settings.lang, settings.digits, usize::MAX);
    send(app, line.map(|l| l.text()), "tui.sent.line");
}

/// `copy-table`.
pub fn table(app: &mut App) {
    let text = table_text(&app.nav);
    send(app, text, "tui.sent.table");
}

/// The table under the cursor, tab-separated, at full precision.
fn table_text(nav: &Navigator) -> Option<String> {
    let view = nav.view()?;
    let plane = Plane::of_view(view, nav.index());
    let value = nav.trace(view.run)?.get(view.node)?;
    if plane.rows * plane.cols > MAX_SCANNED {
        return None;
    }
    let row = |r: usize| -> String {
        let cells: Vec<String> = (0..plane.cols).map(|c| exact(value.get(plane.flat(r, c)))).collect();
        cells.join("\t")
    };
    Some((0..plane.rows).map(row).collect::<Vec<_>>().join("\n"))
}
