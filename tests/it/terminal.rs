//! The event loop on a real pseudo-terminal: every way out leaves the terminal as it was.
#![cfg(all(unix, feature = "tui"))]

use std::time::Duration;

use crate::common::pty::Pty;
use ratatui::Frame;
use ratatui::widgets::Paragraph;
use tui_transformer::app::action::Action;
use tui_transformer::app::effect::{Effect, Report};
use tui_transformer::app::executor::Front;
use tui_transformer::app::input::Input;
use tui_transformer::app::settings::Settings;
use tui_transformer::app::ui::Ui;
use tui_transformer::text::{Lang, Msg};
use tui_transformer::tui::event_loop::{self, Program, Step};

/// Set in the child process, which runs [`Shown`] in place of the tests.
const CHILD: &str = "TUI_TRANSFORMER_TEST_CHILD";

/// Shows what it was reported.
struct Shown {
    ui: Ui,
    reported: Vec<String>,
    frames: usize,
}

impl Program for Shown {
    fn input(&mut self, input: Input) -> Step {
        self.reported.push(match &input {
            Input::Key(key) => format!("key {key}"),
            Input::Paste(text) => format!("paste {text}"),
            Input::Mouse(m) => format!("mouse {} {}", m.x, m.y),
            Input::Resize(w, h) => format!("size {w} {h}"),
            Input::Tick => "tick".to_owned(),
            Input::Changed => "changed".to_owned(),
        });
        for action in self.ui.input(&input, &()) {
            match self.ui.update(action, &()) {
                Some(Action::Ablate(_)) => panic!("ablated"),
                Some(Action::CopyCell) => {
                    self.ui.effects.push(Effect::Copy { text: "1.1193".to_owned(), done: Msg::new("tui.sent.cell") });
                }
                _ => {}
            }
        }
        Step { effects: std::mem::take(&mut self.ui.effects), changed: true }
    }

    fn execute(&mut self, effects: Vec<Effect>, front: &mut dyn Front) -> bool {
        let mut quit = false;
        for effect in effects {
            match effect {
                Effect::Quit => quit = true,
                Effect::Suspend | Effect::Redraw => front.screen(effect == Effect::Suspend).expect("a screen"),
                Effect::Mouse(on) => front.mouse(on).expect("a mouse"),
                Effect::Copy { text, done } => {
                    let done = front.copy(&text, done).expect("a clipboard");
                    self.ui.report(done.map_or(Report::Silent, Report::Done));
                }
                other => panic!("{other:?}"),
            }
        }
        quit
    }

    fn draw(&mut self, frame: &mut Frame) {
        self.frames += 1;
        let said = self.ui.messages.current().map(|m| m.text.render(Lang::En)).unwrap_or_default();
        let last = self.reported.last().map_or("ready", String::as_str);
        let text = format!("[{last}] {said}\n{} reported\n水课", self.reported.len());
        frame.render_widget(Paragraph::new(text), frame.area());
    }

    fn interval(&self) -> Option<Duration> {
        self.ui.play.interval()
    }
}

/// The child's part; in the parent's own run there is nothing for it to do.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_some() {
        let mut shown = Shown { ui: Ui::new(Settings::default()), reported: Vec::new(), frames: 0 };
        event_loop::run(&mut shown).expect("a terminal");
        println!("{} frames", shown.frames);
    }
}

fn start() -> Pty {
    let program = std::env::current_exe().expect("a name");
    let args = ["--exact", "terminal::child", "--nocapture"];
    let pty = Pty::spawn(&program, &args, &[(CHILD, "1")], (80, 24));
    pty.wait_for("[ready]");
    pty
}

fn is_ours(screen: &vt100::Screen) -> bool {
    screen.alternate_screen() && screen.hide_cursor() && screen.bracketed_paste()
}

#[test]
fn quitting_gives_the_terminal_back() {
    let mut pty = start();
    pty.wait("the alternate screen", is_ours);
    pty.send("\x1b[C");
    pty.wait_for("[key right]");
    pty.send("q");
    assert!(pty.finish().success());
    assert!(pty.text().contains(" frames"), "{}", pty.text());
}

#[test]
fn keys_pastes_and_sizes_arrive() {
    let mut pty = start();
    pty.send("？");
    pty.wait_for("[key ?]");
    pty.send("\x1b[200~a\nb\x1b[201~");
    pty.wait_for("[paste a");
    pty.resize(100, 30);
    pty.wait_for("[size 100 30]");
    pty.send("\x1b[1;5C");
    pty.wait_for("[key ctrl-right]");
    pty.send("\x1bq");
    pty.wait_for("[key alt-q]");
    pty.send("\x1b");
    pty.wait_for("[key esc]");
    pty.send("q");
    assert!(pty.finish().success());
}

#[test]
fn a_panic_gives_the_terminal_back_and_is_reported() {
    let mut pty = start();
    pty.send("a");
    assert!(!pty.finish().success());
    assert!(pty.text().contains("ablated"), "{}", pty.text());
}

#[test]
fn ending_signals_give_the_terminal_back() {
    for name in ["TERM", "HUP", "INT", "QUIT", "ABRT", "USR1", "USR2", "ALRM", "XCPU", "VTALRM"] {
        let mut pty = start();
        pty.signal(name);
        assert!(!pty.finish().success(), "{name}");
    }
}

#[test]
fn suspending_gives_the_terminal_back_and_takes_it_again() {
    let mut pty = start();
    pty.send("\x1a");
    pty.wait_stopped();
    pty.assert_restored();
    pty.signal("CONT");
    pty.wait("the alternate screen again", is_ours);
    pty.wait_for("[key ctrl-z]");
    pty.signal("TSTP");
    pty.wait_stopped();
    pty.assert_restored();
    pty.signal("CONT");
    pty.wait("the alternate screen again", is_ours);
    pty.send("x");
    pty.wait_for("[key x]");
    pty.send("q");
    assert!(pty.finish().success());
}

#[test]
fn the_mouse_is_captured_only_when_asked() {
    let mut pty = start();
    pty.wait("no mouse", |s| s.mouse_protocol_mode() == vt100::MouseProtocolMode::None);
    pty.send("M");
    pty.wait("the mouse", |s| s.mouse_protocol_mode() != vt100::MouseProtocolMode::None);
    pty.send("\x1b[<0;5;3M");
    pty.wait_for("[mouse 4 2]");
    pty.send("q");
    assert!(pty.finish().success());
}

#[test]
fn copying_sends_osc_52_and_says_sent() {
    let mut pty = start();
    pty.send("y");
    pty.wait_for("sent to the terminal's clipboard");
    let written = String::from_utf8_lossy(&pty.written()).into_owned();
    assert!(written.contains("\x1b]52;c;MS4xMTkz\x07"));
    pty.send("q");
    assert!(pty.finish().success());
}

#[test]
fn nothing_is_written_while_idle_and_ticks_come_while_playing() {
    let mut pty = start();
    // What is seen may still be followed by the end of its frame.
    let settle = Duration::from_millis(300);
    pty.written_within(settle);
    assert_eq!(pty.written_within(Duration::from_millis(700)), 0);
    pty.send("\x1b[15~");
    pty.wait_for("[tick]");
    pty.send("\x1b[15~");
    pty.wait_for("[key f5]");
    pty.written_within(settle);
    assert_eq!(pty.written_within(Duration::from_millis(700)), 0);
    pty.send("q");
    assert!(pty.finish().success());
}

#[test]
fn held_keys_are_drained_before_drawing() {
    let mut pty = start();
    // One byte a key: a sequence that the pty cuts in two would be two keys.
    pty.send(&"j".repeat(2000));
    pty.wait_for("2000 reported");
    pty.send("q");
    assert!(pty.finish().success());
    let text = pty.text();
    let frames: usize =
        text.lines().find_map(|l| l.trim().strip_suffix(" frames")?.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    assert!(frames < 1000, "{frames} frames for 2000 keys");
}

/// Signals after a stop, in the order in which they are sent.
const ORDERS: [&[&str]; 4] =
    [&["TERM", "CONT"], &["HUP", "CONT"], &["CONT", "TERM"], &["CONT", "TSTP", "CONT", "TERM"]];

#[test]
fn however_a_stopped_process_is_ended_the_terminal_is_sane() {
    const TRIALS: usize = 40;
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        loop {
            let trial = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(order) = ORDERS.get(trial / TRIALS) else { return };
            let mut pty = start();
            pty.send("\x1a");
            pty.wait_stopped();
            for signal in *order {
                pty.signal(signal);
                // Sometimes the process gets to run in between.
                std::thread::sleep(Duration::from_micros(trial as u64 % 5 * 700));
            }
            // A stop may have come last.
            if !pty.ended_within(Duration::from_secs(2)) {
                pty.signal("CONT");
            }
            assert!(!pty.finish().success(), "{order:?}");
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
}
