//! `compare` in the debugger, without its screen (`play`) and on it: the same names, the same places.
#![cfg(feature = "tui")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::common::front;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::Value as Json;
use tui_transformer::app::action::Action;
use tui_transformer::app::app::App;
use tui_transformer::app::settings::Settings;
use tui_transformer::app::view::View;
use tui_transformer::debug::compare::{Error, State};
use tui_transformer::program::NodeId;
use tui_transformer::session::{self, Session};
use tui_transformer::text::Lang;
use tui_transformer::tui::run::{draw, look};
use tui_transformer::tui::theme::{Depth, Environment};

const CASE: &str = "tests/data/reference/encoder_pre_ln_gelu_bias";

/// The scenario of a reference with one setting changed, in a folder of its own.
fn changed(folder: &Path, from: &str, to: &str) -> PathBuf {
    let beside = std::path::absolute(format!("{CASE}.safetensors")).expect("a path");
    let text = std::fs::read_to_string(format!("{CASE}.ron")).expect("readable");
    assert!(text.contains(from));
    let text = text.replace(from, to).replace("encoder_pre_ln_gelu_bias.safetensors", beside.to_str().expect("UTF-8"));
    let path = folder.join("scenario.ron");
    std::fs::write(&path, text).expect("writable");
    path
}

/// What `play --json` says of each command.
fn play(scenario: &Path, commands: &[&str]) -> Vec<Json> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tui-transformer"));
    command.arg("play").arg(scenario).arg("--json");
    for c in commands {
        command.args(["-e", c]);
    }
    let out = command.env("LC_ALL", "C").output().expect("runs");
    let reported = String::from_utf8_lossy(&out.stdout);
    reported.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

fn message(reported: &Json) -> &str {
    reported["messages"][0]["text"].as_str().expect("a message")
}

#[test]
fn a_script_goes_from_difference_to_difference() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = changed(folder.path(), "activation: Gelu,", "activation: GeluTanh,");
    let compare = format!("compare {CASE}.safetensors");
    let commands = [&compare, "next-diff", "next-diff", "next-diff", "prev-diff", "compare", "compare none.npz"];
    let reported = play(&scenario, &commands);
    assert_eq!(reported.len(), commands.len());
    let rows = reported[0]["answers"][0]["rows"].as_array().expect("rows");
    let text = |i: usize| rows[i]["text"].as_str().expect("a text");
    assert!(text(0).starts_with("first difference: step") && text(0).ends_with("encoder.0.ffn.act"));
    assert!(text(1).starts_with("last match: step") && text(1).ends_with("encoder.0.ffn.hidden"));
    let command = rows[0]["command"].as_str().expect("a command");
    assert_eq!(command, "go encoder.0.ffn.act");
    // One difference a layer, each with the worst cell and where to find it.
    let layers = rows.iter().filter(|r| r["level"] == "warning").count() - 1;
    let worst = rows.iter().find(|r| {
        let command = r["command"].as_str().unwrap_or_default();
        command.starts_with("go encoder.0.ffn.act[")
    });
    let worst = worst.expect("the worst cell")["text"].as_str();
    assert!(layers >= 1 && worst.is_some_and(|t| t.contains("encoder.0.ffn.act")));
    // The error along the run, as `compare` of the command line draws it.
    let growth = rows.last().expect("rows")["text"].as_str().expect("a text");
    let chart = growth.split('|').nth(1).expect("a chart");
    let printed = Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .args(["compare", scenario.to_str().expect("UTF-8"), &format!("{CASE}.safetensors")])
        .output()
        .expect("runs");
    assert!(String::from_utf8_lossy(&printed.stdout).contains(growth), "{growth}");
    let level = |c: char| " .:-=+*#%@".find(c).expect("a level");
    let largest = chart.chars().map(level).max().expect("columns");
    assert!(level(chart.chars().next().expect("columns")) < largest, "it grows: {growth}");
    assert!(message(&reported[1]).starts_with(&format!("difference 1 of {layers}: ")));
    assert!(reported[1]["cell"].is_string(), "it is there now");
    let back = reported.iter().find(|t| t["command"] == "prev-diff").expect("reported");
    if layers == 1 {
        assert_eq!(message(&reported[2]), "no difference after this one");
        assert_eq!(message(back), "no difference before this one");
    }
    assert_eq!(reported[5]["answers"], reported[0]["answers"], "the last comparison again");
    assert!(message(&reported[6]).contains("none.npz"));
}

#[test]
fn a_correct_run_and_another_run_of_the_scenario() {
    let reported =
        play(Path::new(&format!("{CASE}.ron")), &[&format!("compare {CASE}.safetensors cumulative"), "next-diff"]);
    let rows = reported[0]["answers"][0]["rows"].as_array().expect("rows");
    assert_eq!((&rows[0]["text"], &rows[0]["level"]), (&"no difference".into(), &"done".into()));
    assert_eq!(message(&reported[1]), "no difference");
    let reported = play(Path::new("encoder_char"), &["next-diff", "compare no_padding_mask", "next-diff"]);
    assert!(message(&reported[0]).starts_with("nothing was compared yet"));
    let rows = reported[1]["answers"][0]["rows"].as_array().expect("rows");
    assert!(rows[0]["text"].as_str().is_some_and(|t| t.ends_with("encoder.0.self_attn.mask")));
    assert_eq!(rows[1]["text"], "last match: none is needed, this is given and not computed");
    assert!(reported[2]["cell"].as_str().is_some_and(|c| c.starts_with("mask[1][0][5] = 1")));
}

fn opened(path: &Path) -> Arc<Session> {
    let loaded = tui_transformer::scenario::load(path).expect("a scenario");
    let options = session::Options::default();
    Arc::new(session::open(loaded.scenario, Some(path), options).expect("opens"))
}

fn act(app: &mut App, line: &str) {
    front::run(app, &Action::parse(line).expect("a command"));
}

fn screen(app: &App) -> Vec<String> {
    let environment = Environment { no_color: true, detected: Depth::True };
    let area = Rect::new(0, 0, 120, 36);
    let mut buffer = Buffer::empty(area);
    draw(app, area, &mut buffer, &look(&app.ui.settings, environment));
    (0..area.height).map(|y| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect()).collect()
}

#[test]
fn the_screen_shows_both_columns_and_marks_what_differs() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = changed(folder.path(), "activation: Gelu,", "activation: GeluTanh,");
    let mut app = App::new(opened(&scenario), None, Settings::default());
    // Both columns are there at once, and nothing lies over them.
    act(&mut app, &format!("compare {CASE}.safetensors"));
    assert_eq!((app.ui.view, app.ui.overlays.len()), (View::Compare, 0));
    act(&mut app, "next-diff");
    let lines = screen(&app);
    let screen = lines.join("\n");
    assert!(screen.contains("this run and"), "{screen}");
    let headings = lines.iter().any(|l| {
        let own = l.find("this run's own");
        own.is_some_and(|at| l[at..].contains("reference"))
    });
    assert!(headings, "{screen}");
    assert!(screen.contains("computed from the reference's operands it differs"), "{screen}");
    // The reference's number of the worst cell is in the second column.
    let program = &app.nav.session.runs[0].program;
    let node = program.find("encoder.0.ffn.act").expect("a node");
    let standing = app.views.compare.standing(&app.nav, 0, node).expect("compared");
    let against = standing.checked.and_then(|c| c.against.as_ref());
    let cell = &against.expect("compared").cells[0];
    assert_eq!(standing.theirs.expect("it fits")[cell.flat], Some(cell.theirs));
    let at = lines.iter().find(|l| l.contains('≠')).unwrap_or_else(|| panic!("{screen}"));
    assert!(at.split('≠').count() == 2);
}

#[test]
fn a_node_that_the_reference_lacks_has_one_column() {
    let mut app = App::new(opened(Path::new(&format!("{CASE}.ron"))), None, Settings::default());
    act(&mut app, &format!("compare {CASE}.safetensors"));
    let program = &app.nav.session.runs[0].program;
    let lacks = |id: NodeId| {
        let standing = app.views.compare.standing(&app.nav, 0, id).expect("it was compared");
        standing.checked.is_some_and(|c| c.against.is_none())
    };
    let lacking = program.nodes().find(|(id, _)| lacks(*id)).expect("one");
    let go = format!("go {}", lacking.1.path);
    act(&mut app, &go);
    let screen = screen(&app).join("\n");
    assert!(screen.contains("not in the reference"), "{screen}");
    assert!(!screen.contains('≠') && !screen.contains("rounded"), "{screen}");
}

/// What was edited in the debugger is compared as it is now.
#[test]
fn an_edited_step_differs_from_the_reference() {
    let reported =
        play(Path::new(&format!("{CASE}.ron")), &["ablate layer encoder.0", &format!("compare {CASE}.safetensors")]);
    let first = &reported[1]["answers"][0]["rows"][0];
    let text = first["text"].as_str().expect("a text");
    assert!(text.contains("encoder.0."), "{text}");
    assert_eq!(first["level"], "warning");
}

/// The flags of the command line, in the debugger.
#[test]
fn limits_and_tables_of_names_are_taken_in_the_debugger() {
    let folder = tempfile::tempdir().expect("a folder");
    let map = folder.path().join("names.ron");
    std::fs::write(&map, r#"{"activations.{*}": "nothing.{*}"}"#).expect("writable");
    let compare = format!("compare {CASE}.safetensors");
    let reported = play(
        Path::new(&format!("{CASE}.ron")),
        &[
            &format!("{compare} --rtol 1e-17 --mode isolated"),
            &format!("{compare} --policy torch"),
            &format!("{compare} --map {}", map.display()),
        ],
    );
    let good = |i: usize| reported[i]["answers"][0]["rows"][0]["level"] == "done";
    assert!(!good(0) && good(1));
    assert!(message(&reported[2]).contains("which this run does not have"));
    let line = "compare a.npz --tol 1";
    let slip = Action::parse(line).expect_err("no such flag");
    assert!(slip.message(line, Lang::En).render(Lang::En).contains("--tol is no flag"));
}

/// The chart of the error has a column for each compared node, as high as its decade; that of the tensor looked at is
/// pointed out.
#[test]
fn the_error_along_the_run_is_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = changed(folder.path(), "activation: Gelu,", "activation: GeluTanh,");
    let mut app = App::new(opened(&scenario), None, Settings::default());
    app.ui.interactive = true;
    act(&mut app, &format!("compare {CASE}.safetensors cumulative"));
    let columns = |app: &App| {
        let view = app.nav.view().expect("a tensor").clone();
        app.views.compare.growth(&app.nav, view.run, view.node, 20).expect("a chart")
    };
    let (all, here) = columns(&app);
    assert_eq!(all.len(), 20);
    // It starts with what agrees, and rises where the first difference is.
    let first = all.iter().position(|e| e.state == State::Diverged).expect("a difference");
    assert_eq!(first, here);
    let before = all[..first].iter().map(Error::decades).fold(0.0, f64::max);
    assert!(first > 0 && all[first].decades() > before + 2.0, "{all:?}");
    let lines = screen(&app);
    let line = lines.iter().find(|l| l.contains("error along the run, 1e-9 to 1")).expect("a chart").trim_end();
    let drawn = line.split("to 1 ").nth(1).expect("columns");
    assert!(drawn.contains('▁') && drawn.contains('▇') || drawn.contains('▆'), "{drawn}");
    act(&mut app, "go encoder.0.norm1.out");
    assert!(columns(&app).1 < here);
}

/// A node that no step shows belongs to the step that shows what comes of it, and one is there.
#[test]
fn a_difference_between_steps_is_at_a_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = changed(folder.path(), "eps: 0.00001", "eps: 0.001");
    let mut app = App::new(opened(&scenario), None, Settings::default());
    // On the screen the comparison leads to the first difference.
    app.ui.interactive = true;
    let first = app.nav.step().map(|s| s.number.clone());
    act(&mut app, &format!("compare {CASE}.ron"));
    let step = app.nav.step().expect("a step");
    assert_ne!(Some(step.number.clone()), first);
    let differs = app.nav.view().expect("a view");
    let program = &app.nav.session.runs[0].program;
    let path = &program.node(differs.node).path;
    assert!(path.contains("norm1"), "{path}");
    let at = app.nav.steps.list();
    let here = at.iter().find(|s| s.number == step.number).expect("a step");
    let shown = |v: &tui_transformer::walkthrough::View| program.node(v.node).path.contains("norm1");
    assert!(here.views.iter().any(shown));
}
