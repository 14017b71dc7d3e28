//! Screens that are no step: tables of words, two runs side by side, training.
#![cfg(feature = "tui")]

use std::path::Path;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tui_transformer::app::action::Action;
use tui_transformer::app::app::App;
use tui_transformer::app::config::GlyphSet;
use tui_transformer::app::input::Input;
use tui_transformer::app::key::KeySeq;
use tui_transformer::app::ui::Settings;
use tui_transformer::scenario;
use tui_transformer::session;
use tui_transformer::text::Lang;
use tui_transformer::tui::run::{draw, look};
use tui_transformer::tui::snapshot;
use tui_transformer::tui::theme::{Depth, Environment};

const COLOURS: Environment = Environment {
    no_color: false,
    detected: Depth::True,
};
const SIZES: [(u16, u16); 3] = [(80, 24), (120, 36), (200, 60)];

fn app(name: &str, lang: Lang, glyphs: GlyphSet) -> App {
    let loaded = scenario::load(Path::new(name)).unwrap();
    let session = session::open(loaded.scenario, None, session::Options::default()).unwrap();
    let settings = Settings {
        lang,
        glyphs,
        ..Settings::default()
    };
    App::new(Arc::new(session), None, settings)
}

fn command(app: &mut App, line: &str) {
    app.act(Action::parse(line).unwrap(), &mut Vec::new());
}

fn press(app: &mut App, keys: &str) {
    for key in keys.parse::<KeySeq>().unwrap().0 {
        app.input(&Input::Key(key));
    }
}

/// Draws, and lets the application know what it saw, as the event loop does.
fn frame(app: &mut App, (width, height): (u16, u16)) -> Buffer {
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    app.page = draw(app, area, &mut buf, &look(&app.ui.settings, COLOURS)).page;
    buf
}

/// What is seen, without the key hints of the last line.
fn text(app: &mut App, size: (u16, u16)) -> String {
    let all = snapshot::text(&frame(app, size));
    let lines: Vec<&str> = all.lines().collect();
    lines[..lines.len() - 1].join("\n")
}

#[test]
fn the_last_step_of_the_hand_calculation_is_a_table_that_scrolls() {
    let mut app = app("water_class", Lang::En, GlyphSet::Unicode);
    command(&mut app, "step 95");
    let small = (80, 24);
    let first = text(&mut app, small);
    // What the two runs did, not words about them.
    assert!(first.contains("[I love easy courses]"), "{first}");
    assert!(first.contains("1×1 (0 hidden), 2×2 (1"), "{first}");
    assert!(!first.contains("of 30 parameters"), "{first}");
    press(&mut app, "tab down down down");
    let below = text(&mut app, small);
    assert!(below.contains("of 30 parameters"), "{below}");
    assert!(!below.contains("[I love easy courses]"), "{below}");
    // Down at the end does not count.
    press(&mut app, "down down down down up up up");
    assert_eq!(text(&mut app, small), first);
    press(&mut app, "end");
    assert_eq!(text(&mut app, small), below);
    command(&mut app, "step 95");
    assert_eq!(text(&mut app, small), first, "arriving is at the top");
}

#[test]
fn stages_of_other_scenarios() {
    let mut app = app("encoder_decoder", Lang::En, GlyphSet::Unicode);
    command(&mut app, "view stages");
    let shown = text(&mut app, SIZES[2]);
    assert!(shown.contains("computed once for 5 calls"), "{shown}");
    let mut app = self::app("bert_block", Lang::En, GlyphSet::Unicode);
    command(&mut app, "view stages");
    let shown = text(&mut app, SIZES[0]);
    assert!(shown.contains("does not have both"), "{shown}");
}
