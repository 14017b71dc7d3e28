//! A scenario that is written next to the debugger: read again, watched, saved with its comments.
#![cfg(feature = "tui")]

use std::path::Path;
use std::process::{Command, Output};

#[cfg(unix)]
use crate::common::pty::Pty;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tui-transformer");

/// A scenario of one attention; `v` is a number of its values.
fn scenario(v: &str) -> String {
    format!(
        r#"// Attention over two vectors.
(
    name: "mine",
    model: (
        d_model: 2, heads: 1, d_ff: 1, // small
        norm: (kind: None),
        attention: (out_projection: false),
        encoder: (layers: [(has_ffn: false, residual: false)]),
    ),
    source: (vectors: [[[1, 0], [0, 1]]]),
    weights: (values: {{
        "encoder.0.self_attn.q.weight": InOut([[1, 0], [0, 1]]),
        "encoder.0.self_attn.k.weight": InOut([[1, 0], [0, 1]]),
        // what is averaged
        "encoder.0.self_attn.v.weight": InOut([[{v}, 2], [3, 4]]),
    }}),
    runs: [Encode()],
)
"#
    )
}

fn play(source: &Path, commands: &[String]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(["--lang", "en", "play"]).arg(source);
    for line in commands {
        command.args(["-e", line]);
    }
    command.output().expect("runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn saved_edits_keep_the_comments_and_read_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, saved) = (folder.path().join("mine.ron"), folder.path().join("saved.ron"));
    std::fs::write(&file, scenario("1")).expect("written");
    let commands = [
        "edit encoder.0.self_attn.v.weight[0,0] = 5".to_owned(),
        "edit attention.scale = none".to_owned(),
        format!("save {}", saved.display()),
    ];
    let output = play(&file, &commands);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let wanted = scenario("5.0").replace("(out_projection: false)", "(scale: None, out_projection: false)");
    assert_eq!(std::fs::read_to_string(&saved).expect("saved"), wanted);
    let output = play(&saved, &["print encoder.0.self_attn.v[0,0,0,0]".to_owned()]);
    assert!(text(&output).contains('5'), "{}", text(&output));
}

#[test]
fn a_source_is_read_again_with_its_edits_and_another_one_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.ron");
    std::fs::write(&file, scenario("1")).expect("written");
    let lines =
        ["edit encoder.0.self_attn.q.weight[0,0] = 2", "reload", "edit", "open water_class", "step 23", "reload"];
    let output = play(&file, &lines.map(str::to_owned));
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("read again: ") && text.contains("mine.ron") && text.contains("edits: 1"), "{text}");
    assert!(text.contains("opened: water_class") && text.contains("23 · 5.10"), "{text}");

    let output = play(&file, &["open nowhere.ron".to_owned()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("not opened: "));
    let broken = folder.path().join("broken.ron");
    std::fs::write(&broken, scenario("1").replace("heads: 1", "heads: true")).expect("written");
    let output = play(&file, &[format!("open '{}'", broken.display())]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("broken.ron:5:28: ") && text.contains('^'), "{text}");
}

/// The file is changed while the debugger shows it: right, wrong, right again.
#[cfg(unix)]
#[test]
fn a_watched_file_is_followed_and_an_error_leaves_the_last_good_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.ron");
    std::fs::write(&file, scenario("1")).expect("written");
    let path = file.display().to_string();
    let mut pty = Pty::spawn(Path::new(PROGRAM), &["--lang", "en", "--watch", &path], &[], (160, 40));
    pty.wait("the first step", |s| s.alternate_screen() && s.contents().contains("1/"));
    pty.send(":go encoder.0.self_attn.v\r");
    pty.wait_for("self_attn.v");
    std::fs::write(&file, scenario("7.25")).expect("written");
    pty.wait_for("read again");
    pty.wait_for("7.25");
    std::fs::write(&file, scenario("7.25").replace("heads: 1", "heads: x")).expect("written");
    pty.wait("the place of the error, and the values from before", |s| {
        let text = s.contents();
        text.contains("mine.ron:5:28") && text.contains("the source has an error")
    });
    std::fs::write(&file, scenario("8.5")).expect("written");
    pty.wait("the error is gone", |s| {
        let text = s.contents();
        text.contains("8.5") && !text.contains("the source has an error")
    });
    pty.send("q");
    assert!(pty.finish().success());
}
