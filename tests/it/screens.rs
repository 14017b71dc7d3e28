//! The debugger's screens on the 95 steps of the hand calculation: every view at every size, keys, the why-chain.
#![cfg(feature = "tui")]

use std::path::Path;
use std::sync::Arc;

use crate::common::front;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tui_transformer::app::action::Action;
use tui_transformer::app::app::App;
use tui_transformer::app::args::StepTarget;
use tui_transformer::app::effect::Effect;
use tui_transformer::app::input::Input;
use tui_transformer::app::key::{Key, KeySeq};
use tui_transformer::app::overlay::Overlay;
use tui_transformer::app::settings::GlyphSet;
use tui_transformer::app::settings::Settings;
use tui_transformer::app::view::View;
use tui_transformer::scenario;
use tui_transformer::session::{self, Session};
use tui_transformer::tensor::slice::Slice;
use tui_transformer::text::Lang;
use tui_transformer::tui::run::{Still, draw, look, still};
use tui_transformer::tui::theme::{Depth, Environment};
use tui_transformer::walkthrough::title_of;

const COLOURS: Environment = Environment { no_color: false, detected: Depth::True };

const SIZES: [(u16, u16); 7] = [(0, 0), (1, 1), (10, 3), (24, 6), (80, 24), (120, 36), (200, 60)];

fn session() -> Arc<Session> {
    let loaded = scenario::load(Path::new("water_class")).unwrap();
    Arc::new(session::open(loaded.scenario, None, session::Options::default()).unwrap())
}

fn app(lang: Lang, glyphs: GlyphSet) -> App {
    let settings = Settings { lang, glyphs, ..Settings::default() };
    App::new(session(), None, settings)
}

fn go(app: &mut App, step: u32) {
    let target = StepTarget::Number(vec![step]);
    app.act(Action::Step(target));
}

fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let keys = keys.parse::<KeySeq>().unwrap().0;
    keys.into_iter().flat_map(|key| app.input(&Input::Key(key))).collect()
}

fn type_in(app: &mut App, text: &str) -> Vec<Effect> {
    text.chars().flat_map(|c| app.input(&Input::Key(Key::char(c)))).collect()
}

fn label(app: &App) -> String {
    app.nav.step().expect("a step").label()
}

fn cursor(app: &App) -> String {
    let view = app.nav.view().expect("a view");
    view.cell_name(app.nav.index())
}

/// Every step in every view at these sizes; both languages and all glyph sets take turns.
fn sweep(sizes: &[(u16, u16)]) {
    for (i, lang) in [Lang::En, Lang::Zh].into_iter().enumerate() {
        for (j, glyphs) in [GlyphSet::Unicode, GlyphSet::CjkSafe, GlyphSet::Ascii].into_iter().enumerate() {
            let mut app = app(lang, glyphs);
            let look = look(&app.ui.settings, COLOURS);
            for step in (1 + (3 * i + j) as u32..=95).step_by(6) {
                go(&mut app, step);
                assert_eq!(label(&app), step.to_string());
                for &view in View::ALL {
                    app.act(Action::View(view));
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

/// What a key that a popup does not take is answered with can be read next to the popup, at every size.
#[test]
fn a_popup_does_not_cover_the_answer_to_a_key_that_it_does_not_take() {
    for lang in [Lang::En, Lang::Zh] {
        for size in [(80, 24), (120, 36), (200, 60)] {
            let mut app = app(lang, GlyphSet::Unicode);
            press(&mut app, "?");
            press(&mut app, "z");
            let said = app.ui.messages.current().expect("an answer").text.render(lang);
            let text = still(&app, size, COLOURS, Still::Text);
            assert!(text.contains(said.trim_end()), "{size:?}: {said}\n{text}");
        }
    }
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
    let place = |app: &App| (label(app), app.nav.cell());
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
    let (run, cell) = app.nav.cell().expect("a cell");
    let path = app.nav.session.runs[run].program.node(cell.node).path.to_string();
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
    assert_eq!(app.nav.index(), [2, 1]);
    // A digit alone is the key of a view, once no motion came after it.
    press(&mut app, "2");
    app.input(&Input::Tick);
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

#[test]
fn a_range_that_is_none_keeps_the_export_form() {
    let mut app = app(Lang::En, GlyphSet::default());
    press(&mut app, "e tab ctrl-u");
    type_in(&mut app, "999");
    assert_eq!(press(&mut app, "enter"), []);
    let Some(Overlay::Export(form)) = app.ui.overlays.last() else {
        panic!("no form");
    };
    assert_eq!((form.field, form.range.text()), (1, "999"));
    assert!(form.wrong.is_some());
}

#[test]
fn leaving_with_edits_asks_once() {
    let mut app = app(Lang::En, GlyphSet::default());
    app.ui.interactive = true;
    let reported = front::run(&mut app, &Action::parse("edit Q1[0,0] = 2").unwrap());
    assert_eq!(reported.messages, [], "an answer");
    assert_eq!(press(&mut app, "q"), [], "a question");
    assert_eq!(press(&mut app, "esc"), []);
    assert_eq!(press(&mut app, "q enter"), [Effect::Quit]);
    app.ui.overlays.clear();
    app.act(Action::parse("save").unwrap());
    assert_eq!(press(&mut app, "q"), [Effect::Quit], "saved");
    front::run(&mut app, &Action::parse("undo").unwrap());
    front::run(&mut app, &Action::parse("ablate encoder.0.self_attn.head 0").unwrap());
    let mut effects = Vec::new();
    effects.extend(app.act(Action::parse("q!").unwrap()));
    assert_eq!(effects, [Effect::Quit]);
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
        app.act(Action::View(View::Costs));
        for size in &SIZES[4..7] {
            let text = still(&app, *size, COLOURS, Still::Text);
            for word in ["FLOPs", "1×2×4×2 1×2×4×2", "1×2×4×4", "128", "8480", "%"] {
                assert!(text.contains(word), "{word} at {size:?}:\n{text}");
            }
        }
    }
}

/// The screens that a reviewer reads: each view once, in one of the languages and glyph sets. What must hold of every
/// size, language and glyph set are properties, in `pictures.rs`.
#[test]
fn screens_with_their_styles() {
    for (i, (step, view)) in SAMPLES.into_iter().enumerate() {
        let (lang, glyphs) = match i % 4 {
            1 => (Lang::Zh, GlyphSet::CjkSafe),
            3 => (Lang::Zh, GlyphSet::Unicode),
            _ => (Lang::En, GlyphSet::Unicode),
        };
        let mut app = app(lang, glyphs);
        go(&mut app, step);
        app.act(Action::View(view));
        let (width, height) = SIZES[4 + i % 3];
        let name = format!("{step}_{view:?}");
        insta::assert_snapshot!(name.to_lowercase(), styled(&app, (width, height)));
    }
}

fn text(app: &App, size: (u16, u16)) -> String {
    still(app, size, COLOURS, Still::Text)
}

#[test]
fn tables_of_the_formula_come_first_and_those_left_out_are_named() {
    let mut app = app(Lang::En, GlyphSet::Unicode);
    let mut seen = |step, size, words: &[&str]| {
        go(&mut app, step);
        let text = text(&app, size);
        for word in words {
            assert!(text.contains(word), "{word} in step {step}:\n{text}");
        }
    };
    // The first result with what it is computed from; the other head has no room, but a name.
    seen(57, (80, 24), &["exp 4×4", "sum 4×1", "A1 4×4", "more tables (+"]);
    seen(68, (80, 24), &["Q1 4×2", "K1ᵀ 2×4", "score1 4×4", "more tables (+"]);
    seen(23, (120, 36), &["Q1 4×2", "K1ᵀ 2×4", "score1 4×4 head 1/2"]);
    for size in [(80, 24), (80, 15)] {
        seen(94, size, &["P 1×8", "more tables (+"]);
    }
    seen(94, (80, 8), &["P 1×8"]);
    // In the reader's language.
    app.ui.settings.lang = Lang::Zh;
    assert!(text(&app, (80, 15)).contains("另有"));
}

#[test]
fn a_tensor_that_the_steps_formula_does_not_name_has_its_own() {
    let mut app = app(Lang::En, GlyphSet::Unicode);
    go(&mut app, 94);
    let formula = |app: &App| app.nav.formula();
    assert!(formula(&app).starts_with("Logits = "), "{}", formula(&app));
    app.act(Action::parse("go X_inf3[2,0]").unwrap());
    assert_eq!(cursor(&app), "X_inf3[2][0]");
    assert_eq!(formula(&app), "X_inf3 = target.lookup + target.positions");
}

#[test]
fn the_cursor_begins_at_the_prediction_and_crosses_from_table_to_table() {
    let mut app = app(Lang::En, GlyphSet::Unicode);
    go(&mut app, 94);
    assert_eq!(cursor(&app), "P[0][2]");
    assert!(text(&app, (120, 36)).contains("2 水"));
    app.ui.focus = tui_transformer::app::ui::Focus::Stage;
    assert!(text(&app, (80, 24)).contains(" table"));
    press(&mut app, "end right");
    assert_eq!(cursor(&app), "predicted_id[0]");
    press(&mut app, "left");
    assert_eq!(cursor(&app), "P[0][7]");
    for _ in 0..20 {
        press(&mut app, "right");
    }
    assert!(cursor(&app).starts_with("target_p["), "{}", cursor(&app));
}

#[test]
fn a_tokens_life_is_of_its_own_side_and_row() {
    let mut app = app(Lang::En, GlyphSet::Unicode);
    go(&mut app, 12);
    app.act(Action::View(View::Token));
    app.ui.settings.sidebar = false;
    let life = text(&app, (100, 70));
    assert!(life.contains("token 1: 我"), "{life}");
    assert!(life.contains("X_enc_in"), "{life}");
    for other in ["X_tgt", "X_dec_in", "   9 ", "  10 ", "  11 "] {
        assert!(!life.contains(other), "{other}:\n{life}");
    }
}

#[test]
fn each_stack_has_strips_of_its_own() {
    let mut app = app(Lang::En, GlyphSet::Unicode);
    go(&mut app, 56);
    app.act(Action::View(View::Layers));
    let layers = text(&app, (120, 36));
    for name in ["‖x‖", "target", "decoder.0.residual1", "▶", "layer 1, head 2"] {
        assert!(layers.contains(name), "{name}:\n{layers}");
    }
}

#[test]
fn views_say_their_names_and_whose_row_they_show() {
    let mut app = app(Lang::En, GlyphSet::Unicode);
    go(&mut app, 42);
    let titles = [
        (View::Heads, "─ Heads · "),
        (View::Layers, "─ Layers ─"),
        (View::Costs, "─ Shapes and cost · "),
        (View::Token, "─ A token's life · "),
        (View::Log, "─ Log ─"),
    ];
    for (view, title) in titles {
        app.act(Action::View(view));
        let shown = text(&app, (100, 30));
        assert!(shown.contains(title), "{title}:\n{shown}");
    }
    go(&mut app, 94);
    app.act(Action::View(View::Probs));
    let probs = text(&app, (100, 30));
    assert!(probs.contains("token easy"), "{probs}");
}

#[test]
fn the_footer_keeps_what_is_needed_most() {
    let mut app = app(Lang::En, GlyphSet::Unicode);
    let last = |app: &App| {
        let all = text(app, (80, 24));
        all.lines().last().unwrap_or_default().to_owned()
    };
    for word in ["step", "help", "quit"] {
        assert!(last(&app).contains(word), "{}", last(&app));
    }
    for keys in ["?", "!", "f2", "e"] {
        press(&mut app, keys);
        assert!(last(&app).contains("Esc close"), "{keys}: {}", last(&app));
        press(&mut app, "esc");
    }
}

#[test]
fn titles_of_plans_speak_the_readers_language() {
    let session = session();
    let program = &session.runs[0].program;
    let id = program.find("decoder.0.self_attn.out").expect("a node");
    let title = title_of(program, id, &Slice::all());
    let zh = title.render(Lang::Zh);
    assert!(zh.ends_with(" · 解码器第 1 层 · 自注意力"), "{zh}");
    let en = title.render(Lang::En);
    assert!(en.ends_with(" · decoder 1 · self_attn"), "{en}");
}

#[test]
fn colours_have_no_shades_over_them_and_titles_their_own_colour() {
    let mut app = app(Lang::En, GlyphSet::Unicode);
    go(&mut app, 23);
    app.ui.settings.theme = "light".to_owned();
    let area = Rect::new(0, 0, 120, 36);
    let mut buf = Buffer::empty(area);
    draw(&app, area, &mut buf, &look(&app.ui.settings, COLOURS));
    let shade = |c: &ratatui::buffer::Cell| "░▒▓█".contains(c.symbol());
    assert!(!buf.content.iter().any(shade));
    // The list has the focus: the frame of the tables does not.
    let letter = (37..100).find(|x| buf[(*x, 1)].symbol() == "E").expect("a title");
    assert_ne!(buf[(letter, 1)].fg, buf[(36, 1)].fg);
    // Without colours the shades tell.
    assert!(text(&app, (120, 36)).contains('█'));
}

#[test]
fn rounding_goes_on_in_the_background_where_somebody_watches() {
    let mut app = app(Lang::En, GlyphSet::Unicode);
    app.ui.interactive = true;
    press(&mut app, "r");
    if app.nav.numbers.rounding().is_some() {
        assert_eq!(app.nav.round(), None);
        assert!(app.interval().is_some());
        assert!(text(&app, (120, 36)).contains("computing"));
        press(&mut app, ".");
        assert_eq!(label(&app), "2");
    }
    let begun = std::time::Instant::now();
    while app.nav.round().is_none() {
        assert!(begun.elapsed().as_secs() < 60, "no end");
        app.input(&Input::Tick);
    }
    assert_eq!(app.nav.numbers.rounding(), None);
    press(&mut app, "r");
    assert_eq!(app.nav.round(), None);
}
