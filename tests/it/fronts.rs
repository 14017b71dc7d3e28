//! Every command in every front: the screen, `play`, `--play FILE` and `snapshot -e` do the same and lose nothing.
#![cfg(feature = "tui")]

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use crate::common::front::Quiet;
#[cfg(unix)]
use crate::common::pty::Pty;
use tui_transformer::app::action::{Action, SPECS};
use tui_transformer::app::app::App;
use tui_transformer::app::settings::Settings;
use tui_transformer::session::{Options, open};
use tui_transformer::text::Lang;

fn app(name: &str) -> App {
    let loaded = tui_transformer::scenario::load(Path::new(name)).expect("a scenario");
    let session = Arc::new(open(loaded.scenario, None, Options::default()).expect("opens"));
    App::new(session, None, Settings::default())
}

/// The command with an argument where it needs one; files go to `folder`.
fn line(name: &str, folder: &Path) -> String {
    let file = |name: &str| folder.join(name).display().to_string();
    match name {
        "step" => "step 3".to_owned(),
        "go" => "go Q1".to_owned(),
        "speed" => "speed up".to_owned(),
        "view" => "view heads".to_owned(),
        "set" => "set digits 6".to_owned(),
        "batch" | "head" | "layer" => format!("{name} 1"),
        "train" => "train 2".to_owned(),
        "export" => format!("export md 1 {}", file("step.md")),
        "save" => format!("save {}", file("saved.ron")),
        "save-session" => format!("save-session {}", file("a.commands")),
        "compare" => "compare inference".to_owned(),
        "round" | "numerics" => format!("{name} bf16"),
        "record" => format!("record {}", file("kept.trace")),
        "break" | "tbreak" => format!("{name} 5"),
        other => other.to_owned(),
    }
}

#[test]
fn every_command_prints_something() {
    let folder = tempfile::tempdir().unwrap();
    for spec in SPECS {
        let mut app = app("water_class");
        let line = line(spec.name, folder.path());
        let action = Action::parse(&line).unwrap_or_else(|slip| panic!("{line}: {}", slip.message(&line, Lang::En)));
        let mut front = Quiet::default();
        let outcome = app.run(&action, &mut front);
        let printed = !outcome.messages.is_empty() || !outcome.answers.is_empty() || outcome.moved;
        assert!(printed || outcome.quit || !front.copied.is_empty(), "`{line}` prints nothing");
        assert!(app.ui.overlays.is_empty(), "`{line}` leaves something open");
    }
}

/// Commands with effects; what each leaves behind is looked at in [`assert_done`].
fn script(folder: &Path) -> Vec<String> {
    ["edit Q1[0,0] = 2", "export", "save", "save-session", "compare", "train"]
        .iter()
        .map(|name| line(name, folder))
        .collect()
}

fn assert_done(folder: &Path, front: &str) {
    for name in ["step.md", "saved.ron", "a.commands"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{front}: {name}: {e}"));
        assert!(!text.is_empty(), "{front}: {name}");
    }
    let recorded = std::fs::read_to_string(folder.join("a.commands")).unwrap();
    assert!(recorded.contains("edit Q1[0,0] = 2"), "{front}: {recorded}");
}

fn program(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .args(["--lang", "en"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn executed<'a>(first: &[&'a str], lines: &'a [String]) -> Vec<&'a str> {
    first.iter().copied().chain(lines.iter().flat_map(|l| ["-e", l.as_str()])).collect()
}

#[test]
fn play_does_all() {
    let folder = tempfile::tempdir().unwrap();
    let lines = script(folder.path());
    let printed = out(&program(&executed(&["play", "water_class"], &lines)));
    assert_done(folder.path(), "play");
    for said in ["written: ", "2 updates made", "water_class / inference"] {
        assert!(printed.contains(said), "{printed}");
    }
    // A file that is there is not replaced, and nobody is requested.
    let again = program(&["play", "water_class", "-e", &lines[1]]);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stdout).contains("step.md"));
}

#[test]
fn snapshot_does_all_and_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let lines = script(folder.path());
    let shown = out(&program(&executed(&["snapshot", "water_class", "--view", "log"], &lines)));
    assert_done(folder.path(), "snapshot");
    assert!(shown.contains("step.md"), "{shown}");
    // The comparison is there to be looked at.
    let compare = ["compare inference".to_owned(), "step 5".to_owned()];
    let shown = out(&program(&executed(&["snapshot", "water_class", "--view", "compare"], &compare)));
    assert!(shown.contains("water_class / inference"), "{shown}");
    // What it cannot do is an error.
    let copied = program(&["snapshot", "water_class", "-e", "copy-cell"]);
    assert_eq!(copied.status.code(), Some(2));
    let again = program(&["snapshot", "water_class", "-e", &lines[1]]);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("step.md"));
}

#[cfg(unix)]
#[test]
fn commands_before_the_screen_do_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("first.commands");
    std::fs::write(&file, script(folder.path()).join("\n")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_tui-transformer"));
    let file = file.to_str().unwrap();
    let mut pty = Pty::spawn(program, &["--lang", "en", "water_class", "--play", file], &[], (120, 36));
    pty.wait("the screen", |s| s.alternate_screen() && s.contents().contains("/95"));
    assert_done(folder.path(), "--play");
    pty.send("!");
    pty.wait_for("step.md");
    pty.send("q:q!\r");
    assert!(pty.finish().success());
}

#[cfg(unix)]
#[test]
fn the_screen_does_all() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_tui-transformer"));
    let mut pty = Pty::spawn(program, &["--lang", "en", "water_class"], &[], (120, 36));
    pty.wait("the first step", |s| s.alternate_screen() && s.contents().contains("1/95"));
    for line in script(folder.path()) {
        pty.send(&format!(":{line}\r"));
        // What an edit changed is a list over the screen.
        if line.starts_with("edit") {
            pty.wait_for("edited: ");
            pty.send("q");
        }
    }
    pty.wait("the session", |_| folder.path().join("a.commands").exists());
    assert_done(folder.path(), "screen");
    pty.send(":q!\r");
    assert!(pty.finish().success());
}

#[test]
fn what_cannot_be_read_has_its_column_in_every_front() {
    for arguments in [["play", "water_class", "-e", "step 4.x"], ["snapshot", "water_class", "-e", "step 4.x"]] {
        let output = program(&arguments);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("column 7"), "{said}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.commands");
    std::fs::write(&file, "next\nnext-\n").unwrap();
    let output = program(&["play", "water_class", file.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("a.commands:2:") && said.contains("column 1") && said.contains("next-phase"), "{said}");
}

#[test]
fn mistyped_subcommands_are_guessed() {
    for (word, near) in [("exprt", "export"), ("stesp", "steps"), ("comapre", "compare")] {
        for more in [&[][..], &["water_class"]] {
            let output = program(&[&[word][..], more].concat());
            assert_eq!(output.status.code(), Some(2));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains(&format!("`{near}`")), "{word}: {said}");
        }
    }
    let output = program(&["water_clas"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("water_class"));
}

#[test]
fn views_of_two_runs_are_each_of_their_own_run() {
    for lines in
        [&["last", "in"][..], &["last", "next-table", "in", "follow"], &["last", "follow", "in", "back", "back"]]
    {
        let mut app = app("post_or_pre");
        for line in lines {
            let outcome = app.run(&Action::parse(line).unwrap(), &mut Quiet::default());
            assert!(outcome.error().is_none(), "{line}: {:?}", outcome.messages);
        }
    }
}

#[test]
fn a_step_that_is_not_there_ends_before_it_begins() {
    for front in ["play", "snapshot"] {
        let output = program(&[front, "water_class", "--step", "99"]);
        assert_eq!(output.status.code(), Some(2), "{front}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("95"), "{front}");
    }
}
