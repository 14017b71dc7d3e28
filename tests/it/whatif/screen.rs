//! The same edits as commands of the debugger: what they answer, what the screen marks, sessions saved and replayed.

use crate::common::front;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tui_transformer::app::action::Action;
use tui_transformer::app::answer::Answer;
use tui_transformer::app::app::App;
use tui_transformer::app::command;
use tui_transformer::app::effect::Effect;
use tui_transformer::app::input::Input;
use tui_transformer::app::key::KeySeq;
use tui_transformer::app::settings::Settings;
use tui_transformer::scenario::syntax;
use tui_transformer::session::{Options, open};
use tui_transformer::text::Lang;
use tui_transformer::tui::run::{draw, look};
use tui_transformer::tui::theme::{Depth, Environment};

use super::{opened, same, scenario, values};

fn app() -> App {
    App::new(opened(scenario("water_class")), None, Settings::default())
}

/// Runs commands; gives the last answer.
fn run(app: &mut App, lines: &[&str]) -> Option<Answer> {
    let mut last = None;
    for line in lines {
        let action = Action::parse(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        let reported = front::run(app, &action);
        for message in &reported.messages {
            let text = message.text.render(Lang::En);
            assert!(message.level != tui_transformer::app::messages::Level::Error, "{line}: {text}");
        }
        last = reported.answers.into_iter().next_back();
    }
    last
}

fn error(app: &mut App, line: &str) -> String {
    let reported = front::run(app, &Action::parse(line).expect("a command"));
    // Nothing but the line and where it is wrong.
    assert!(reported.answers.iter().all(|a| a.title.key == "expr.here"), "{line}");
    reported.messages[0].text.render(Lang::En)
}

fn written(effects: Vec<Effect>) -> (String, String) {
    let Some(Effect::Write { path, bytes, overwrite: false }) = effects.into_iter().next() else {
        panic!("nothing is written");
    };
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    (path.display().to_string(), text)
}

fn shown(app: &App) -> String {
    let env = Environment { no_color: false, detected: Depth::True };
    let area = Rect::new(0, 0, 140, 40);
    let mut buf = Buffer::empty(area);
    draw(app, area, &mut buf, &look(&app.ui.settings, env));
    let row = |y| (0..area.width).map(move |x| (x, y));
    (0..area.height).map(|y| row(y).map(|at| buf[at].symbol()).collect::<String>() + "\n").collect()
}

fn rows(answer: &Answer) -> Vec<String> {
    let text = |r: &tui_transformer::app::answer::Row| r.text.render(Lang::En);
    answer.rows.iter().map(text).collect()
}

#[test]
fn an_edit_answers_with_what_changed_and_the_screen_marks_it() {
    let mut app = app();
    let plain = shown(&app);
    assert!(!plain.contains('Δ'));
    let answer = run(&mut app, &["go Q1[1,0]", "edit Q1[1,0] = 0.75"]).expect("an answer");
    let said = rows(&answer).join("\n");
    assert!(said.contains("loss: 1.9465 →"), "{said}");
    assert!(said.contains("encoder.0.self_attn.q: 1 of 16 cells"), "{said}");
    assert!(said.contains("predictions"), "{said}");
    let here = app.nav.step().expect("a step").label();
    assert!(said.contains(&format!("first changed step: {here} ")), "{said}");
    // In the title, next to the steps from here on, in the table; and what it was.
    let screen = shown(&app);
    assert!(screen.contains("edits: 1 · loss 1.9465 → "), "{screen}");
    assert!(screen.contains("before the edits: "), "{screen}");
    let at = app.nav.position();
    assert!(app.edits.step_changed(&app.nav, at) && !app.edits.step_changed(&app.nav, at - 1));
    assert!(screen.matches('Δ').count() > 2, "{screen}");
    // Undone: the screen as it was, but for the message and the line that it takes.
    run(&mut app, &["undo", "step 1"]);
    let same = |s: &str| s.lines().take(37).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(same(&shown(&app)), same(&plain));
    run(&mut app, &["redo"]);
    assert!(shown(&app).contains("edits: 1"));
    let list = rows(&run(&mut app, &["edit"]).expect("a list"));
    assert_eq!(list[0], "encoder.0.self_attn.q[0,0,1,0] = 0.75");
}

#[test]
fn a_key_ablates_what_the_cursor_is_on_and_the_place_is_kept() {
    let mut app = app();
    run(&mut app, &["go Q2[1,1]"]);
    let before = (app.nav.state(), app.nav.step().map(tui_transformer::walkthrough::Step::label));
    for key in "a".parse::<KeySeq>().expect("a key").0 {
        app.input(&Input::Key(key));
    }
    assert_eq!(app.edits.count(&app.nav), 1);
    assert_eq!(app.nav.state(), before.0);
    assert_eq!(app.ui.record.last().map(Action::line).as_deref(), Some("ablate head encoder.0.self_attn.1"));
    app.ui.overlays.clear();
    // Settings build the programs anew: the step and the cell stay.
    run(&mut app, &["edit placement = pre", "edit scale = none"]);
    assert_eq!(app.nav.state(), before.0);
    assert_eq!(app.nav.step().map(tui_transformer::walkthrough::Step::label), before.1);
    // Fewer steps: the same number, or the nearest before it.
    run(&mut app, &["step 95", "edit norm.kind = none"]);
    let label = app.nav.step().expect("a step").label();
    assert_eq!(label, "95");
}

#[test]
fn a_key_begins_the_edit_of_the_cell_under_the_cursor() {
    let mut app = app();
    let press = |app: &mut App, keys: &str| {
        for key in keys.parse::<KeySeq>().expect("keys").0 {
            app.input(&Input::Key(key));
        }
    };
    run(&mut app, &["go Q2[1,1]"]);
    press(&mut app, "E 0 . 5 enter");
    let run_of = app.nav.step().expect("a step").run;
    let q = values(&app.nav.session, &app.nav.session.runs[run_of].name, "encoder.0.self_attn.q");
    assert_eq!(q[(4 + 1) * 2 + 1], 0.5);
    app.ui.overlays.clear();
    // In a sub-step, whose symbols are no names elsewhere.
    run(&mut app, &["step 40", "in"]);
    press(&mut app, "E 7 enter");
    let view = app.nav.view().expect("a view").clone();
    let value = app.nav.trace(view.run).expect("runs").value(view.node);
    let (_, cell) = app.nav.cell().expect("a cell");
    assert_eq!((value.get(cell.flat), app.edits.count(&app.nav)), (7.0, 2));
    assert!(!app.nav.step().expect("a step").label().ends_with("40"));
}

#[test]
fn what_is_wrong_is_said_with_its_column() {
    let mut app = app();
    for (line, said) in [
        ("edit Q9[0,0] = 1", "column 1: there is no tensor `Q9` · did you mean"),
        ("edit Q1[0,0] = x", "column 11: `x` is not a number"),
        ("ablate heads 1", "column 1: a head, a layer, a block of a layer, a position or all positions can be ablated"),
        ("edit norm.eps = -1", "not edited: model.norm.eps: "),
        ("ablate head encoder.0.5", "not edited: encoder.0.self_attn has heads 0 to 1"),
    ] {
        let text = error(&mut app, line);
        assert!(text.starts_with(said), "{line}: {text}");
    }
    assert_eq!(app.edits.count(&app.nav), 0);
    assert!(app.ui.record.is_empty(), "{:?}", app.ui.record);
    let reported = front::run(&mut app, &Action::Undo);
    assert_eq!(reported.messages[0].text.key, "edit.nothing_to_undo");
}

#[test]
fn saving_writes_a_scenario_that_opens_to_the_same_bits() {
    let mut app = app();
    run(&mut app, &["step 23", "ablate layer decoder.0", "edit token source 2 = 课", "edit E[0,0] += 1"]);
    let effects = app.act(Action::parse("save notes/what if.ron").expect("a command"));
    let (path, text) = written(effects);
    assert_eq!(path, "notes/what if.ron");
    let back = syntax::read(&path, &text).expect("a scenario");
    let back = open(back, None, Options::default()).expect("opens");
    same(&app.nav.session, &back);
    let effects = app.act(Action::parse("save").expect("a command"));
    assert_eq!(written(effects).0, "water_class-edited.ron");
}

#[test]
fn a_session_is_saved_as_commands_and_replayed() {
    let mut one = app();
    run(
        &mut one,
        &[
            "next",
            "next",
            "step 23",
            "follow",
            "set digits 6",
            "edit Q1[0,1] = 0.5",
            "run inference",
            "last",
            "ablate head encoder.1.0",
            "undo",
            "go output.weight",
            "down",
            "right",
        ],
    );
    error(&mut one, "edit Q9[0] = 1");
    let effects = one.act(Action::parse("save-session a.commands").expect("a command"));
    let (path, text) = written(effects);
    assert_eq!(path, "a.commands");
    assert!(!text.contains("follow") && !text.contains("Q9"), "{text}");
    let mut two = app();
    for action in command::script(&text, Lang::En).expect("commands") {
        let reported = front::run(&mut two, &action);
        assert!(reported.messages.iter().all(|m| !m.text.key.contains("error")), "{text}");
    }
    same(&one.nav.session, &two.nav.session);
    assert_eq!(one.nav.state(), two.nav.state(), "{text}");
    assert_eq!(one.edits.count(&one.nav), two.edits.count(&two.nav));
    assert_eq!(one.ui.settings.digits, two.ui.settings.digits);
    // And what is saved of the replay is the same session again.
    let effects = two.act(Action::parse("save-session a.commands").expect("a command"));
    let again = written(effects).1;
    let mut three = app();
    for action in command::script(&again, Lang::En).expect("commands") {
        front::run(&mut three, &action);
    }
    same(&one.nav.session, &three.nav.session);
    assert_eq!(one.nav.state(), three.nav.state());
}

#[test]
fn it_works_from_the_command_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = env!("CARGO_BIN_EXE_tui-transformer");
    let play = |args: &[&str]| {
        let out = std::process::Command::new(program)
            .args(["--lang", "en", "play"])
            .args(args)
            .current_dir(folder.path())
            .output()
            .expect("runs");
        (out.status.code(), String::from_utf8(out.stdout).expect("text"))
    };
    let (code, out) =
        play(&["water_class", "-e", "edit embed.weight[0,0] = 2", "-e", "save a.ron", "-e", "save-session a.commands"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("loss: 1.9465 →"), "{out}");
    // Never over what is there.
    let (code, out) = play(&["water_class", "-e", "save a.ron"]);
    assert_eq!(code, Some(1), "{out}");
    let (code, out) = play(&["water_class", "a.commands", "-e", "edit"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("embed.weight[0,0] = 2"), "{out}");
    let saved = tui_transformer::scenario::load(&folder.path().join("a.ron")).expect("a scenario");
    let saved = open(saved.scenario, None, Options::default()).expect("opens");
    let mut w = tui_transformer::debug::whatif::WhatIf::new(opened(scenario("water_class")));
    super::go(&mut w, "training", "embed.weight[0,0] = 2");
    same(w.session(), &saved);
    assert!(folder.path().join("a.commands").exists());
}
