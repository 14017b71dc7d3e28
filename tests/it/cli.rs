//! The binary from outside: exit codes, and which stream a text goes to.

use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tui-transformer"));
    command.args(arguments).stdin(Stdio::null()).env("LC_ALL", "C").env_remove("LANGUAGE");
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn what_was_asked_for_goes_to_standard_output() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["help"],
        &["help", "completions"],
        &["man"],
        &["completions", "bash"],
        &["--lang", "zh", "man", "completions"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn usage_errors_go_to_standard_error_with_code_2() {
    for (arguments, message) in [
        (&["--no-such"][..], "error: there is no argument --no-such here"),
        (&["completions"], "error: missing: <SHELL>"),
        (&["--digits", "99", "man"], "is not a number of decimals from 0 to 17"),
        (&["man", "no-such"], "error: there is no command `no-such`"),
        (&["--lang", "zh", "--no-such"], "错误： 这里没有 --no-such 这个参数"),
        (&["water_class", "man"], "go after the name of the command"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let reported = text(&output.stderr);
        assert!(reported.contains(message), "{arguments:?}: {reported}");
    }
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_fault() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command(&["completions", "zsh"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let output =
        command(&["man"]).stdout(full.unwrap()).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: cannot write to standard output"));
}

#[cfg(feature = "tui")]
#[test]
fn a_script_is_told_what_the_screen_would_show() {
    let said = |command: &str| {
        let output = run(&["--lang", "en", "play", "water_class", "-e", command]);
        assert_eq!(output.status.code(), Some(0), "{command}");
        let reported = text(&output.stdout).to_owned();
        let (first, rest) = reported.split_once('\n').expect("lines");
        // Commands are reported in their full form.
        let word = command.split(' ').next().expect("a word");
        assert!(first.starts_with(&format!("> {word} ")), "{first}");
        rest.trim().to_owned()
    };
    assert!(!said("side-by-side head 0 0").is_empty());
    assert!(said("view heads").contains("snapshot SCENARIO --view heads"));
}
