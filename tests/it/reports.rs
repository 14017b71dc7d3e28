//! Public bug reports and hostile input, each as a small case with the right value, computed elsewhere. The inputs are
//! in `tests/data/reports`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tui_transformer::debug::lints::check;
use tui_transformer::scenario;
use tui_transformer::scenario::lint::Lint;
use tui_transformer::session::{self, Session};
use tui_transformer::text::Lang;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/reports")
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tui-transformer"));
    command.args(arguments).current_dir(folder()).stdin(Stdio::null()).env("LC_ALL", "C").env_remove("LANGUAGE");
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().expect("it starts")
}

fn stdout(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Exit code 2 and a message that has all of `parts`, within a few seconds.
fn refused(arguments: &[&str], parts: &[&str]) {
    let begun = Instant::now();
    let output = run(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}{}", String::from_utf8_lossy(&output.stdout));
    for part in parts {
        assert!(error.contains(part), "{arguments:?}: no `{part}` in {error}");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{arguments:?} took {:?}", begun.elapsed());
}

fn open_text(text: &str, beside: &str) -> Session {
    let file = folder().join(beside);
    let scenario = scenario::syntax::read(beside, text).unwrap_or_else(|d| panic!("{}", d.render(Lang::default())));
    session::open(scenario, Some(&file), session::Options::default()).unwrap_or_else(|p| panic!("{p:?}"))
}

fn open(file: &str) -> Session {
    open_text(&std::fs::read_to_string(folder().join(file)).expect("a file"), file)
}

fn values(session: &Session, path: &str) -> Vec<f64> {
    let trace = session.trace(0).expect("it runs");
    let value = trace.value(trace.program().find(path).unwrap_or_else(|| panic!("{path}")));
    (0..value.shape().len()).map(|i| value.get(i)).collect()
}

fn near(found: &[f64], right: &[f64]) {
    assert_eq!(found.len(), right.len());
    for (a, b) in found.iter().zip(right) {
        assert!((a - b).abs() < 5.1e-5, "{found:?}, not {right:?}");
    }
}

fn lints(session: &Session) -> Vec<(Lint, String, Vec<usize>)> {
    let found = check(session, |_| true).expect("it runs");
    found.into_iter().map(|f| (f.lint, f.path, f.cell)).collect()
}

fn has(session: &Session, lint: Lint) -> bool {
    lints(session).iter().any(|f| f.0 == lint)
}

#[test]
fn padding_on_the_left_leaks_as_padding_on_the_right_does() {
    for file in ["leftpad/wright.ron", "leftpad/wleft.ron"] {
        assert!(has(&open(file), Lint::PaddingLeak), "{file}");
    }
    // A hole between words is padding too.
    let text = std::fs::read_to_string(folder().join("leftpad/wleft.ron")).unwrap();
    assert!(has(
        &open_text(&text.replace("<pad> <pad> a b c", "a <pad> b <pad> c"), "leftpad/x.ron"),
        Lint::PaddingLeak
    ));
}

#[test]
fn positions_that_skip_the_padding_give_the_sentence_alone() {
    let text = std::fs::read_to_string(folder().join("leftpad/model.ron")).unwrap();
    let single = values(&open("leftpad/single.ron"), "output.logits");
    near(&single[26..30], &[-0.2536, 1.2289, -1.8070, -0.0106]);
    let last = |positions: &str, text: &str| {
        let text = text.replace("real: Some", &format!("{positions} real: Some"));
        values(&open_text(&text, "leftpad/x.ron"), "output.logits")[4 * 13..5 * 13].to_vec()
    };
    near(&last("", &text)[..1], &[-0.1028]);
    for positions in ["positions: SkipPadding,", "positions: Ids([[1,1,0,1,2],[0,1,2,3,4]]),"] {
        near(&last(positions, &text), &single[26..39]);
    }
    // The same where positions are waves, or turn the queries and keys.
    for kind in ["Sinusoidal()", "Sinusoidal(layout: Halves)", "Rotary()", "Rotary(layout: Interleaved, dim: 2)"] {
        let with = |t: &str| {
            t.replace("Learned(max_len: 16)", kind)
                .replace("files: [(path: \"weights.npz\")]", "init: [(with: Normal(std: 0.5))]")
        };
        let alone = with(&std::fs::read_to_string(folder().join("leftpad/single.ron")).unwrap());
        let alone = values(&open_text(&alone, "leftpad/x.ron"), "output.logits");
        near(&last("positions: SkipPadding,", &with(&text)), &alone[26..39]);
    }
}

#[test]
fn a_pad_that_is_named_is_padding_wherever_it_is() {
    let alone = values(&open("leftpad/single.ron"), "output.logits");
    let text = std::fs::read_to_string(folder().join("leftpad/pad_left.ron")).unwrap();
    let skipping = text.replace("pad: Some(0)", "pad: Some(0), positions: SkipPadding");
    near(&values(&open_text(&skipping, "leftpad/x.ron"), "output.logits")[52..65], &alone[26..39]);
    // Sentences of different length, padded left by us.
    let text = std::fs::read_to_string(folder().join("leftpad/pad_ragged.ron")).unwrap();
    let left = text.replace("pad: Some(0)", "pad: Some(0), pad_side: Left, positions: SkipPadding");
    near(&values(&open_text(&left, "leftpad/x.ron"), "output.logits")[52..65], &alone[26..39]);
    near(&values(&open_text(&text, "leftpad/x.ron"), "output.logits")[26..39], &alone[26..39]);
    let file = folder().join("leftpad/x.ron");
    let scenario = scenario::syntax::read("x", &text.replace("pad: Some(0)", "pad: Some(99)")).unwrap();
    let problems = session::open(scenario, Some(&file), session::Options::default()).expect_err("no such id");
    assert_eq!((problems[0].at.as_str(), problems[0].msg.key), ("target.pad", "scenario.id_outside"));
}

#[test]
fn where_padding_ends_sentences_the_first_one_counts() {
    for file in ["explicit", "explicit_real", "framed"] {
        near(&values(&open(&format!("padeos/{file}.ron")), "loss.mean"), &[3.4641]);
    }
}

#[test]
fn the_masks_of_one_token_and_of_cross_attention() {
    for name in ["one_token_Square", "one_token_Row", "two_tokens_Square"] {
        let weights = values(&open(&format!("numerics/{name}.ron")), "decoder.0.cross_attn.weights");
        let hidden = name == "one_token_Row";
        let sum: f64 = weights.iter().sum();
        assert_eq!(sum, if hidden { 0.0 } else { 2.0 }, "{name}: {weights:?}");
    }
    let text = std::fs::read_to_string(folder().join("numerics/two_tokens_Square.ron")).unwrap();
    let own = text.replace("mask:", "cross_mask: Square([[[true, false], [false, true]]]), mask:");
    assert_eq!(values(&open_text(&own, "numerics/x.ron"), "decoder.0.cross_attn.weights"), [1.0, 0.0, 0.0, 1.0]);
}

#[test]
fn dropout_divides_by_what_is_kept() {
    let loaded = scenario::load(Path::new("encoder_decoder")).unwrap();
    let session = session::open(loaded.scenario, None, session::Options::default()).unwrap();
    let program = &session.runs[0].program;
    let masks: Vec<_> = program.nodes().filter(|(_, n)| n.path.ends_with("_mask")).map(|(id, _)| id).collect();
    assert!(!masks.is_empty());
    for id in masks {
        let value = session.trace(0).unwrap().value(id);
        let kept = (0..value.shape().len()).map(|i| value.get(i)).find(|x| *x != 0.0).expect("a kept one");
        assert_eq!(kept, 1.0 / 0.9, "{}", program.node(id).path);
    }
    let printed = stdout(&["export", "encoder_decoder", "--step", "7", "--digits", "12"]);
    assert!(printed.contains("1.111111111111") && !printed.contains("1.1111111109"), "{printed}");
}

#[test]
fn a_batch_without_a_label_is_named() {
    let output = run(&["train", "allignored/onerow.ron", "--batch", "1", "--steps", "3"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("sentence 2") && error.contains("0/0"), "{error}");
}

fn losses(arguments: &[&str]) -> Vec<f64> {
    let json: Json = serde_json::from_str(&stdout(arguments)).expect("JSON");
    json["loss"].as_array().expect("losses").iter().map(|x| x.as_f64().expect("a number")).collect()
}

#[test]
fn a_training_that_goes_on_is_as_one_that_was_not_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["Constant", "Cosine", "Linear", "InverseSqrt"] {
        let scenario = format!("resume/r_{name}.ron");
        let state = dir.path().join(name);
        let state = state.to_str().unwrap();
        let whole = losses(&["train", &scenario, "--json"]);
        assert_eq!(whole.len(), 8);
        losses(&["train", &scenario, "--steps", "4", "--save", state, "--json"]);
        let again = losses(&["train", &scenario, "--resume", state, "--steps", "4", "--save", state, "--json"]);
        assert_eq!(again, whole, "{name}");
        if name == "Cosine" {
            near(&whole[4..], &[1.3140, 1.2589, 1.2290, 1.2134]);
        }
        let file = format!("{state}.whole");
        losses(&["train", &scenario, "--save", &file, "--json"]);
        assert_eq!(std::fs::read(state).unwrap(), std::fs::read(&file).unwrap(), "{name}");
    }
    // Dropout, AdamW, warm-up and a cosine together.
    let state = dir.path().join("m");
    let state = state.to_str().unwrap();
    let whole = losses(&["train", "resume/m.ron", "--json"]);
    losses(&["train", "resume/m.ron", "--steps", "3", "--save", state, "--json"]);
    assert_eq!(losses(&["train", "resume/m.ron", "--resume", state, "--steps", "5", "--json"]), whole);
    // Beyond the end of a schedule nothing is learnt, and that is said.
    let output = run(&["train", "resume/r_Cosine.ron", "--steps", "12"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("from update 9 on the learning rate is 0"));
}

#[test]
fn a_file_of_another_kind_is_named_with_what_to_do() {
    for (file, parts) in [
        ("files/m.bin", &["pickle of PyTorch", "save_file"][..]),
        ("files/m.pt", &["pickle of PyTorch", "save_file"]),
        ("files/one.npy", &["one array of NumPy", "savez"]),
        ("files/model.safetensors.index.json", &["shard"]),
    ] {
        refused(&["check", file], parts);
    }
    refused(&["check", "files/w_.ron"], &["one array of NumPy", "savez", "weights.files[0].path"]);
    refused(&["compare", "hostile/plain.ron", "files/one.npy"], &["one array of NumPy"]);
    refused(&["train", "resume/r_Linear.ron", "--resume", "files/m.pt"], &["pickle of PyTorch"]);
    for weights in ["m.bin", "m.pt", "m.gguf", "one.npy", "model.safetensors.index.json"] {
        let dir = tempfile::tempdir().unwrap();
        let text = std::fs::read_to_string(folder().join("files/w_.ron")).unwrap().replace("one.npy", weights);
        std::fs::copy(folder().join("files").join(weights), dir.path().join(weights)).unwrap();
        let file = dir.path().join("x.ron");
        std::fs::write(&file, text).unwrap();
        let output = run(&["check", file.to_str().unwrap()]);
        let error = String::from_utf8_lossy(&output.stderr);
        // An index opens as its shards; here they are missing, and the first is named.
        let named = ["PyTorch", "GGUF", "NumPy", "model-00001-of-00002.safetensors"].iter().any(|k| error.contains(k));
        assert!(output.status.code() == Some(2) && named, "{weights}: {error}");
    }
}

#[test]
fn words_with_a_leading_space_and_letters_of_two_code_points() {
    for (file, ids) in [("1", "1  7  2"), ("4", "8"), ("3", "8"), ("2", "1")] {
        let text = stdout(&["play", &format!("tokens/{file}.ron"), "-e", "print embed.target.ids"]);
        assert!(text.trim_end().ends_with(ids), "{file}: {text}");
    }
}

#[test]
fn what_a_scenario_says_without_effect_is_refused_with_its_place() {
    for (file, parts) in [
        ("tolerance_nan", &["expected[0].tolerance", "cannot fail"][..]),
        ("tolerance_inf", &["expected[0].tolerance", "cannot fail"]),
        ("key_twice_in_values", &["weights.values.\"embed.weight\"", "stands twice"]),
        ("text_and_ids", &["target.ids", "both given"]),
        ("lr_0", &["runs[0].optimiser.lr", "above 0"]),
        ("adam_with_momentum", &["runs[0].optimiser.momentum", "Adam has no `momentum`"]),
    ] {
        refused(&["check", &format!("hostile/{file}.ron")], parts);
    }
    let dir = tempfile::tempdir().unwrap();
    let plain = std::fs::read_to_string(folder().join("hostile/lr_0.ron")).unwrap().replace("lr: 0", "");
    for (from, to, place) in [
        ("d_ff: 4,", "d_ff: 4, norm: (kind: None, eps: 5),", "model.norm.eps"),
        ("d_ff: 4,", "d_ff: 4, norm: (kind: None, affine: false),", "model.norm.affine"),
        ("[()]", "[(norm: Some((kind: None, eps: 5)))]", "model.decoder.layers[0].norm.eps"),
        ("[()]", "[(repeat: 0)]", "model.decoder.layers[0].repeat"),
        ("text: [\"a b a\"]", "text: [\"a b a\"], pad: 99", "target.pad"),
        ("runs:", "symbols: {\"\": (path: \"embed.weight\")}, runs:", "symbols"),
        ("runs:", "symbols: {\"A[0]\": (path: \"embed.weight\")}, runs:", "symbols"),
        ("runs:", "symbols: {\"max\": (path: \"embed.weight\")}, runs:", "symbols"),
        ("runs:", "symbols: {\"1\": (path: \"embed.weight\")}, runs:", "symbols"),
        ("runs:", "expected: [(path: \"loss.mean\", values: [1], relative: NaN)], runs:", "expected[0].relative"),
        ("runs:", "expected: [(path: \"loss.mean\", values: [NaN])], runs:", "expected[0].values"),
        ("optimiser: ()", "optimiser: (betas: (0.5, 0.5))", "runs[0].optimiser.betas"),
    ] {
        let file = dir.path().join("x.ron");
        std::fs::write(&file, plain.replace(from, to)).unwrap();
        assert_ne!(plain.replace(from, to), plain, "{from}");
        refused(&["check", file.to_str().unwrap()], &[place, "help:"]);
    }
}

#[test]
fn steps_that_show_tensors_of_another_run_expand() {
    for scenario in ["post_or_pre", "hostile/two_runs_expand.ron"] {
        let text = stdout(&["steps", scenario, "--expand"]);
        assert!(!text.is_empty());
    }
    let text = stdout(&["steps", "hostile/two_runs_expand.ron", "--expand", "--json"]);
    let steps: Json = serde_json::from_str(&text).unwrap();
    let steps = steps.as_array().unwrap();
    assert!(steps.len() > 2);
    assert!(steps[1..].iter().all(|s| s["run"] == "b"), "{text}");
    stdout(&["play", "post_or_pre", "-e", "last", "-e", "in"]);
}

#[test]
fn archives_with_impossible_headers_are_refused_at_once() {
    for name in ["npz_header_nested", "npz_shape_8TB", "npz_header_4GB"] {
        // As weights nobody asks for the array; as a reference it cannot be read.
        let begun = Instant::now();
        let checked = run(&["check", &format!("hostile/{name}.ron")]);
        assert!(checked.status.code().is_some(), "{name}: {checked:?}");
        let compared = run(&["compare", "hostile/plain.ron", &format!("hostile/{name}.npz")]);
        assert_eq!(compared.status.code(), Some(2), "{name}: {compared:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{name} took {:?}", begun.elapsed());
    }
}

#[test]
fn escape_sequences_of_files_do_not_reach_the_terminal() {
    for arguments in [
        &["play", "water_class", "hostile/session_escape.txt"][..],
        &["play", "water_class", "-e", "go \x1b[31mred"],
        &["check", "\x1b]0;pwned\x07.ron"],
        &["steps", "water_class", "--run", "\x1b[31mred"],
        &["export", "water_class", "--step", "\x1b[2J"],
        &["\x1b[31mcheck", "water_class"],
    ] {
        let output = run(arguments);
        let all = [output.stdout, output.stderr].concat();
        assert!(!all.iter().any(|b| matches!(b, 0x07 | 0x1b)), "{arguments:?}: {}", String::from_utf8_lossy(&all));
    }
}

#[test]
fn a_letter_twice_in_a_map_is_an_error() {
    refused(
        &[
            "compare",
            "hostile/plain.ron",
            "hostile/plain.recorded.safetensors",
            "--map",
            "hostile/map_letter_twice.json",
        ],
        &["map_letter_twice.json", "{L}.{L}", "twice"],
    );
}

#[test]
fn what_has_no_end_is_not_read() {
    refused(&["train", "resume/r_Linear.ron", "--resume", "/dev/zero"], &["/dev/zero", "pipe or a device"]);
    refused(&["compare", "hostile/plain.ron", "/dev/zero.npz"], &["/dev/zero.npz"]);
    refused(&["play", "water_class", "/dev/zero"], &["/dev/zero", "bytes"]);
    refused(&["check", "/dev/zero"], &["/dev/zero"]);
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("state");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    refused(&["train", "resume/r_Linear.ron", "--resume", fifo.to_str().unwrap()], &["pipe or a device"]);
}

#[test]
fn an_update_beyond_the_training_is_refused() {
    for arguments in [
        &["steps", "water_class", "--update", "9223372036854775807"][..],
        &["export", "water_class", "--step", "1", "--update", "4000000000"],
    ] {
        refused(arguments, &["beyond the training's"]);
    }
}

#[test]
fn what_is_read_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("m.ron");
    std::fs::copy(folder().join("resume/r_Linear.ron"), &file).unwrap();
    let before = std::fs::read(&file).unwrap();
    let name = file.to_str().unwrap();
    refused(&["train", name, "--save", name, "--force"], &["m.ron", "another file"]);
    refused(&["export", name, "--step", "1", "-o", name, "--force"], &["m.ron", "another file"]);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn check_says_which_expected_value_differs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.ron");
    let plain = std::fs::read_to_string(folder().join("hostile/lr_0.ron")).unwrap().replace("lr: 0", "");
    let with = |expected: &str| {
        std::fs::write(&file, plain.replace("runs:", &format!("expected: [{expected}], runs:"))).unwrap();
        run(&["check", file.to_str().unwrap(), "--json"])
    };
    let cells = |expected: &str| -> Json {
        let output = with(expected);
        let json: Json = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)));
        json["expected"][0]["cells"].clone()
    };
    let session = open_text(&plain, "hostile/x.ron");
    let embedding = values(&session, "embed.weight");
    let rows = |digits: usize, wrong: usize| {
        let cell = |i: usize| {
            let x = embedding[i] + if i == wrong { 0.25 } else { 0.0 };
            format!("{x:.digits$}")
        };
        let row = |r: usize| format!("[{}]", (0..4).map(|c| cell(4 * r + c)).collect::<Vec<_>>().join(", "));
        format!("[{}]", (0..5).map(row).collect::<Vec<_>>().join(", "))
    };
    let expected = |values: String, rest: &str| format!("(path: \"embed.weight\", values: {values}, {rest})");
    assert_eq!(cells(&expected(rows(5, 99), "")), Json::Array(vec![]));
    let wrong = cells(&expected(rows(5, 6), ""));
    assert_eq!(wrong.as_array().unwrap().len(), 1);
    assert_eq!((&wrong[0]["cell"], &wrong[0]["position"]), (&serde_json::json!([1, 2]), &serde_json::json!(6)));
    assert_eq!(wrong[0]["found"].as_f64(), Some(embedding[6]));
    // As printed: the last digit counts.
    assert_eq!(cells(&expected(rows(2, 99), "printed: 2")), Json::Array(vec![]));
    assert_ne!(cells(&expected(rows(2, 99), "printed: 3")), Json::Array(vec![]));
    assert_eq!(cells(&expected(rows(12, 99), "relative: 1e-9")), Json::Array(vec![]));
    assert_ne!(cells(&expected(rows(4, 99), "relative: 1e-9")), Json::Array(vec![]));
    // In text, with its note.
    with(&expected(rows(5, 6), "note: (en: \"misprint in the book\")"));
    let output = run(&["check", file.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1));
    for part in ["embed.weight[1][2]: expected", "found", "misprint in the book"] {
        assert!(text.contains(part), "{text}");
    }
    // And as a jump of the debugger.
    let played = stdout(&["play", file.to_str().unwrap(), "-e", "checks", "--json"]);
    assert!(played.contains("embed.weight[1][2]") && played.contains("go training:embed.weight[1,2]"), "{played}");
    // Lists must be nested as the axes are.
    let turned = with("(path: \"embed.weight\", values: [[1,2,3,4,5],[1,2,3,4,5],[1,2,3,4,5],[1,2,3,4,5]])");
    assert!(String::from_utf8_lossy(&turned.stderr).contains("4 × 5"));
}

fn found_by(session: &Session, lint: Lint) -> Vec<(String, Vec<usize>)> {
    lints(session).into_iter().filter(|f| f.0 == lint).map(|f| (f.1, f.2)).collect()
}

#[test]
fn the_true_end_token_must_be_taught() {
    let session = open("padeos/collator.ron");
    assert_eq!(found_by(&session, Lint::EndNotTaught), [("loss.labels".to_owned(), vec![0, 4])]);
    let text = stdout(&["check", "padeos/collator.ron"]);
    assert!(text.contains("[0,4], [1,2]") && text.contains("lints: 0 errors, 1 warning"), "{text}");
    for file in ["explicit", "explicit_real", "framed"] {
        assert!(!has(&open(&format!("padeos/{file}.ron")), Lint::EndNotTaught), "{file}");
    }
}

#[test]
fn labels_of_another_sentence_and_doubled_starts() {
    let text = std::fs::read_to_string(folder().join("allignored/onerow.ron")).unwrap();
    let old = "Ids([[3,4,5,6,2,-100],[-100,-100,-100,-100,-100,-100]])";
    let with = |labels: &str| open_text(&text.replace(old, labels), "allignored/x.ron");
    let moved = with("Ids([[3,4,5,6,2,1],[7,3,6,4,2,1]])");
    assert_eq!(found_by(&moved, Lint::LabelOfAnother), [("loss.labels".to_owned(), vec![0, 5])]);
    assert!(!has(&with("Ids([[3,4,5,6,2,-100],[7,3,6,4,2,-100]])"), Lint::LabelOfAnother));
    assert!(!has(&with("Ids([[3,4,5,6,2,5],[7,3,6,4,2,6]])"), Lint::LabelOfAnother));
    let fill = std::fs::read_to_string(folder().join("fill/m.ron")).unwrap();
    let doubled = open_text(&fill.replace("\"b a\"", "\"<sos> b a\""), "fill/x.ron");
    assert_eq!(found_by(&doubled, Lint::StartTwice), [("embed.target.ids".to_owned(), vec![1, 1])]);
    assert!(!has(&open("fill/m.ron"), Lint::StartTwice));
}

#[test]
fn a_fill_that_half_precision_does_not_have() {
    let found = found_by(&open("fill/m.ron"), Lint::FillBeyondType);
    assert_eq!(found, [("decoder.0.self_attn.masked_scores".to_owned(), vec![])]);
    let text = std::fs::read_to_string(folder().join("fill/m.ron")).unwrap();
    for fine in ["NegInfinity", "TypeMinimum", "Value(-6e4)"] {
        assert!(!has(&open_text(&text.replace("Value(-1e9)", fine), "fill/x.ron"), Lint::FillBeyondType), "{fine}");
    }
}

#[test]
fn prompts_of_different_length_are_decoded_as_each_alone() {
    let text = std::fs::read_to_string(folder().join("leftpad/single.ron")).unwrap();
    let with = |positions: &str, decode: &str, cache: bool| {
        let text = text
            .replace("Learned(max_len: 16)", positions)
            .replace("files: [(path: \"weights.npz\")]", "init: [(with: Normal(std: 0.3))], seed: 5")
            .replace("runs: [Training()]", &format!("runs: [Inference(decode: {decode}, kv_cache: {cache})]"));
        open_text(&text, "leftpad/x.ron")
    };
    let prompts = ["[4, 5, 6]", "[7, 8, 9, 10, 11]", "[2]"];
    for positions in ["Learned(max_len: 16)", "Sinusoidal()", "Rotary()", "None"] {
        for cache in [false, true] {
            let from = prompts.map(|p| format!("Ids({p})")).join(", ");
            let batch = with(positions, &format!("Batch(from: [{from}], max_new: 4)"), cache);
            for (row, prompt) in prompts.iter().enumerate() {
                let alone = with(positions, &format!("Greedy(from: Ids({prompt}), max_new: 4)"), cache);
                for call in 0..4 {
                    let ids = |s: &Session| values(s, &format!("gen.{call}.next.id"));
                    assert_eq!(ids(&batch)[row], ids(&alone)[0], "{positions} {prompt} {call}");
                    let last = |s: &Session, row: usize, rows: usize| {
                        let all = values(s, &format!("gen.{call}.output.probs"));
                        let each = all.len() / rows;
                        all[(row + 1) * each - 13..(row + 1) * each].to_vec()
                    };
                    let (ours, theirs) = (last(&batch, row, 3), last(&alone, 0, 1));
                    for (a, b) in ours.iter().zip(&theirs) {
                        assert!((a - b).abs() < 1e-12, "{positions} {prompt} {call}: {a} {b}");
                    }
                }
            }
            assert!(lints(&batch).iter().all(|f| f.0 != Lint::CacheDiffers), "{positions}");
        }
    }
}

#[test]
fn a_norm_that_is_taken_away_takes_its_settings_with_it() {
    let plain = std::fs::read_to_string(folder().join("hostile/lr_0.ron")).unwrap().replace("lr: 0", "");
    let text = plain.replace("d_ff: 4,", "d_ff: 4, norm: (affine: false, eps: 1e-3),");
    let scenario = scenario::syntax::read("x", &text).expect("a scenario");
    let changed = scenario::set(&scenario, "model.norm.kind", "none").expect("it can be set");
    let norm = &changed.model.norm;
    assert!(norm.affine && norm.eps == 1e-5, "{norm:?}");
    let file = folder().join("hostile/x.ron");
    assert!(session::open(changed, Some(&file), session::Options::default()).is_ok());
}
