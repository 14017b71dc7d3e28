//! The screen: step list, stage, derivation, note, and the other views. A function of the application's state; what
//! it learns (how much fits on a page, what lies where) is returned.

use std::fmt::Write as _;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::draw::{Look, frame, put};
use super::hints::hints;
use super::pane;
use super::shown::{Shown, Target};
use super::views;
use super::widgets::status;
use super::widgets::tree::{Branch, Compared, Line, Marks, Tree};
use crate::app::app::App;
use crate::app::navigator::{Navigator, TreeRow, rounded_words};
use crate::app::ui::Focus;
use crate::app::view::View;
use crate::app::views::map::crumbs;
use crate::debug::compare::State;
use crate::scenario::lint::Severity;
use crate::text::{Msg, tr};
use crate::walkthrough::{Role, Step, phase_name, short_title};

/// Smallest screen that shows anything but its own smallness.
const SMALLEST: (u16, u16) = (24, 6);
/// Narrowest and widest that the step list is.
const LIST: (u16, u16) = (34, 56);
/// Screens narrower than this have no step list.
const NARROW: u16 = 96;
/// Screens from this width on have a third pane.
const PANE: u16 = 160;

/// Draws everything but the overlays.
pub fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look) -> Shown {
    app.nav.numbers.measures.begin_frame();
    let area = area.intersection(buf.area);
    let mut shown = Shown::default();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = Msg::new("tui.too_small").arg("width", SMALLEST.0).arg("height", SMALLEST.1).render(look.lang);
        put(buf, area, (area.x, area.y), &text, area.width, look.theme.warn, look);
        return shown;
    }
    buf.set_style(area, look.theme.text);
    title(app, Rect { height: 1, ..area }, buf, look);
    // A message has a line of its own: it hides neither the view nor the key hints.
    let message = app.ui.messages.current();
    let said = u16::from(message.is_some() && area.height > SMALLEST.1);
    let body = Rect { y: area.y + 1, height: area.height - 2 - said, ..area };
    let bottom = Rect { y: area.bottom() - 1, height: 1, ..area };
    let has_pane = app.ui.settings.sidebar && area.width >= PANE && has_pane(app.ui.view);
    // On narrow screens the stage has all the room: the title says where one is.
    let main = if app.ui.settings.sidebar && area.width >= NARROW {
        let share = if has_pane { 24 } else { 30 };
        let width = (area.width * share / 100).clamp(LIST.0, LIST.1);
        let side = Rect { width, ..body };
        sidebar(app, side, buf, look, &mut shown);
        Rect { x: body.x + width, width: body.width - width, ..body }
    } else {
        body
    };
    let main = if has_pane {
        let width = (area.width / 5).clamp(32, 42);
        let place = Rect { x: main.right() - width, width, ..main };
        let inside = frame(buf, place, tr(look.lang, View::Map.key()), false, look);
        pane::draw(app, inside, buf, look, &mut shown);
        Rect { width: main.width - width, ..main }
    } else {
        main
    };
    let d = &app.nav;
    let view = tr(look.lang, app.ui.view.key());
    let heading = match app.ui.view {
        View::Step => heading(d, look),
        // What they show of the step one is at.
        shown if shown.is_of_step() => format!("{view} · {}", heading(d, look)),
        _ => view.to_owned(),
    };
    let focused = app.ui.view.takes_keys() || app.ui.focus != Focus::Steps;
    let inside = frame(buf, main, &heading, focused, look);
    shown.main = inside;
    views::draw(app, inside, buf, look, &mut shown);
    breadcrumb(app, main, buf, look);
    if let Some(message) = message {
        let line = if said > 0 { Rect { y: bottom.y - 1, ..bottom } } else { bottom };
        status::message(line, buf, message, look);
    }
    if message.is_none() || said > 0 {
        let hints = hints(app, look);
        let context = app.ui.context();
        status::hints(bottom, buf, &hints, &app.ui.keymap, context, look);
    }
    if !app.ui.count.is_empty() {
        let x = bottom.right().saturating_sub(look.width(&app.ui.count) + 1);
        put(buf, bottom, (x, bottom.y), &app.ui.count, bottom.width, look.theme.accent, look);
    }
    shown
}

/// Whether a view leaves room for the third pane: those of a step; others have their own use for the width.
fn has_pane(view: View) -> bool {
    view == View::Step || view.is_of_step() && !matches!(view, View::Map | View::Costs)
}

/// Where one is, on the lower border: `Encoder layer 1 › attention › head 1 › score1[0][1]`.
fn breadcrumb(app: &App, main: Rect, buf: &mut Buffer, look: &Look) {
    if main.width < 12 || main.height < 3 {
        return;
    }
    let text = format!(" {} ", crumbs(&app.nav, look.lang).join(" › "));
    let room = main.width - 4;
    let text = look.cut_start(&text, room);
    let at = (main.x + 2, main.bottom() - 1);
    put(buf, main, at, &text, room, look.theme.dim, look);
}

fn title(app: &App, area: Rect, buf: &mut Buffer, look: &Look) {
    let d = &app.nav;
    let run = d.step().map_or(0, |s| s.run);
    let name = &d.session.scenario.name;
    let mut left = format!("{name} · {}", d.session.runs[run].name);
    if let Some(rounding) = d.round() {
        let _ = write!(left, " · {}", rounded_words(rounding).render(look.lang));
    }
    if let Some(progress) = d.session.progress(run) {
        let share = format!("{:.0}", progress.share * 100.0);
        let going = match progress.left {
            Some(left) => Msg::new("tui.running_left").arg("seconds", left.as_secs() + 1),
            None => Msg::new("tui.running"),
        };
        let _ = write!(left, " · {}", going.arg("share", share).render(look.lang));
    }
    if let Some(rounding) = d.numbers.rounding() {
        let going = Msg::new("tui.rounding").arg("to", rounding);
        let _ = write!(left, " · {}", going.render(look.lang));
    }
    if let Some(made) = d.update_opened() {
        let update = Msg::new("training.opened").arg("update", made + 1);
        let _ = write!(left, " · {}", update.render(look.lang));
    }
    if app.edits.is_flipped(d) {
        let _ = write!(left, " · {}", tr(look.lang, "edit.flipped"));
    }
    if app.edits.count(d) > 0 {
        let count = app.edits.count(d);
        let edits = Msg::new("tui.edits").arg("count", count);
        let _ = write!(left, " · {}", edits.render(look.lang));
        if let Some((before, after)) = app.edits.loss(d) {
            let number = |x: f64| app.ui.settings.digits.format(x);
            let loss = Msg::new("tui.edits_loss").arg("before", number(before)).arg("after", number(after));
            let _ = write!(left, " · {}", loss.render(look.lang));
        }
    }
    if app.live.broken.is_some() {
        let _ = write!(left, " · {}", tr(look.lang, "live.is_broken"));
    }
    if app.ui.play.on {
        let _ = write!(left, " · {} {}/s", tr(look.lang, "tui.playing"), app.ui.play.per_second());
    }
    let right = match d.step() {
        Some(step) => {
            let total = d.steps.list().last().map_or(0, |s| s.number[0]);
            let mut text = Msg::new("tui.step_of").arg("step", step.label()).arg("total", total).render(look.lang);
            if !step.section.is_empty() {
                let _ = write!(text, " · {}", step.section);
            }
            text
        }
        None => tr(look.lang, "tui.no_steps").to_owned(),
    };
    status::ends(area, buf, &left, &right, look);
}

fn heading(d: &Navigator, look: &Look) -> String {
    let Some(step) = d.step() else {
        return String::new();
    };
    let title = d.title_of(step).render(look.lang);
    if d.is_aside() { format!("{} {title}", tr(look.lang, "tui.aside")) } else { title }
}

fn sidebar(app: &App, area: Rect, buf: &mut Buffer, look: &Look, shown: &mut Shown) {
    let d = &app.nav;
    let focused = app.ui.focus == Focus::Steps && !app.ui.view.takes_keys();
    let inside = frame(buf, area, tr(look.lang, "tui.steps"), focused, look);
    let (rows, current) = d.tree();
    shown.page.list = usize::from(inside.height.saturating_sub(1)).max(1);
    let list = d.steps.list();
    let line = |i: usize| match &rows[i] {
        TreeRow::Phase { first, last, folded } => Line {
            depth: 0,
            branch: if *folded { Branch::Folded } else { Branch::Unfolded },
            text: phase_name(&list[*first].phase, look.lang),
            right: format!("{}–{}", list[*first].label(), list[*last].label()),
            ..Line::default()
        },
        TreeRow::Step(at) => Line {
            depth: 1,
            text: {
                let step = &list[*at];
                let title = step.title.render(look.lang);
                let title = short_title(&title, &step.phase, look.lang);
                // Where titles are cut before they differ, the symbol says which step it is.
                let room = inside.width.saturating_sub(look.width(&step.label()) + 5);
                let cut = look.cut(&title, room);
                let alike = |other: Option<usize>| {
                    let other = other.and_then(|i| list.get(i)).filter(|o| o.phase == step.phase);
                    let title = |o: &Step| short_title(&o.title.render(look.lang), &o.phase, look.lang);
                    other.is_some_and(|o| look.cut(&title(o), room) == cut)
                };
                let mut results = step.views.iter().filter(|v| v.role == Role::Result);
                match (results.next(), results.next()) {
                    (Some(only), None) if cut != title && (alike(at.checked_sub(1)) || alike(Some(at + 1))) => {
                        format!("{} {} · {title}", step.label(), only.symbol)
                    }
                    _ => format!("{} {title}", step.label()),
                }
            },
            marks: Marks {
                bookmark: d.is_marked(*at),
                breakpoint: app.has_break(*at),
                changed: app.edits.step_changed(d, *at),
                failed: app.checks.failed(d, *at) > Some(Severity::Info),
                compared: app.views.compare.of_step(d, &list[*at]).map(|state| match state {
                    State::Match => Compared::Match,
                    State::Drift => Compared::Drift,
                    State::Diverged => Compared::Differs,
                    State::Unchecked => Compared::Unknown,
                }),
                ..Marks::default()
            },
            ..Line::default()
        },
        TreeRow::Inner { depth, at } => {
            let step = d.inner_step(*depth, *at);
            Line {
                depth: 1 + *depth as u16,
                text: step.map(|s| format!("{} {}", s.label(), d.title_of(s).render(look.lang))).unwrap_or_default(),
                dim: true,
                ..Line::default()
            }
        }
    };
    // The current line stays in the middle, where there is enough of the list on both sides.
    let offset = current.saturating_sub(usize::from(inside.height) / 2);
    let first =
        Tree { len: rows.len(), line: &line, selected: Some(current), offset, focused }.render(inside, buf, look);
    for (i, row) in rows.iter().enumerate().skip(first).take(usize::from(inside.height)) {
        let at = Rect { y: inside.y + (i - first) as u16, height: 1, ..inside };
        shown.hits.push((at, Target::Row(row.clone())));
    }
}
