//! Processes killed while they write: what was there stays whole, and nothing half-written is left.
#![cfg(unix)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tui_transformer::export::checkpoint;

fn start(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

fn kill(child: &mut Child, signal: &str) {
    let _ = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
    child.wait().expect("it ends");
}

/// Names of unfinished files.
fn parts(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|n| Path::new(n).extension().is_some_and(|e| e == "part")).collect()
}

#[test]
fn a_killed_training_leaves_its_last_save_and_the_next_clears_up() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("state");
    let name = file.to_str().unwrap();
    let train = ["train", "train_copy", "--steps", "100000", "--save", name, "--save-every", "1", "--force"];
    let mut made = 0;
    for i in 0..12_u64 {
        let arguments = if file.exists() { [&train[..], &["--resume", name]].concat() } else { train.to_vec() };
        let mut child = start(&arguments);
        std::thread::sleep(Duration::from_millis(120 + i * 37 % 150));
        kill(&mut child, "KILL");
        if file.exists() {
            let (state, losses) = checkpoint::load::<f64>(&file).expect("a whole file");
            assert!(state.update >= made && losses.len() as u64 == state.update);
            made = state.update;
        }
    }
    let last = ["train", "train_copy", "--steps", "1", "--save", name, "--force"];
    assert!(start(&last).wait().unwrap().success());
    assert_eq!(parts(dir.path()), [] as [String; 0]);
}

#[test]
fn a_training_whose_terminal_is_closed_is_saved() {
    for signal in ["HUP", "TERM"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state");
        let mut child = start(&[
            "train",
            "train_copy",
            "--steps",
            "1000000",
            "--save",
            file.to_str().unwrap(),
            "--save-every",
            "1",
        ]);
        while !file.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        kill(&mut child, signal);
        let (state, losses) = checkpoint::load::<f64>(&file).expect("a whole file");
        assert_eq!(state.update, losses.len() as u64, "{signal}");
        assert_eq!(parts(dir.path()), [] as [String; 0], "{signal}");
    }
}

#[test]
fn an_export_or_a_save_that_is_ended_leaves_nothing_half_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("steps.json");
    let name = file.to_str().unwrap();
    let save = format!("save {name}");
    let export = ["export", "water_class", "--step", "all", "--format", "json", "-o", name, "--force"];
    let saves = ["play", "water_class", "-e", &save];
    std::fs::write(&file, "before").unwrap();
    for i in 0..10_u64 {
        for (signal, cleared) in [("TERM", true), ("HUP", true), ("KILL", false)] {
            let mut child = start(&export);
            std::thread::sleep(Duration::from_millis(150 + i * 53 % 200));
            kill(&mut child, signal);
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text == "before" || serde_json::from_str::<serde_json::Value>(&text).is_ok());
            if cleared && i == 0 {
                assert_eq!(parts(dir.path()), [] as [String; 0], "{signal}");
            }
        }
    }
    assert!(start(&export).wait().unwrap().success());
    assert_eq!(parts(dir.path()), [] as [String; 0]);
    std::fs::remove_file(&file).unwrap();
    let mut child = start(&saves);
    std::thread::sleep(Duration::from_millis(100));
    kill(&mut child, "KILL");
    if file.exists() {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(tui_transformer::scenario::syntax::read("x", &text).is_ok());
    }
}

#[test]
fn a_killed_recording_leaves_the_one_before_and_the_next_clears_up() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("run");
    let name = folder.to_str().unwrap();
    let record = ["record", "water_class", "-o", name, "--force"];
    assert!(start(&record).wait().unwrap().success());
    for i in 0..12_u64 {
        let mut child = start(&record);
        std::thread::sleep(Duration::from_millis(60 + i * 37 % 250));
        kill(&mut child, ["KILL", "TERM"][i as usize % 2]);
        let mut opened = start(&["steps", name]);
        assert!(opened.wait().unwrap().success(), "kill {i}");
    }
    assert!(start(&record).wait().unwrap().success());
    assert_eq!(parts(dir.path()), [] as [String; 0]);
    assert_eq!(parts(&folder), [] as [String; 0]);
}
