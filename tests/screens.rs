//! The debugger's screens on the 95 steps of the hand calculation: every view at every size, keys, the why-chain.
#![cfg(feature = "tui")]

use std::path::Path;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tui_transformer::app::action::Action;
use tui_transformer::app::app::App;
use tui_transformer::app::args::{StepTarget, View};
use tui_transformer::app::config::GlyphSet;
use tui_transformer::app::effect::Effect;
use tui_transformer::app::input::Input;
use tui_transformer::app::key::{Key, KeySeq};
use tui_transformer::app::ui::Settings;
use tui_transformer::scenario;
use tui_transformer::session::{self, Session};
use tui_transformer::text::Lang;
use tui_transformer::tui::run::{Still, draw, look, still};
use tui_transformer::tui::theme::{Depth, Environment};

const COLOURS: Environment = Environment {
    no_color: false,
    detected: Depth::True,
};

const SIZES: [(u16, u16); 7] = [
    (0, 0),
    (1, 1),
    (10, 3),
    (24, 6),
    (80, 24),
    (120, 36),
    (200, 60),
];

fn session() -> Arc<Session> {
    let loaded = scenario::load(Path::new("water_class")).unwrap();
    Arc::new(session::open(loaded.scenario, None, session::Options::default()).unwrap())
}

fn app(lang: Lang, glyphs: GlyphSet) -> App {
    let settings = Settings {
        lang,
        glyphs,
        ..Settings::default()
    };
    App::new(session(), None, settings)
}

fn go(app: &mut App, step: u32) {
    let target = StepTarget::Number(vec![step]);
    app.act(Action::Step(target), &mut Vec::new());
}

fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let keys = keys.parse::<KeySeq>().unwrap().0;
    keys.into_iter()
        .flat_map(|key| app.input(&Input::Key(key)))
        .collect()
}

fn type_in(app: &mut App, text: &str) -> Vec<Effect> {
    text.chars()
        .flat_map(|c| app.input(&Input::Key(Key::char(c))))
        .collect()
}

fn label(app: &App) -> String {
    app.debugger.step().expect("a step").label()
}

fn cursor(app: &App) -> String {
    let view = app.debugger.view().expect("a view");
    view.cell_name(app.debugger.index())
}

/// Every step in every view at these sizes, in both languages and all glyph sets.
fn sweep(sizes: &[(u16, u16)]) {
    for lang in [Lang::En, Lang::Zh] {
        for glyphs in [GlyphSet::Unicode, GlyphSet::CjkSafe, GlyphSet::Ascii] {
            let mut app = app(lang, glyphs);
            let look = look(&app.ui.settings, COLOURS);
            for step in 1..=95 {
                go(&mut app, step);
                assert_eq!(label(&app), step.to_string());
                for view in View::ALL {
                    app.act(Action::View(view), &mut Vec::new());
                    for &(width, height) in sizes {
                        let area = Rect::new(0, 0, width, height);
                        let mut buf = Buffer::empty(area);
                        draw(&app, area, &mut buf, &look);
                        let drawn = buf.content.iter().any(|c| c.symbol() != " ");
                        let what = format!("step {step} {view:?} {width}x{height} {lang:?}");
                        assert_eq!(drawn, width > 0 && height > 0, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn small_screens_never_panic() {
    sweep(&SIZES[..4]);
}

#[test]
fn large_screens_never_panic() {
    sweep(&SIZES[4..]);
}

#[test]
fn the_steps_page_forward_and_back_and_show_where_one_is() {
    let mut app = app(Lang::En, GlyphSet::Unicode);
    press(&mut app, "ctrl-home");
    for step in 1..=95 {
        let text = still(&app, (80, 24), COLOURS, Still::Text);
        let first = text.lines().next().unwrap_or_default();
        assert_eq!(label(&app), step.to_string());
        assert!(first.contains(&format!("{step}/95")), "{first}");
        press(&mut app, ".");
    }
    assert_eq!(label(&app), "95");
    for step in (1..95).rev() {
        press(&mut app, ",");
        assert_eq!(label(&app), step.to_string());
    }
}

#[test]
fn enter_alone_leads_from_the_prediction_to_an_embedding() {
    let mut app = app(Lang::En, GlyphSet::Unicode);
    go(&mut app, 94);
    // From the prediction itself, not from what the step shows first.
    press(&mut app, ":");
    type_in(&mut app, "go predicted_id[0]");
    press(&mut app, "enter");
    assert_eq!(label(&app), "94");
    assert!(cursor(&app).starts_with("predicted_id"), "{}", cursor(&app));
    // Tensors outside the steps share short names between layers: a place is its cell.
    let place = |app: &App| (label(app), app.debugger.cell());
    let mut seen = vec![place(&app)];
    for _ in 0..200 {
        press(&mut app, "enter");
        let here = place(&app);
        if seen.last() == Some(&here) {
            break;
        }
        assert!(!seen.contains(&here), "goes round: {here:?} after {seen:?}");
        seen.push(here);
    }
    let (run, cell) = app.debugger.cell().expect("a cell");
    let path = app.debugger.session.runs[run]
        .program
        .node(cell.node)
        .path
        .to_string();
    assert!(path.contains("embed"), "ends at {path}: {seen:?}");
    for back in seen.iter().rev().skip(1) {
        press(&mut app, "backspace");
        assert_eq!(place(&app), *back);
    }
}

#[test]
fn keys_do_what_they_say() {
    let mut app = app(Lang::En, GlyphSet::Unicode);
    press(&mut app, ":");
    type_in(&mut app, "step 23");
    press(&mut app, "enter");
    assert_eq!(label(&app), "23");
    press(&mut app, ":");
    type_in(&mut app, "go A1[2,1]");
    press(&mut app, "enter");
    assert!(cursor(&app).starts_with("A1"), "{}", cursor(&app));
    assert_eq!(app.debugger.index(), [2, 1]);
    press(&mut app, "2");
    assert_eq!(app.ui.view, View::Heads);
    press(&mut app, "1 L");
    assert_eq!(app.ui.settings.lang, Lang::Zh);
    press(&mut app, "?");
    assert!(!app.ui.overlays.is_empty());
    press(&mut app, "esc e");
    assert!(!app.ui.overlays.is_empty());
    press(&mut app, "esc");
    assert!(app.ui.overlays.is_empty());
    let copied = press(&mut app, "y");
    assert!(matches!(copied[..], [Effect::Copy { .. }]), "{copied:?}");
    let quit = press(&mut app, "q");
    assert!(quit.contains(&Effect::Quit), "{quit:?}");
}

/// A step that each view has something to say about.
const SAMPLES: [(u32, View); 13] = [
    (1, View::Step),
    (23, View::Step),
    (32, View::Step),
    (40, View::Step),
    (56, View::Step),
    (89, View::Step),
    (95, View::Step),
    (23, View::Heads),
    (56, View::Layers),
    (94, View::Probs),
    (12, View::Positions),
    (42, View::Token),
    (42, View::Debug),
];

fn styled(app: &App, (width, height): (u16, u16)) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    draw(app, area, &mut buf, &look(&app.ui.settings, COLOURS));
    tui_transformer::tui::snapshot::with_styles(&buf)
}

/// Measured times are not the same twice: no snapshot.
#[test]
fn costs_show_shapes_and_arithmetic_as_far_as_there_is_room() {
    for lang in [Lang::En, Lang::Zh] {
        let mut app = app(lang, GlyphSet::Unicode);
        go(&mut app, 42);
        app.act(Action::View(View::Costs), &mut Vec::new());
        for size in &SIZES[4..7] {
            let text = still(&app, *size, COLOURS, Still::Text);
            for word in ["FLOPs", "matmul", "1×2×4×4", "128", "8480", "%"] {
                assert!(text.contains(word), "{word} at {size:?}:\n{text}");
            }
        }
    }
}

#[test]
fn screens_with_their_styles() {
    for (lang, glyphs) in [
        (Lang::En, GlyphSet::Unicode),
        (Lang::Zh, GlyphSet::CjkSafe),
        (Lang::En, GlyphSet::Ascii),
    ] {
        let mut app = app(lang, glyphs);
        for (step, view) in SAMPLES {
            go(&mut app, step);
            app.act(Action::View(view), &mut Vec::new());
            for (width, height) in &SIZES[4..7] {
                let name = format!("{step}_{view:?}_{lang:?}_{glyphs:?}_{width}x{height}");
                insta::assert_snapshot!(name.to_lowercase(), styled(&app, (*width, *height)));
            }
        }
    }
}
