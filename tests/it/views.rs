//! Screens that are no step: tables of words, two runs side by side, training.
#![cfg(feature = "tui")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::water_class::golden;

use crate::common::front;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tui_transformer::app::action::Action;
use tui_transformer::app::app::App;
use tui_transformer::app::input::Input;
use tui_transformer::app::key::KeySeq;
use tui_transformer::app::settings::GlyphSet;
use tui_transformer::app::settings::Settings;
use tui_transformer::app::view::View;
use tui_transformer::app::views::step::facts;
use tui_transformer::app::views::{cache, teacher};
use tui_transformer::scenario;
use tui_transformer::session;
use tui_transformer::text::Lang;
use tui_transformer::trace::Rounding;
use tui_transformer::tui::run::{draw, look};
use tui_transformer::tui::snapshot;
use tui_transformer::tui::theme::{Depth, Environment};

const COLOURS: Environment = Environment { no_color: false, detected: Depth::True };
const SIZES: [(u16, u16); 3] = [(80, 24), (120, 36), (200, 60)];

fn app(name: &str, lang: Lang, glyphs: GlyphSet) -> App {
    let name = Path::new(name);
    let loaded = scenario::load(name).unwrap();
    let session = session::open(loaded.scenario, None, session::Options::default()).unwrap();
    let settings = Settings { lang, glyphs, ..Settings::default() };
    App::new(Arc::new(session), None, settings)
}

fn command(app: &mut App, line: &str) {
    app.act(Action::parse(line).unwrap());
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
    press(&mut app, "tab down down down down down down down down down down down down");
    let below = text(&mut app, small);
    assert!(below.contains("of 30 parameters"), "{below}");
    assert!(!below.contains("[I love easy courses]"), "{below}");
    // Down at the end does not count.
    press(&mut app, "down down down down up up up up up up up up up up up up");
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

/// The losses that float64 autograd found in a run of plain SGD.
fn listed() -> Vec<(usize, f64)> {
    let golden = golden("gradients.json");
    let listed = &golden["training_runs"]["sgd lr=0.1"]["loss_before_update"];
    let all = listed.as_object().expect("losses by update");
    all.iter().map(|(u, loss)| (u.parse().unwrap(), loss.as_f64().unwrap())).collect()
}

#[test]
fn training_makes_the_updates_that_autograd_makes_and_any_of_them_opens() {
    let mut app = app("water_class", Lang::En, GlyphSet::Unicode);
    command(&mut app, "step 40");
    command(&mut app, "train 50");
    assert_eq!(app.ui.view, View::Training);
    let t = &app.views.training;
    assert_eq!((t.made(), t.at, t.is_busy()), (50, 50, false));
    let mut compared = 0;
    for (update, loss) in listed().into_iter().filter(|l| l.0 < 50) {
        let ours = t.losses[update];
        assert!((ours / loss - 1.0).abs() < 1e-9, "{update}: {ours} {loss}");
        compared += 1;
    }
    assert!(compared >= 5);
    let losses = t.losses.clone();

    // Any point can be looked at; the pictures are those of the model there.
    press(&mut app, "left left pageup left");
    let t = &app.views.training;
    let probe = t.probe().expect("a glance");
    assert_eq!((t.at, probe.look.update), (37, 37));
    assert_eq!(probe.look.loss.to_bits(), losses[37].to_bits());
    let shown = text(&mut app, SIZES[1]);
    assert!(shown.contains("after 37 of 50 updates"), "{shown}");
    assert!(shown.contains("1/10 encoder.0.self_attn.weights head=0"), "{shown}");
    press(&mut app, "down");
    assert!(text(&mut app, SIZES[1]).contains("2/10 encoder.0.self_attn.weights head=1"));

    // Enter: the steps of the update, over the parameters there.
    press(&mut app, "enter");
    assert_eq!((app.ui.view, app.nav.update_opened()), (View::Step, Some(37)));
    let d = &app.nav;
    let run = d.run.expect("a run");
    assert_eq!(d.session.runs[run].name, "update");
    let trace = d.session.trace(run).unwrap();
    let loss = trace.get(d.session.runs[run].outputs.loss.unwrap()).unwrap();
    assert_eq!(loss.bits(0), losses[37].to_bits());
    assert!(text(&mut app, SIZES[1]).contains("update 38"));
    press(&mut app, ". . .");
    press(&mut app, "backspace");
    assert_eq!((app.ui.view, app.nav.update_opened()), (View::Training, None));
    assert_eq!(app.views.training.at, 37);
    press(&mut app, "esc");
    let label = app.nav.step().map(tui_transformer::walkthrough::Step::label);
    assert_eq!((app.ui.view, label.as_deref()), (View::Step, Some("40")));

    // Forward again: the opened update is still there.
    press(&mut app, "ctrl-n");
    assert_eq!(app.nav.update_opened(), Some(37));
    command(&mut app, "update");
    assert_eq!(app.nav.update_opened(), None);
    // And by number, further than was trained.
    command(&mut app, "update 53");
    assert_eq!((app.nav.update_opened(), app.views.training.made()), (Some(52), 52));
}

#[test]
fn training_goes_on_while_one_looks_and_stops_on_escape() {
    let mut app = app("water_class", Lang::En, GlyphSet::Unicode);
    app.ui.interactive = true;
    assert_eq!(app.interval(), None);
    command(&mut app, "train 1000000");
    let wait = |app: &mut App, what: &dyn Fn(&App) -> bool| {
        let until = Instant::now() + Duration::from_mins(5);
        while !what(app) {
            assert!(Instant::now() < until, "nothing comes");
            assert!(app.interval().is_some(), "nobody would look for news");
            std::thread::sleep(Duration::from_millis(5));
            app.input(&Input::Tick);
            frame(app, SIZES[0]);
        }
    };
    wait(&mut app, &|a| a.views.training.made() > 3);
    // The newest is followed until one goes elsewhere.
    assert_eq!(app.views.training.at, app.views.training.made());
    press(&mut app, "home");
    wait(&mut app, &|a| a.views.training.made() > 6);
    assert_eq!(app.views.training.at, 0);
    press(&mut app, "esc");
    assert_eq!(app.ui.view, View::Training, "Esc stops first");
    wait(&mut app, &|a| !a.views.training.is_busy());
    let made = app.views.training.made();
    assert!((7..1_000_000).contains(&made));
    assert_eq!(app.interval(), None, "nothing to draw when all is done");
    // It goes on from there.
    app.ui.interactive = false;
    command(&mut app, "train 2");
    assert_eq!(app.views.training.made(), made + 2);
    command(&mut app, "train reset");
    assert_eq!(app.views.training.made(), 0);
}

#[test]
fn what_cannot_be_trained_says_so() {
    let mut app = app("bert_block", Lang::En, GlyphSet::Unicode);
    command(&mut app, "view training");
    let shown = text(&mut app, SIZES[0]);
    assert!(shown.contains("needs `labels`"), "{shown}");
    command(&mut app, "train 3");
    assert_eq!(app.views.training.made(), 0);
}

#[test]
fn training_screens() {
    for (lang, glyphs) in [(Lang::En, GlyphSet::Unicode), (Lang::Zh, GlyphSet::CjkSafe)] {
        let mut app = app("train_copy", lang, glyphs);
        command(&mut app, "train 12");
        press(&mut app, "left left");
        {
            let size = SIZES[SIZES.len() - 2];
            let name = format!("training_{lang:?}_{}x{}", size.0, size.1).to_lowercase();
            insta::assert_snapshot!(name, snapshot::with_styles(&frame(&mut app, size)));
        }
    }
}

/// Every picture alone and all together, at every size: nothing panics, and nothing is written outside.
#[test]
fn training_fits_everywhere() {
    let mut app = app("encoder_decoder", Lang::Zh, GlyphSet::Unicode);
    command(&mut app, "train 3");
    for _ in 0..5 {
        press(&mut app, "t");
        for width in (0..=200).step_by(7) {
            for height in (0..=60).step_by(3) {
                frame(&mut app, (width, height));
            }
        }
    }
}

#[test]
fn training_beside_inference_is_the_same_row_by_row() {
    let mut app = app("water_class", Lang::En, GlyphSet::Unicode);
    command(&mut app, "step 69");
    command(&mut app, "side-by-side training inference");
    let side = app.views.side.side(&app.nav).unwrap().unwrap();
    assert_eq!((app.ui.view, side.differing), (View::Side, 0));
    assert_eq!(side.pairs[side.at].path, "decoder.1.self_attn.weights");
    let shown = text(&mut app, SIZES[0]);
    assert!(shown.contains("inference, call 3 of 3"), "{shown}");
    assert!(shown.contains("all 18 cells are the same"), "{shown}");
    // Another call is on the right, at the same path.
    command(&mut app, "next-table");
    let shown = text(&mut app, SIZES[0]);
    assert!(shown.contains("inference, call 1 of 3"), "{shown}");
    assert!(shown.contains("all 2 cells are the same"), "{shown}");
    command(&mut app, "prev-table");
    // Step by step through the paths of both.
    press(&mut app, ".");
    let side = app.views.side.side(&app.nav).unwrap().unwrap();
    assert_eq!(side.pairs[side.at].path, "decoder.1.self_attn.context");
    press(&mut app, "]d");
    let said = app.ui.messages.current().unwrap().text.to_string();
    assert_eq!(said, "no later path differs");
}

#[test]
fn differences_are_marked_counted_and_jumped_to() {
    let mut app = app("water_class", Lang::En, GlyphSet::Unicode);
    command(&mut app, "step 1");
    let reported = front::run(&mut app, &Action::parse("side-by-side exact rounded 2").unwrap());
    // Counted here by hand, from the traces themselves.
    let session = Arc::clone(&app.nav.session);
    let (exact, rounded) = (session.trace(0).unwrap(), session.rounded(0, Rounding::Decimals(2)).unwrap());
    let far = |id| {
        let (a, b) = (exact.value(id), rounded.value(id));
        (0..a.shape().len()).filter(|i| a.bits(*i) != b.bits(*i)).collect::<Vec<_>>()
    };
    let nodes = exact.program().nodes().filter(|(_, n)| !n.inline);
    let differing: Vec<_> = nodes.filter(|(id, _)| !far(*id).is_empty()).collect();
    assert_eq!(reported.answers[0].rows.len(), differing.len());
    let side = app.views.side.side(&app.nav).unwrap().unwrap();
    assert_eq!(side.differing, differing.len());
    for (id, node) in &differing {
        command(&mut app, "next-diff");
        let side = app.views.side.side(&app.nav).unwrap().unwrap();
        let pair = &side.pairs[side.at];
        assert_eq!(pair.path, *node.path);
        let cells = far(*id);
        assert_eq!(pair.differing, cells.len());
        // The cursor is at the first of them, and the keys of terms go from one to the next.
        for cell in &cells {
            let side = app.views.side.side(&app.nav).unwrap().unwrap();
            assert_eq!(side.pair(&session).unwrap().cell.left, *cell);
            press(&mut app, "=");
        }
    }
    command(&mut app, "prev-diff");
    let side = app.views.side.side(&app.nav).unwrap().unwrap();
    let before = &differing[differing.len() - 2].1.path;
    assert_eq!(side.pairs[side.at].path, **before);
    // Enter: where the steps show the left side.
    command(&mut app, "go A1[2,1]");
    command(&mut app, "side-by-side head 0 head 1");
    press(&mut app, "enter");
    assert_eq!(app.ui.view, View::Step);
    let name = app.nav.view().unwrap().cell_name(app.nav.index());
    assert_eq!(name, "A1[0][0]", "the first cell that differs");
}

#[test]
fn other_sides() {
    let mut app = app("encoder_decoder", Lang::En, GlyphSet::Unicode);
    let go = |app: &mut App, line: &str| -> Result<(usize, usize), String> {
        let reported = front::run(app, &Action::parse(line).unwrap());
        if let Some(message) = reported.messages.first() {
            return Err(message.text.to_string());
        }
        let side = app.views.side.side(&app.nav).unwrap().unwrap();
        Ok((side.differing, side.pairs.len()))
    };
    // The cache changes no bit.
    let (differing, paths) = go(&mut app, "side-by-side cached uncached").unwrap();
    assert!(differing == 0 && paths > 500, "{differing} of {paths}");
    let (differing, paths) = go(&mut app, "side-by-side layer 0 layer 1").unwrap();
    assert!(differing > 0 && paths > 10, "{differing} of {paths}");
    let (differing, paths) = go(&mut app, "side-by-side training backward").unwrap();
    assert!(differing == 0 && paths > 100, "{differing} of {paths}");
    for wrong in ["side-by-side head 0 head 9", "side-by-side layer 0 layer 9", "side-by-side training nobody"] {
        assert!(go(&mut app, wrong).is_err(), "{wrong}");
    }
    let mut app = self::app("bert_block", Lang::En, GlyphSet::Unicode);
    assert!(go(&mut app, "side-by-side training inference").is_err());
    // The usual two of a scenario without both.
    command(&mut app, "view side");
    let shown = text(&mut app, SIZES[1]);
    assert!(shown.contains("rounded to 4"), "{shown}");
}

#[test]
fn side_by_side_screens() {
    for (lang, glyphs) in [(Lang::En, GlyphSet::Unicode), (Lang::Zh, GlyphSet::CjkSafe)] {
        let mut app = app("water_class", lang, glyphs);
        command(&mut app, "step 69");
        command(&mut app, "side-by-side exact rounded 2");
        {
            let size = SIZES[SIZES.len() - 2];
            let name = format!("side_{lang:?}_{}x{}", size.0, size.1).to_lowercase();
            insta::assert_snapshot!(name, snapshot::with_styles(&frame(&mut app, size)));
        }
    }
}

#[test]
fn side_by_side_fits_everywhere() {
    let mut app = app("encoder_decoder", Lang::Zh, GlyphSet::CjkSafe);
    command(&mut app, "side-by-side training inference");
    for _ in 0..12 {
        command(&mut app, "next-phase");
        press(&mut app, "right down ] ]");
        for width in (0..=200).step_by(9) {
            for height in (0..=60).step_by(4) {
                frame(&mut app, (width, height));
            }
        }
    }
}

#[test]
fn teacher_forcing_as_a_table() {
    let mut app = app("water_class", Lang::En, GlyphSet::Unicode);
    command(&mut app, "go Logits[2,0]");
    command(&mut app, "view teacher");
    let shown = text(&mut app, SIZES[0]);
    assert!(shown.contains("Labels are not shifted"), "{shown}");
    let row = shown.lines().find(|l| l.contains("I love easy  ")).unwrap();
    // The probability is that of the hand calculation.
    for word in ["2", "easy", "水 0.3845"] {
        assert!(row.contains(word), "{word}: {row}");
    }
    let Some(run) = teacher::State::run(&app.nav) else {
        panic!("a table");
    };
    assert_eq!(teacher::row(&app.nav, run), Some(2));
    let mut app = self::app("encoder_decoder", Lang::En, GlyphSet::Unicode);
    command(&mut app, "view teacher");
    let shown = text(&mut app, SIZES[2]);
    assert!(shown.contains("as it should be"), "{shown}");
    assert_eq!(shown.matches("does not count").count(), 4, "{shown}");
}

#[test]
fn the_cache_grows_by_one_row_a_call() {
    let mut app = app("encoder_decoder", Lang::En, GlyphSet::Unicode);
    command(&mut app, "run greedy");
    command(&mut app, "go gen.3.decoder.1.self_attn.q");
    command(&mut app, "view cache");
    let run = cache::State::run(&app.nav).unwrap();
    assert_eq!(cache::row(&app.nav, run), Some(3));
    let made = app.views.cache.table(&app.nav, run, Lang::En).unwrap();
    for (call, row) in made.table.rows.iter().enumerate() {
        assert!(row[1].ends_with(&format!("({call})")), "{row:?}");
        assert!(row[2].ends_with("(1)"), "{row:?}");
        // Two layers, keys and values of width 16, in f64: of the cross-attention for five source tokens, of the
        // self-attention for each token so far.
        let bytes = 2 * 2 * 16 * 8 * (5 + call + 1);
        assert_eq!(row[3], bytes.to_string());
        assert_eq!(row[7], "the same");
    }
    assert_eq!(made.table.rows.len(), 5);
    let [(_, with), (_, without)] = &made.lines[..] else {
        panic!("two lines");
    };
    assert_eq!(with[0], without[0], "nothing is saved at first");
    assert!(with.windows(2).all(|w| w[1] > w[0]) && with[4] < without[4]);
    let shown = text(&mut app, SIZES[1]);
    assert!(shown.contains("─ FLOPs with cache"), "{shown}");
}

#[test]
fn ties_and_what_comes_after_the_end_are_told() {
    // All logits are 0: every word is as probable as the first, which is the end token.
    let source = include_str!("../../scenarios/train_copy.ron")
        .replace("with: Xavier", "with: Constant(0.0)")
        .replace("with: Normal(std: 0.5)", "with: Constant(0.0)");
    let file = tempfile::NamedTempFile::with_suffix(".ron").unwrap();
    std::fs::write(file.path(), source).unwrap();
    let mut app = app(file.path().to_str().unwrap(), Lang::En, GlyphSet::Unicode);
    command(&mut app, "run copy");
    let facts = |app: &mut App, place: &str| {
        command(app, &format!("go {place}"));
        let facts = facts(&app.nav, &app.edits, tui_transformer::text::NumberFormat::default());
        facts.lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let tie = facts(&mut app, "gen.0.next.id");
    assert!(tie.contains("a tie: 7 share"), "{tie}");
    assert!(tie.contains("call 1 chose the end token"), "{tie}");
    assert!(!facts(&mut app, "gen.0.output.logits").contains("end token"));
    assert!(facts(&mut app, "gen.2.output.logits").contains("call 1 chose the end token"));
}

#[test]
fn word_table_screens() {
    for (lang, glyphs) in [(Lang::En, GlyphSet::Unicode), (Lang::Zh, GlyphSet::CjkSafe)] {
        for (view, step) in [("stages", 1), ("teacher", 70), ("cache", 94)] {
            let mut app = app("water_class", lang, glyphs);
            command(&mut app, &format!("step {step}"));
            command(&mut app, &format!("view {view}"));
            for size in [SIZES[SIZES.len() - 2]] {
                let name = format!("{view}_{lang:?}_{}x{}", size.0, size.1).to_lowercase();
                insta::assert_snapshot!(name, snapshot::with_styles(&frame(&mut app, size)));
            }
        }
    }
}

#[test]
fn word_tables_fit_everywhere() {
    for name in ["water_class", "encoder_decoder", "bert_block"] {
        let mut app = app(name, Lang::Zh, GlyphSet::Ascii);
        for view in ["stages", "teacher", "cache"] {
            command(&mut app, &format!("view {view}"));
            for width in (0..=200).step_by(7) {
                for height in (0..=60).step_by(3) {
                    frame(&mut app, (width, height));
                    press(&mut app, "down");
                }
            }
        }
    }
}

#[test]
fn an_edited_model_is_trained_anew() {
    let mut app = app("water_class", Lang::En, GlyphSet::Unicode);
    command(&mut app, "train 3");
    let before = app.views.training.losses.clone();
    front::run(&mut app, &Action::parse("edit output.weight[0,0] = 2.5").unwrap());
    command(&mut app, "train 2");
    let t = &app.views.training;
    assert_eq!(t.made(), 2);
    let session = &app.nav.session;
    let run = session.training_run().unwrap();
    let loss = session.runs[run].outputs.loss.unwrap();
    let edited = session.trace(run).unwrap().value(loss);
    assert_eq!(t.losses[0].to_bits(), edited.bits(0));
    assert_ne!(t.losses[0].to_bits(), before[0].to_bits());
}

#[test]
fn large_operands_of_a_product_are_shown_around_what_is_read() {
    let mut app = app("bert_block", Lang::En, GlyphSet::Unicode);
    for (step, size, words) in [
        ("step 15", (120, 36), ["LN2 7×768", "w1.weightᵀ 768×3072"]),
        ("step 8", (200, 60), ["LN1 7×768", "k.weightᵀ 768×768"]),
    ] {
        command(&mut app, step);
        let seen = text(&mut app, size);
        for word in words {
            assert!(seen.contains(word), "{word}:\n{seen}");
        }
    }
}

#[test]
fn facts_are_of_the_plane_that_is_shown_and_hidden_scores_are_masked() {
    let mut app = app("modern_decoder", Lang::En, GlyphSet::Unicode);
    command(&mut app, "step 12");
    let seen = text(&mut app, (160, 90));
    assert!(seen.contains("infinite 0 · masked"), "{seen}");
    assert!(!seen.contains("masked 0"), "{seen}");
    assert!(seen.contains("slices: min"), "{seen}");
}
