//! The application on the event loop: input in, frames out.

use std::io;
use std::time::Duration;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::draw::Look;
use super::event_loop::{self, Program, Step};
use super::glyphs::Glyphs;
use super::screen::{self, Shown, Target};
use super::theme::{Depth, Environment, Theme};
use super::{overlays, snapshot, terminal};
use crate::app::app::App;
use crate::app::debugger::TreeRow;
use crate::app::effect::Report;
use crate::app::input::{Input, Mouse, MouseKind};
use crate::app::ui::{Focus, Settings};

/// How everything looks under these settings.
pub fn look(settings: &Settings, environment: Environment) -> Look {
    let depth = Depth::resolve(settings.color, environment);
    Look::new(
        Theme::new(&settings.theme, depth),
        Glyphs::of(settings.glyphs),
        settings.lang,
    )
}

/// Draws the whole screen.
pub fn draw(app: &App, area: Rect, buf: &mut Buffer, look: &Look) -> Shown {
    let shown = screen::draw(app, area, buf, look);
    overlays::draw(&app.ui, area, buf, look);
    shown
}

/// Format of a still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Still {
    /// Characters only.
    Text,
    /// With ANSI sequences.
    Ansi,
    /// A picture.
    Svg,
}

/// What a screen of this size shows, as text.
pub fn still(
    app: &App,
    (columns, rows): (u16, u16),
    environment: Environment,
    format: Still,
) -> String {
    let area = Rect::new(0, 0, columns, rows);
    let mut buf = Buffer::empty(area);
    // Characters alone must tell what colours would.
    let environment = match format {
        Still::Text => Environment {
            no_color: true,
            detected: Depth::None,
        },
        Still::Ansi | Still::Svg => environment,
    };
    let look = look(&app.ui.settings, environment);
    draw(app, area, &mut buf, &look);
    match format {
        Still::Text => snapshot::text(&buf),
        Still::Ansi => snapshot::ansi(&buf),
        Still::Svg => snapshot::svg(&buf, look.theme.dark),
    }
}

struct OnTerminal {
    app: App,
    environment: Environment,
    look: Look,
    shown: Shown,
}

impl OnTerminal {
    /// What a click on the screen means. Overlays take no clicks: they are left by key.
    fn mouse(&mut self, mouse: Mouse) -> bool {
        if !self.app.ui.overlays.is_empty() || mouse.kind != MouseKind::Press {
            return false;
        }
        let inside = |r: &Rect| r.contains((mouse.x, mouse.y).into());
        let Some((_, target)) = self.shown.hits.iter().find(|(r, _)| inside(r)).cloned() else {
            return false;
        };
        match target {
            Target::Row(TreeRow::Phase { first, .. }) => {
                self.app.ui.focus = Focus::Steps;
                self.app.debugger.fold(first);
            }
            Target::Row(TreeRow::Step(at)) => {
                self.app.ui.focus = Focus::Steps;
                self.app.debugger.jump_to(at);
            }
            Target::Row(TreeRow::Inner { depth, at }) => self.app.debugger.choose_inner(depth, at),
            Target::Cell(view, index) => {
                self.app.ui.focus = Focus::Stage;
                self.app.debugger.select_in_plane(view, &index);
            }
            Target::Term(term) => {
                self.app.ui.focus = Focus::Text;
                self.app.debugger.choose_term(term);
            }
        }
        true
    }
}

impl Program for OnTerminal {
    fn input(&mut self, input: Input) -> Step {
        if let Input::Mouse(mouse) = input
            && self.mouse(mouse)
        {
            return Step {
                effects: Vec::new(),
                changed: true,
            };
        }
        let effects = self.app.input(&input);
        self.look = look(&self.app.ui.settings, self.environment);
        Step {
            effects,
            changed: true,
        }
    }

    fn report(&mut self, report: Report) {
        self.app.report(report);
    }

    fn draw(&mut self, frame: &mut Frame) {
        let area = frame.area();
        self.shown = draw(&self.app, area, frame.buffer_mut(), &self.look);
        self.app.page = self.shown.page;
    }

    fn interval(&self) -> Option<Duration> {
        self.app.interval()
    }
}

/// Runs the debugger until it is left; gives the application back (what was done in it can be saved).
///
/// # Errors
/// There is no terminal, or it went away.
pub fn run(mut app: App) -> io::Result<App> {
    terminal::install_panic_hook();
    let environment = Environment::read();
    let look = look(&app.ui.settings, environment);
    app.debugger.live = true;
    let mut program = OnTerminal {
        app,
        environment,
        look,
        shown: Shown::default(),
    };
    event_loop::run(&mut program)?;
    Ok(program.app)
}
