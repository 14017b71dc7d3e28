//! The debugger itself on a real pseudo-terminal: what it shows, what it writes, and how it leaves.
#![cfg(all(unix, feature = "tui"))]

use std::path::Path;

use crate::common::pty::Pty;

/// How the text begins that a screen without room shows.
const SMALL: &str = "Too ";

fn start(size: (u16, u16)) -> Pty {
    let program = Path::new(env!("CARGO_BIN_EXE_tui-transformer"));
    let pty = Pty::spawn(program, &["--lang", "en", "water_class"], &[], size);
    pty.wait("the first step", |s| s.alternate_screen() && s.contents().contains("1/95"));
    pty
}

#[test]
fn opens_pages_and_quits() {
    let mut pty = start((120, 36));
    pty.send("...");
    pty.wait_for("4/95");
    pty.send(",");
    pty.wait_for("3/95");
    pty.send(":step 23\r");
    pty.wait_for("23/95");
    pty.send("q");
    assert!(pty.finish().success());
}

#[test]
fn follows_the_size_of_the_terminal() {
    let mut pty = start((80, 24));
    let list = "Steps";
    pty.wait("no list of steps", |s| {
        let text = s.contents();
        text.contains("1/95") && !text.contains(list)
    });
    pty.resize(120, 36);
    pty.wait_for(list);
    pty.resize(10, 3);
    // What it says where it has no room, drawn at that size.
    pty.wait("a small screen", |s| s.size() == (3, 10) && s.contents().starts_with(SMALL));
    pty.resize(120, 36);
    pty.wait_for(list);
    // Straight back: no frame has the small size, but the terminal lost what stood outside of it.
    pty.resize(10, 3);
    pty.resize(120, 36);
    pty.send(":step 23\r");
    pty.wait("the whole screen again", |s| {
        let text = s.contents();
        text.contains(list) && text.contains("23/95") && text.contains("F10")
    });
    pty.send("q");
    assert!(pty.finish().success());
}

#[test]
fn exports_the_step_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("step.md");
    let mut pty = start((120, 36));
    pty.send(&format!(":export md 1 {}\r", path.display()));
    pty.wait("a file", |_| path.exists());
    assert!(!std::fs::read_to_string(&path).unwrap().is_empty());
    pty.send("q");
    assert!(pty.finish().success());
}

#[test]
fn suspends_and_comes_back() {
    let mut pty = start((120, 36));
    pty.send("\x1a");
    pty.wait_stopped();
    pty.assert_restored();
    pty.signal("CONT");
    pty.wait("the screen again", |s| s.alternate_screen() && s.contents().contains("1/95"));
    pty.send("q");
    assert!(pty.finish().success());
}

#[test]
fn a_signal_to_end_leaves_the_terminal_as_it_was() {
    let mut pty = start((120, 36));
    pty.signal("TERM");
    assert!(!pty.finish().success());
}

/// The debugger under a configuration file that says `config`; the folder goes with what is returned.
fn configured(config: &str) -> (Pty, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("tui-transformer");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("config.ron"), config).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_tui-transformer"));
    let place = home.path().to_str().unwrap();
    let env = [("XDG_CONFIG_HOME", place)];
    let pty = Pty::spawn(program, &["--lang", "en", "water_class"], &env, (140, 36));
    pty.wait("the first step", |s| s.alternate_screen() && s.contents().contains("1/95"));
    (pty, home)
}

#[test]
fn keys_of_the_configuration_work_and_help_lists_them() {
    let (mut pty, _home) = configured(r#"{"keys": {"global": {"x": "next", ".": "none", "ctrl-g": "step 23"}}}"#);
    pty.send("xx");
    pty.wait_for("3/95");
    pty.send(".x");
    pty.wait_for("4/95");
    pty.send("\x07");
    pty.wait_for("23/95");
    pty.send("?");
    pty.wait_for("Ctrl-g");
    pty.send("qq");
    assert!(pty.finish().success());
}

#[test]
fn what_is_wrong_in_the_configuration_is_shown() {
    let (mut pty, _home) = configured(r#"{"theme": "drak"}"#);
    pty.wait_for("did you mean `dark`?");
    pty.send("8");
    pty.wait("the file in the log", |s| s.contents().contains("config.ron"));
    pty.send("q");
    assert!(pty.finish().success());
    let (mut pty, _home) = configured(r#"{"digits": 40, "keys": {"global": {"x": "nxet"}}}"#);
    pty.wait_for("2 parts of the configuration");
    pty.send("!");
    pty.wait("both", |s| {
        let text = s.contents();
        text.contains("0 to 17") && text.contains("`next`")
    });
    pty.send("qq");
    assert!(pty.finish().success());
}

#[test]
fn the_wheel_moves_what_is_under_it() {
    let mut pty = start((120, 36));
    pty.send(":set mouse on\r");
    pty.wait_for("set mouse on");
    // Down over the list of steps, and up again.
    pty.send("\x1b[<65;10;10M\x1b[<65;10;10M");
    pty.wait_for("3/95");
    pty.send("\x1b[<64;10;10M");
    pty.wait_for("2/95");
    pty.send("q");
    assert!(pty.finish().success());
}
