//! Who may use whom. Each folder of `src/` has a list of the folders and terminal crates it may name; anything
//! else is an edge that the design does not have.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that only the fronts may use.
const GUARDED_CRATES: [&str; 4] = ["clap", "crossterm", "ratatui", "color_eyre"];

/// What everything may use; it uses nothing.
const BELOW_ALL: [&str; 2] = ["text", "parallel"];

/// A folder and what it may use next to itself and what is below all.
const ALLOWED: &[(&str, &[&str])] = &[
    ("text", &[]),
    ("parallel", &[]),
    ("tensor", &[]),
    ("program", &["tensor"]),
    ("kernels", &["tensor"]),
    ("trace", &["tensor", "program", "kernels"]),
    ("model", &["tensor", "program"]),
    ("source", &["tensor", "program", "trace"]),
    ("scenario", &["tensor", "program", "kernels", "model", "trace", "source"]),
    ("checkpoint", &["source", "scenario", "tensor", "model"]),
    ("walkthrough", &["tensor", "program", "trace"]),
    ("explain", &["tensor", "program", "trace", "walkthrough"]),
    ("session", &["source", "scenario", "walkthrough", "model", "tensor", "program", "trace"]),
    ("export", &["session", "explain", "scenario", "walkthrough", "tensor", "program", "trace"]),
    (
        "debug",
        &[
            "session",
            "explain",
            "checkpoint",
            "source",
            "scenario",
            "walkthrough",
            "model",
            "tensor",
            "program",
            "kernels",
            "trace",
        ],
    ),
    ("report", &["debug", "session", "scenario", "model", "program", "tensor", "trace"]),
    (
        "app",
        &[
            "report",
            "debug",
            "export",
            "source",
            "session",
            "explain",
            "scenario",
            "walkthrough",
            "model",
            "tensor",
            "program",
            "trace",
        ],
    ),
    (
        "tui",
        &[
            "app",
            "debug",
            "export",
            "session",
            "explain",
            "scenario",
            "walkthrough",
            "model",
            "tensor",
            "program",
            "trace",
            "ratatui",
            "crossterm",
        ],
    ),
    (
        "cli",
        &[
            "tui",
            "app",
            "report",
            "debug",
            "export",
            "source",
            "session",
            "explain",
            "checkpoint",
            "scenario",
            "walkthrough",
            "model",
            "tensor",
            "program",
            "kernels",
            "trace",
            "clap",
        ],
    ),
    ("main", &["cli", "color_eyre"]),
];

fn source_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            source_files(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

/// The room a file is in: its top folder in `src/`, or its name for a file next to them.
fn room(src: &Path, file: &Path) -> String {
    let first = file.strip_prefix(src).unwrap().iter().next().unwrap();
    let name = first.to_str().unwrap();
    name.strip_suffix(".rs").unwrap_or(name).to_owned()
}

/// Source without comments and string contents, and without the tests at the end of a file (tests may look
/// further than the code they test).
fn code(source: &str) -> String {
    let mut out = String::new();
    let mut skip_module = false;
    for line in source.lines() {
        if line == "#[cfg(test)]" {
            skip_module = true;
            continue;
        }
        if skip_module {
            // A module in its own file is one line; one in this file ends with a brace at the margin.
            skip_module = !(line == "}" || line.ends_with(';') && !line.starts_with(' '));
            continue;
        }
        let line = line.split("//").next().unwrap_or("");
        for (i, part) in line.split('"').enumerate() {
            if i % 2 == 0 {
                out.push_str(part);
            }
        }
        out.push('\n');
    }
    out
}

/// First names after `prefix::`, also in `prefix::{a, b::{c}, d}`.
fn names_after(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let pattern = format!("{prefix}::");
    for (at, _) in code.match_indices(&pattern) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &code[at + pattern.len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut name = String::new();
            let mut fresh = true;
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        names.insert(std::mem::take(&mut name));
                        fresh = true;
                        continue;
                    }
                    _ => {}
                }
                if depth == 0 && fresh {
                    if c.is_alphanumeric() || c == '_' {
                        name.push(c);
                    } else if !c.is_whitespace() {
                        fresh = false;
                    }
                }
            }
            names.insert(name);
        } else {
            names.insert(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    names.remove("");
    names
}

/// What a source uses: rooms of this crate and guarded crates.
fn uses(source: &str, rooms: &BTreeSet<&str>) -> BTreeSet<String> {
    let code = code(source);
    let mut used: BTreeSet<String> = ["crate", "tui_transformer"]
        .iter()
        .flat_map(|prefix| names_after(&code, prefix))
        .filter(|name| rooms.contains(name.as_str()))
        .collect();
    for guarded in GUARDED_CRATES {
        if !names_after(&code, guarded).is_empty() || code.contains(&format!("use {guarded};")) {
            used.insert(guarded.to_owned());
        }
    }
    used
}

#[test]
fn modules_use_only_what_is_below_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let rooms: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    let mut files = Vec::new();
    source_files(&src, &mut files);
    assert!(files.len() > 20, "only {} source files found", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let room = room(&src, &file);
        let name = file.strip_prefix(&src).unwrap().display().to_string();
        // Files that are tests as a whole.
        if room == "lib" || name.ends_with("tests.rs") || name.contains("/tests/") {
            continue;
        }
        let Some((_, allowed)) = ALLOWED.iter().find(|(r, _)| *r == room) else {
            wrong.push(format!("src/{name}: `{room}` has no line in the table"));
            continue;
        };
        for used in uses(&fs::read_to_string(&file).unwrap(), &rooms) {
            if used != room && !BELOW_ALL.contains(&used.as_str()) && !allowed.contains(&used.as_str()) {
                wrong.push(format!("src/{name}: `{room}` may not use `{used}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_table_has_no_circle() {
    // Each room uses only rooms of earlier lines: nothing can come back around.
    for (i, (room, allowed)) in ALLOWED.iter().enumerate() {
        for used in *allowed {
            let below = ALLOWED[..i].iter().any(|(r, _)| r == used);
            assert!(below || GUARDED_CRATES.contains(used), "`{room}` uses `{used}`, which is not below it");
        }
    }
}

#[test]
fn uses_are_found() {
    let rooms: BTreeSet<&str> = ["trace", "program", "tui", "cli", "text"].into();
    let found = |source: &str| -> Vec<String> { uses(source, &rooms).into_iter().collect() };
    assert_eq!(found("use crate::trace::Trace;"), ["trace"]);
    assert_eq!(
        found("use crate::{\n    program::{self, Op},\n    trace,\n    text::tr,\n};"),
        ["program", "text", "trace"]
    );
    assert_eq!(found("fn f() { crate::cli::main() }"), ["cli"]);
    assert_eq!(found("use tui_transformer::cli;"), ["cli"]);
    assert_eq!(found("use ratatui::style::Style;"), ["ratatui"]);
    assert_eq!(found("#[derive(clap::Args)]\nstruct A;"), ["clap"]);
    assert_eq!(found("// crate::tui::x\nlet s = \"crate::tui::x\";"), [""; 0]);
    assert_eq!(found("#[cfg(test)]\nmod tests {\n    use crate::tui;\n}\nuse crate::cli::x;"), ["cli"]);
    assert_eq!(found("#[cfg(test)]\nmod tests;\nuse crate::cli::x;"), ["cli"]);
    assert_eq!(found("use my_clap::x; use crate::other::y;"), [""; 0]);
}

/// Files in which text is taken apart at points that are no node path: what they are.
const OTHER_POINTS: [(&str, &str); 13] = [
    ("checkpoint/gguf.rs", "keys of a GGUF file"),
    ("checkpoint/settings.rs", "settings of a scenario"),
    ("cli/tests.rs", "keys of the catalogue"),
    ("debug/expr/postfix.rs", "methods behind a value"),
    ("debug/quiz/mod.rs", "decimals of a number"),
    ("program/name.rs", "node paths"),
    ("scenario/symbols.rs", "what a symbol may end with"),
    ("scenario/write.rs", "fields of a scenario"),
    ("source/recording/module.rs", "names of other frameworks"),
    ("source/trace/read.rs", "hidden files"),
    ("text/number.rs", "decimals of a number"),
    ("walkthrough/backward.rs", "numbers of sections"),
    ("walkthrough/mod.rs", "numbers of steps"),
];

#[test]
fn only_the_names_take_paths_apart() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    source_files(&src, &mut files);
    let apart = r"(split|split_once|rsplit|rsplit_once|strip_prefix|strip_suffix|starts_with|ends_with|contains)";
    let of_paths = r#"("(gen|grad|update)\.|"(encoder|decoder|embed)\b|"\.?(scores|weights|out|mean|exp|mask_bias|masked_scores)")"#;
    let of_paths = regex::Regex::new(&format!(r"\b{apart}\({of_paths}")).unwrap();
    let at_points = regex::Regex::new(&format!(r#"\b{apart}\((&?'\.'|"\.")"#)).unwrap();
    assert!(of_paths.is_match(r#"path.starts_with("grad.")"#) && of_paths.is_match(r#"n.path.ends_with(".weights")"#));
    assert!(at_points.is_match("path.rsplit('.')") && !at_points.is_match("text.split(',')"));
    let mut wrong = Vec::new();
    let mut idle: BTreeSet<&str> = OTHER_POINTS.iter().map(|(file, _)| *file).collect();
    for file in files {
        let name = file.strip_prefix(&src).unwrap().to_string_lossy().replace('\\', "/");
        let other = OTHER_POINTS.iter().any(|(file, _)| *file == name);
        for (i, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            let line = line.split("//").next().unwrap_or("");
            let apart = of_paths.is_match(line) && !matches!(name.as_str(), "program/name.rs" | "program/role.rs")
                || at_points.is_match(line) && !other;
            if apart {
                wrong.push(format!("{name}:{}: {}", i + 1, line.trim()));
            }
            if at_points.is_match(line) {
                idle.remove(name.as_str());
            }
        }
    }
    assert!(wrong.is_empty(), "ask `name.site` and `name.role` instead:\n{}", wrong.join("\n"));
    assert!(idle.is_empty(), "they take nothing apart: {idle:?}");
}

/// The paths of a `use` tree: `a::{b, c::{d, self}}` is `a::b`, `a::c::d`, `a::c`.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((head, group)) = tree.split_once('{') else {
        let name = tree.split(" as ").next().unwrap_or(tree);
        paths.push(format!("{prefix}{name}").trim_end_matches("::self").to_owned());
        return;
    };
    let (mut depth, mut start) = (0, 0);
    let group = group.strip_suffix('}').unwrap_or(group);
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !group[start..at].trim().is_empty() {
                    expand(&format!("{prefix}{head}"), &group[start..at], paths);
                }
                start = (at + 1).min(group.len());
            }
            _ => {}
        }
    }
}

/// The modules of `folder` that each of its files names in `use`, whole paths from `crate` on.
fn uses_of_files(src: &Path, folder: &str) -> Vec<(String, Vec<String>)> {
    let mut files = Vec::new();
    source_files(&src.join(folder), &mut files);
    let module = |file: &Path| {
        let name = file.strip_prefix(src).unwrap().with_extension("").display().to_string().replace(['/', '\\'], "::");
        name.strip_suffix("::mod").unwrap_or(&name).to_owned()
    };
    let all: BTreeSet<String> = files.iter().map(|f| module(f)).collect();
    let known = |path: &str| {
        let parts: Vec<&str> = path.split("::").collect();
        (1..=parts.len()).rev().map(|n| parts[..n].join("::")).find(|p| all.contains(p))
    };
    let mut out = Vec::new();
    for file in files.iter().filter(|f| !f.display().to_string().ends_with("tests.rs")) {
        let own = module(file);
        let code = code(&fs::read_to_string(file).unwrap());
        let mut paths = Vec::new();
        for (at, _) in code.match_indices("use ") {
            if let Some(tree) = code[at + 4..]
                .split(';')
                .next()
                .filter(|_| at == 0 || !code[..at].ends_with(|c: char| c.is_alphanumeric()))
            {
                expand("", &tree.replace('\n', " "), &mut paths);
            }
        }
        let used = paths.iter().filter_map(|path| {
            if let Some(rest) = path.strip_prefix("crate::") {
                return known(rest);
            }
            let up = path.matches("super::").count();
            let parts: Vec<&str> = own.split("::").collect();
            let rest = path.rsplit("super::").next()?;
            (up > 0).then(|| known(&format!("{}::{rest}", parts[..parts.len() - up].join("::")))).flatten()
        });
        let used: BTreeSet<String> = used.filter(|used| *used != own && used.contains("::")).collect();
        out.push((own, used.into_iter().collect()));
    }
    out
}

#[test]
fn files_of_the_application_use_each_other_in_one_direction() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut open = uses_of_files(&src, "app");
    assert!(open.len() > 50, "only {} files found", open.len());
    // A folder and its own files are one thing: `mod.rs` says what they share.
    let inside = |a: &str, b: &str| a.starts_with(&format!("{b}::")) || b.starts_with(&format!("{a}::"));
    // What uses nothing that is left can be taken away; a circle remains.
    loop {
        let left: BTreeSet<String> = open.iter().map(|(file, _)| file.clone()).collect();
        let before = open.len();
        open.retain(|(file, used)| used.iter().any(|u| left.contains(u) && !inside(file, u)));
        if open.len() == before {
            break;
        }
    }
    assert!(open.is_empty(), "circles among {open:#?}");
}
