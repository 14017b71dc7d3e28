//! The application on the event loop: input in, frames out.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::draw::Look;
use super::effects::Terminal;
use super::event_loop::{self, Program, Step};
use super::glyphs::Glyphs;
use super::screen;
use super::shown::{Shown, Target};
use super::theme::{Depth, Environment, Theme};
use super::{overlays, snapshot, terminal};
use crate::app::action::Action;
use crate::app::app::App;
use crate::app::effect::Effect;
use crate::app::executor::{Front, execute};
use crate::app::input::{Input, Mouse, MouseKind};
use crate::app::messages::Level;
use crate::app::navigator::TreeRow;
use crate::app::overlay::Overlay;
use crate::app::settings::Settings;
use crate::app::ui::Focus;
use crate::text::{Msg, escape};

/// How everything looks under these settings.
pub fn look(settings: &Settings, environment: Environment) -> Look {
    let depth = Depth::resolve(settings.color, environment);
    Look::new(Theme::new(&settings.theme, depth), Glyphs::of(settings.glyphs), settings.lang)
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
pub fn still(app: &App, (columns, rows): (u16, u16), environment: Environment, format: Still) -> String {
    let area = Rect::new(0, 0, columns, rows);
    let mut buf = Buffer::empty(area);
    // Characters alone must tell what colours would.
    let environment = match format {
        Still::Text => Environment { no_color: true, detected: Depth::None },
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

/// What a screen of this size shows, as cells, and whether its ground is dark: a frame of a film.
pub fn cells(app: &App, (columns, rows): (u16, u16), environment: Environment) -> (Buffer, bool) {
    let area = Rect::new(0, 0, columns, rows);
    let mut buf = Buffer::empty(area);
    let look = look(&app.ui.settings, environment);
    draw(app, area, &mut buf, &look);
    (buf, look.theme.dark)
}

/// Lines that a notch of the wheel goes.
const WHEEL: usize = 3;

struct OnTerminal {
    app: App,
    environment: Environment,
    look: Look,
    shown: Shown,
}

impl OnTerminal {
    /// What a click on the screen or the wheel means; none where it means nothing. Overlays take no clicks: they are
    /// left by key.
    fn mouse(&mut self, mouse: Mouse) -> Option<Vec<Effect>> {
        if let Some(effects) = self.wheel(mouse) {
            return Some(effects);
        }
        if !self.app.ui.overlays.is_empty() || mouse.kind != MouseKind::Press {
            return None;
        }
        let target = self.under(mouse)?;
        match target {
            Target::Row(TreeRow::Phase { first, .. }) => {
                self.app.ui.focus = Focus::Steps;
                self.app.nav.fold(first);
            }
            Target::Row(TreeRow::Step(at)) => {
                self.app.ui.focus = Focus::Steps;
                self.app.nav.jump_to(at);
            }
            Target::Row(TreeRow::Inner { depth, at }) => self.app.nav.choose_inner(depth, at),
            Target::Cell(view, index) => {
                self.app.ui.focus = Focus::Stage;
                self.app.nav.select_in_plane(view, &index);
            }
            Target::Term(term) => {
                self.app.ui.focus = Focus::Text;
                self.app.nav.choose_term(term);
            }
        }
        Some(Vec::new())
    }

    /// The wheel moves what is under it: text that lies over the screen, else the part of the screen.
    fn wheel(&mut self, mouse: Mouse) -> Option<Vec<Effect>> {
        let (action, times) = match mouse.kind {
            MouseKind::ScrollUp => (Action::Up, WHEEL),
            MouseKind::ScrollDown => (Action::Down, WHEEL),
            MouseKind::ScrollLeft => (Action::Left, 1),
            MouseKind::ScrollRight => (Action::Right, 1),
            _ => return None,
        };
        let times = match self.app.ui.overlays.last() {
            // What is typed stays.
            Some(Overlay::Prompt(_) | Overlay::Export(_) | Overlay::Confirm { .. }) => 0,
            // In lists a notch is an entry.
            Some(Overlay::List { .. } | Overlay::Palette(_)) => 1,
            Some(_) => times,
            None => {
                self.app.ui.focus = match self.under(mouse) {
                    Some(Target::Row(_)) => Focus::Steps,
                    Some(Target::Cell(..)) => Focus::Stage,
                    Some(Target::Term(_)) => Focus::Text,
                    None => self.app.ui.focus,
                };
                if self.app.ui.focus == Focus::Steps { 1 } else { times }
            }
        };
        let effects = (0..times).flat_map(|_| self.app.act(action.clone())).collect();
        Some(effects)
    }

    fn under(&self, mouse: Mouse) -> Option<Target> {
        let inside = |r: &Rect| r.contains((mouse.x, mouse.y).into());
        let hit = self.shown.hits.iter().find(|(r, _)| inside(r));
        hit.map(|(_, target)| target.clone())
    }
}

impl Program for OnTerminal {
    fn input(&mut self, input: Input) -> Step {
        if let Input::Mouse(mouse) = input
            && let Some(effects) = self.mouse(mouse)
        {
            return Step { effects, changed: true };
        }
        let effects = self.app.input(&input);
        self.look = look(&self.app.ui.settings, self.environment);
        Step { effects, changed: true }
    }

    fn execute(&mut self, effects: Vec<Effect>, front: &mut dyn Front) -> bool {
        execute(&mut self.app, effects, front)
    }

    fn draw(&mut self, frame: &mut Frame) {
        let area = frame.area();
        let buf = frame.buffer_mut();
        self.shown = screen::draw(&self.app, area, buf, &self.look);
        self.app.ui.scrolling = overlays::draw(&self.app.ui, area, buf, &self.look);
        self.app.page = self.shown.page;
    }

    fn interval(&self) -> Option<Duration> {
        self.app.interval()
    }

    fn watched(&self) -> Vec<PathBuf> {
        self.app.live.files(&self.app.nav.session)
    }
}

/// Runs the debugger until it is left, after `commands`; gives the application back (what was done in it can be saved).
/// The first command that cannot be done ends them: the screen says which, and why.
///
/// # Errors
/// There is no terminal, or it went away.
pub fn run(mut app: App, commands: Vec<Action>) -> io::Result<App> {
    terminal::install_panic_hook();
    for action in commands {
        let outcome = app.run(&action, &mut Terminal(None));
        if outcome.quit {
            return Ok(app);
        }
        if outcome.error().is_some() {
            app.ui.say(Level::Error, Msg::new("play.stopped_at").arg("command", escape(&action.line())));
            break;
        }
    }
    let environment = Environment::read();
    let look = look(&app.ui.settings, environment);
    app.ui.interactive = true;
    crate::app::slot::yield_to_frames();
    // The first frame waits for nothing that can be read in the background.
    app.settle();
    let mut program = OnTerminal { app, environment, look, shown: Shown::default() };
    event_loop::run(&mut program)?;
    Ok(program.app)
}
