//! What is exported for people: words next to ids, labels of the right tokens, tables that fit a page.

use std::process::Command;

fn export(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tui-transformer")).args(["--lang", "en", "export"]).args(arguments).output();
    let output = output.expect("runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn wanted_and_predicted_tokens_of_decoding_calls_are_labelled_alike() {
    let page = export(&["water_class", "--step", "92..94", "--format", "md", "--derivations", "none"]);
    let after = |symbol: &str| -> Vec<(String, String)> {
        let heading = format!("**{symbol}**");
        let tables = page.split(heading.as_str()).skip(1);
        let cell = |line: &str| line.trim_matches('|').trim().to_owned();
        tables
            .map(|t| t.lines().filter(|l| l.starts_with('|')).map(cell).collect::<Vec<_>>())
            .map(|l| (l[0].clone(), l[2].clone()))
            .collect()
    };
    let own = |pairs: [(&str, &str); 3]| pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec();
    assert_eq!(after("predicted\\_id"), own([("I", "7 (courses)"), ("love", "4 (I)"), ("easy", "2 (水)")]));
    assert_eq!(after("target\\_id"), own([("I", "5 (love)"), ("love", "6 (easy)"), ("easy", "7 (courses)")]));
    assert!(after("target\\_p").iter().map(|p| p.0.as_str()).eq(["I", "love", "easy"]));
}

#[test]
fn every_sentence_of_a_batch_has_its_own_labels() {
    let page = export(&["encoder_char", "--step", "2", "--format", "text", "--derivations", "none"]);
    assert!(page.contains("(我)") && page.contains("(<pad>)"), "{page}");
    let page = export(&["encoder_char", "--step", "9", "--format", "text", "--derivations", "none"]);
    let table = |block: &str| page.split(block).last().expect("a table").to_owned();
    let second = table("batch=1, head=0]");
    let header = second.lines().nth(1).expect("labels");
    assert!(header.contains("<pad>"), "{header}");
    let first = table("batch=0, head=0]");
    let first = first.lines().nth(1).expect("labels");
    assert!(!first.contains("<pad>"), "{first}");
}

#[test]
fn wide_tables_are_split_for_a_page() {
    let train_step = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/lessons/residual_norms.ron");
    for format in ["latex", "typst"] {
        let page = export(&[train_step, "--step", "4", "--format", format, "--derivations", "none", "--standalone"]);
        let rows = page.lines().filter(|l| l.contains(" & ") || l.contains("], ["));
        let widest = rows.map(|l| l.matches(" & ").count().max(l.matches("], [").count())).max().expect("tables");
        assert!((4..16).contains(&widest), "{format}: {widest} columns");
        assert!(page.contains("31"), "the last column is there");
    }
    // A part for \\input has nothing before its first section but comments and what it needs.
    let part = export(&["water_class", "--step", "23", "--format", "latex", "--derivations", "none"]);
    let head: Vec<&str> = part.lines().take_while(|l| !l.starts_with("\\section")).collect();
    assert!(head.iter().all(|l| l.is_empty() || l.starts_with('%') || l.starts_with("\\providecommand")), "{head:?}");
}
