//! Every message that the code names is in the catalogue, and gets the arguments that its text has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use regex::Regex;
use tui_transformer::text::{Lang, catalogue};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") && !path.to_string_lossy().ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// The text of the function around a place, as far as indentation tells: arguments may be added to a message that has a
/// name, and by a closure that makes it.
fn function(text: &str, at: usize) -> &str {
    let begin = text[..at].rfind("fn ").unwrap_or(0);
    let end = text[at..].find("\n    fn ").or_else(|| text[at..].find("\nfn ")).map_or(text.len(), |e| at + e);
    &text[begin..end]
}

#[test]
fn every_message_gets_its_arguments() {
    // Messages that whoever is requested adds to: the place of a problem, the file at hand, what was typed, how far it is.
    let added = [
        "edit.mask_value",
        "edit.id_value",
        "edit.id_outside",
        "scenario.memory",
        "checkpoint.no_file",
        "train.progress",
        "generate.progress",
    ];
    let made = Regex::new(r#"Msg::new\(\s*"([a-z0-9_.]+)"\s*\)"#).expect("a pattern");
    let place = Regex::new(r"\{([a-z_]+)(?::[a-z]+)?\}").expect("a pattern");
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a file");
        // Tests of a file make messages of their own.
        let code = text.split("#[cfg(test)]").next().expect("a part");
        for found in made.captures_iter(code) {
            let key = &found[1];
            seen.insert(key.to_owned());
            let Some(message) = catalogue::find(key) else {
                wrong.push(format!("{}: no message {key}", file.display()));
                continue;
            };
            if added.contains(&key) {
                continue;
            }
            let around: String = function(code, found.get(0).expect("a match").start()).split_whitespace().collect();
            for argument in place.captures_iter(catalogue::tr(Lang::En, message)) {
                if !around.contains(&format!("(\"{}\"", &argument[1])) {
                    wrong.push(format!("{}: {key} lacks {{{}}}", file.display(), &argument[1]));
                }
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert!(seen.len() > 500, "{}", seen.len());
}
