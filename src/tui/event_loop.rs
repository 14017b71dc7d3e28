//! The event loop: waits, drains what has come, and draws only after a change.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ratatui::Frame;

use super::effects::Terminal;
use super::event::Event;
use super::terminal::{self, Screen};
use super::watch::Watcher;
use super::{input, signals};
use crate::app::effect::Effect;
use crate::app::executor::Front;
use crate::app::input::Input;

/// An application, as the loop sees it.
pub trait Program {
    /// Takes in one event; says what is to be done outside and whether the screen changed.
    fn input(&mut self, input: Input) -> Step;
    /// Executes effects; true where the application is to be left.
    fn execute(&mut self, effects: Vec<Effect>, front: &mut dyn Front) -> bool;
    /// Draws the whole screen.
    fn draw(&mut self, frame: &mut Frame);
    /// Time to the next [`Input::Tick`]; `None` where nothing moves by itself.
    fn interval(&self) -> Option<Duration>;
    /// Files whose changes are wanted as [`Input::Changed`].
    fn watched(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// What came of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// What is to be done outside.
    pub effects: Vec<Effect>,
    /// Whether the screen is to be drawn.
    pub changed: bool,
}

/// Most events taken in before a frame is drawn: a flood (a held key, a paste) must not starve the screen.
const BATCH: usize = 256;

/// Runs until the application quits. The terminal is given back whichever way this ends.
///
/// # Errors
/// There is no terminal, or it went away.
pub fn run(program: &mut dyn Program) -> io::Result<()> {
    let mut screen = Screen::open()?;
    let (sender, events) = mpsc::channel();
    signals::listen(sender.clone())?;
    // Begins to listen for changes of size before the first frame asks for one: a change in between would be lost.
    crossterm::event::poll(Duration::ZERO)?;
    let watcher = Watcher::new(sender.clone());
    std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        loop {
            let event = match crossterm::event::read() {
                Ok(event) => match input::normalise(event) {
                    Some(input) => Event::Input(input),
                    None => continue,
                },
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Event::Closed(error),
            };
            let last = matches!(event, Event::Closed(_));
            if sender.send(event).is_err() || last {
                return;
            }
        }
    })?;
    drive(program, &mut screen, &events, watcher)
}

fn drive(
    program: &mut dyn Program,
    screen: &mut Screen,
    events: &Receiver<Event>,
    mut watcher: Watcher,
) -> io::Result<()> {
    let mut changed = true;
    let mut ticked = Instant::now();
    loop {
        if changed {
            screen.draw(|frame| program.draw(frame))?;
            changed = false;
        }
        watcher.set(&program.watched());
        let first = match program.interval() {
            None => {
                let event = events.recv();
                // Playing begins with a whole interval.
                ticked = Instant::now();
                event.ok()
            }
            Some(interval) => match events.recv_timeout(interval.saturating_sub(ticked.elapsed())) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => {
                    ticked = Instant::now();
                    Some(Event::Input(Input::Tick))
                }
                Err(RecvTimeoutError::Disconnected) => None,
            },
        };
        let Some(first) = first else {
            return Ok(());
        };
        for event in std::iter::once(first).chain(std::iter::from_fn(|| events.try_recv().ok())).take(BATCH) {
            let step = match event {
                Event::Input(input) => {
                    let resized = matches!(input, Input::Resize(..));
                    let mut step = program.input(input);
                    if resized {
                        // A screen made smaller and larger again before a frame has the old size and lost its text.
                        screen.forget()?;
                        step.changed = true;
                    }
                    step
                }
                Event::Suspend => Step { effects: vec![Effect::Suspend], changed: true },
                Event::Continued => {
                    terminal::retake()?;
                    screen.forget()?;
                    changed = true;
                    continue;
                }
                Event::Closed(error) => return Err(error),
            };
            changed |= step.changed;
            changed |= !step.effects.is_empty();
            if program.execute(step.effects, &mut Terminal(Some(screen))) {
                return Ok(());
            }
        }
    }
}
