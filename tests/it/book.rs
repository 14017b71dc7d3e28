//! The book: one page, nothing loaded, every number that of the JSON export, operands linked to where they were made.

use std::collections::{HashMap, HashSet};
use std::process::{Command, Stdio};

use serde_json::Value as Json;
use tui_transformer::text::NumberFormat;

fn run(arguments: &[&str]) -> (Option<i32>, Vec<u8>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tui-transformer"));
    let output = command.args(arguments).stdin(Stdio::null()).env("LC_ALL", "C").output().expect("runs");
    (output.status.code(), output.stdout)
}

/// `id="c17-0-3"…>text<`: every number of the page by its id.
fn numbers(page: &str) -> HashMap<String, String> {
    page.split(" id=\"c")
        .skip(1)
        .filter_map(|part| {
            let (id, rest) = part.split_once('"')?;
            let (_, rest) = rest.split_once('>')?;
            Some((id.to_owned(), rest.split_once('<')?.0.to_owned()))
        })
        .collect()
}

#[test]
fn water_class_is_a_book_whose_numbers_are_those_of_the_export() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().join("book");
    let folder = folder.to_str().expect("text");
    assert_eq!(run(&["export", "water_class", "--book", folder]).0, Some(0));
    let files: Vec<_> = std::fs::read_dir(folder).expect("a folder").map(|f| f.unwrap().file_name()).collect();
    assert_eq!(files, ["water_class.html"]);
    // What is there is kept.
    assert_eq!(run(&["export", "water_class", "--book", folder]).0, Some(2));
    let page = std::fs::read_to_string(format!("{folder}/water_class.html")).expect("a page");
    assert!(page.len() < 3 << 20, "{} bytes", page.len());
    for wanted in ["class=\"zh\"", "class=\"en\"", "default-src 'none'", "<summary>"] {
        assert!(page.contains(wanted), "{wanted}");
    }
    for never in ["http://", "https://", "src=", "url(", "@import", "<link rel=\"stylesheet"] {
        assert!(!page.contains(never), "{never}");
    }
    let shown = numbers(&page);
    let (_, json) = run(&["export", "water_class", "--step", "all", "--format", "json", "--derivations", "none"]);
    let json: Json = serde_json::from_slice(&json).expect("JSON");
    let format = NumberFormat::default();
    let mut compared = 0;
    for step in json.as_array().expect("steps") {
        for (v, tensor) in step["tensors"].as_array().expect("tensors").iter().enumerate() {
            let mut values = Vec::new();
            flat(&tensor["values"], &mut values);
            for (i, value) in values.iter().enumerate() {
                let id = format!("{}-{v}-{i}", step["step"]);
                let ours = shown.get(&id).unwrap_or_else(|| panic!("{id} is not on the page"));
                let theirs = match value {
                    Json::Number(n) if n.is_f64() => format.format(n.as_f64().unwrap()),
                    Json::Bool(b) => u8::from(*b).to_string(),
                    Json::String(s) => match s.as_str() {
                        "-inf" => format.format(f64::NEG_INFINITY),
                        "inf" => format.format(f64::INFINITY),
                        _ => format.format(f64::NAN),
                    },
                    other => other.to_string(),
                };
                // Masked scores are shown as −∞ to people.
                let hidden = ours == &format.format(f64::NEG_INFINITY) && value.as_f64().is_some_and(|x| x < -1e8);
                assert!(*ours == theirs || hidden, "{id}: {ours} for {theirs}");
                compared += 1;
            }
        }
    }
    assert!(compared > 1000 && compared == shown.len(), "{compared} of {}", shown.len());
    // Every operand leads to a number that is there.
    let targets: HashSet<&str> = page.split("<a href=#c").skip(1).filter_map(|a| a.split('>').next()).collect();
    assert!(targets.len() > 300, "{} operands", targets.len());
    for target in targets {
        assert!(shown.contains_key(target), "{target}");
    }
}

fn flat<'j>(x: &'j Json, out: &mut Vec<&'j Json>) {
    match x {
        Json::Array(all) => all.iter().for_each(|x| flat(x, out)),
        other => out.push(other),
    }
}
