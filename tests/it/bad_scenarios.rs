//! Scenario files with something wrong: each gives one clear diagnostic on standard error, in both languages, and
//! exit code 2.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// File, line and column, path in the data, and how message and help begin.
type Case = (&'static str, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("a_million_layers", "8:19", "model.encoder.layers", "1000000 layers; 10000 are the most", "each group of layers counts `repeat` times"),
    ("a_model_too_large", "4:5", "model", "the model has > 1000000000000 parameters; 8589934592 are the most", "choose fewer layers, a smaller width or voca"),
    ("attention_too_large", "11:30", "source.length", "the run `encode` over 1000000 tokens would record about 20000265000000", "use fewer tokens, heads or layers"),
    ("base_of_0", "9:31", "model.positions.base", "the base must be a number above 0, not 0", "usual is 10000"),
    ("byte_order_mark", "6:9", "model.haeds", "there is no field `haeds` here", "did you mean `heads`? known here: d_model, h"),
    ("cache_of_a_decoder_that_looks_ahead", "12:67", "runs[0].kv_cache", "the run `inference` keeps keys and values, and `attention.causal` is fa", "set `kv_cache: false`, or leave `attention.c"),
    ("carriage_returns", "6:19", "model.haeds", "there is no field `haeds` here", "did you mean `heads`? known here: d_model, h"),
    ("cell_is_no_number", "12:17", r#"weights.values."embed.weight"[1][1]"#, "a number is needed here, not `x`", "see the embedded scenarios"),
    ("control_characters", "3:58", "vocabulary[5]", r"the word `课\x1b[31m` stands twice in the vocabulary", "keep one of them"),
    ("corpus_missing", "3:29", "vocabulary.corpus_file", "tests/data/bad_scenarios/no_such.txt cannot be read: No such file or d", "give the text in `corpus`, or the name of a "),
    ("cross_attention_in_an_encoder", "8:29", "model.encoder.layers[0].cross_attention", "only a decoder layer beside an encoder can have cross-attention", "leave `cross_attention` out, or add an encod"),
    ("curly_quotes", "13:17", "title.zh", "text in quotes is needed here, not `“水课”`", r#"write text between straight double quotes: ""#),
    ("decoder_of_four_billion_layers", "7:19", "model.decoder.layers", "4294967296 layers; 10000 are the most", "each group of layers counts `repeat` times"),
    ("dropout_of_1", "9:19", "model.dropout.attention", "a dropout rate lies from 0 to below 1, not at 1", "usual is 0.1; 0 is no dropout"),
    ("epsilon_is_nan", "9:16", "model.norm.eps", "ε must be a number that is not negative, not NaN", "usual are 1e-5 and 1e-6"),
    ("expected_of_another_size", "14:58", "expected[0].values", "3 values given, the tensor has 8", "give as many values as the slice has, row by"),
    ("field_twice", "7:9", "model.heads", "the field `heads` stands twice", "see the embedded scenarios"),
    ("fill_that_hides_nothing", "9:21", "model.attention.fill", "a masked score must become a number below 0, not 1000000000", "use `NegInfinity`, `TypeMinimum` or `Value(-"),
    ("fraction_for_a_whole_number", "5:18", "model.d_model", "a whole number is needed here, not `4.5`", "see the embedded scenarios"),
    ("generation_too_long", "12:22", "runs[0].decode", "the run `inference` over 100000 tokens would record about 6000735000000000", "use fewer tokens, heads or layers"),
    ("generation_without_a_decoder", "12:12", "runs[0]", "the run `inference` generates, and for that it needs a decoder with an", "an encoder is run by `Encode()` or `Training"),
    ("head_of_no_head", "6:9", "model.output", "there is no output head to tie or to change", "leave `none` out, or all other settings of the output"),
    ("heads_do_not_divide", "6:9", "model.heads", "3 heads do not divide d_model = 4", "choose a number of heads that divides d_mode"),
    ("id_outside", "11:32", "source.ids[1][1]", "id 7 is outside the vocabulary of 5", "ids go from 0 to 4"),
    ("kv_heads_do_not_divide", "8:43", "model.encoder.layers[1].kv_heads", "4 query heads cannot share 3 key/value heads evenly", "`kv_heads` must divide `heads`: 1 for multi-"),
    ("label_outside", "13:29", "labels[0][3]", "id 9 is outside the vocabulary of 5", "ids go from 0 to 4"),
    ("left_over", "14:1", "", "the scenario ends before this; `水课` is left over", "see the embedded scenarios"),
    ("length_too_short", "11:30", "source.length", "a length of 2 does not fit: the longest sentence has 4 tokens, and 104", "leave `length` out to pad to the longest sen"),
    ("list_for_a_struct", "1:1", "", "`(` is needed here, not `[`", "fields stand in parentheses, also where all "),
    ("many_problems", "10:5", "weights", "the parameter `embed.weight` [vocab 5, d_model 4] has no value", "give it in `values`, in a file, or add an in"),
    ("mask_of_another_shape", "11:28", "source.mask", "the mask must have 1 × 2 × 2 entries", "Keys is (B,T), Row is (B,1,T), Square is (B,"),
    ("mask_of_keys_of_another_shape", "11:28", "source.mask", "the mask must have 1 × 2 entries", "Keys is (B,T), Row is (B,1,T), Square is (B,"),
    ("matrix_the_other_way_round", "12:13", r#"weights.values."encoder.0.ffn.w2.weight""#, "`encoder.0.ffn.w2.weight` is [out 4, in 8], the values are [8, 4]", "the values fit the other way round: write `I"),
    ("missing_colon", "5:17", "model", "a `:` is needed after the name, not `4`", "see the embedded scenarios"),
    ("missing_comma", "6:9", "model", "a comma is missing before `heads`, inside the `(` of line 4, column 12", "put `,` between entries, or close with `)`"),
    ("missing_field", "4:12", "model", "the field `d_ff` is missing", "add `d_ff: …` between these parentheses"),
    ("negative_learning_rate", "12:33", "runs[0].optimiser.lr", "this must be a number above 0, not -0.1", "usual: lr 0.1 for Sgd and 0.001 for Adam, mo"),
    ("negative_size", "5:18", "model.d_model", "-4 is below 0, and this must be 0 or more", "see the embedded scenarios"),
    ("no_heads", "6:9", "model.heads", "0 is not possible; from 1 to 1048576 is", "a Transformer of usual size has d_model 512,"),
    ("no_padding_token", "11:5", "source", "the vocabulary has no `<pad>`", "add `<pad>` to the vocabulary"),
    ("no_projection_and_no_fit", "9:21", "model.attention.out_projection", "without an output projection 2 heads of 3 give 6, and d_model is 4", "choose heads · d_v = d_model, or keep the pr"),
    ("no_runs", "12:5", "runs", "there is no run", "add one to `runs`, such as `Training()` or `"),
    ("no_source", "11:12", "runs[0]", "the run `encode` needs a source for the encoder", r#"add `source: (text: ["…"])`"#),
    ("no_stack", "4:5", "model", "the model has neither an encoder nor a decoder", "add `encoder: (layers: [()])` or `decoder: ("),
    ("no_tokens", "11:5", "source", "there are no tokens", "give sentences in `text` or `ids`"),
    ("no_updates", "12:33", "runs[0].optimiser.steps", "this must be a number above 0, not 0", "usual: lr 0.1 for Sgd and 0.001 for Adam, mo"),
    ("nobody_reads_the_target", "13:5", "target", "there is a target, and the model has no decoder to read it", "what an encoder reads is the `source`"),
    ("nothing_new", "12:54", "runs[0].decode.max_new", "0 new tokens make no sense; from 1 to 100000 do", "say how many tokens may be generated, such a"),
    ("number_too_big", "5:18", "model.d_model", "99999999999999999999999 is too large a number", "see the embedded scenarios"),
    ("odd_rotary_dim", "8:27", "model.positions.dim", "rotary positions turn pairs of components: 3 of a head of 4 is not pos", "the width must be even and at most d_k"),
    ("odd_rotary_width", "4:5", "model.d_k", "rotary positions turn pairs of components: 3 of a head of 3 is not pos", "the width must be even and at most d_k"),
    ("open_at_the_end", "12:22", "", "the file ends while the `(` of line 1, column 1 is still open", "add the missing `)`"),
    ("open_bracket", "8:39", "model.encoder.layers", "`)` stands here while the `[` of line 8, column 27 is still open", "add the missing `]`"),
    ("open_comment", "13:5", "", "the comment that begins here is not closed with `*/`", "see the embedded scenarios"),
    ("open_quote", "13:17", "title.zh", "the text that begins here has no closing quote", r#"close it with `"`; a quote inside is written"#),
    ("parentheses_of_a_struct", "3:28", "vocabulary", "the field `corpus` needs parentheses of its own here", "write `Characters((corpus: …))`"),
    ("past_the_learned_table", "12:5", "source", "4 tokens do not fit a table of 3 positions", "raise `max_len` to 4, or use fewer tokens"),
    ("past_the_table_when_generating", "13:22", "runs[0].decode", "5 tokens do not fit a table of 4 positions", "raise `max_len` to 5, or use fewer tokens"),
    ("pattern_is_broken", "10:23", "weights.init[0].paths", "`enc[` is not a pattern: unclosed character class; missing ']'", "`*` stands for anything: `*.bias`, `encoder."),
    ("ragged_rows", "13:17", r#"weights.values."output.weight"[1]"#, "the rows of `output.weight` are not equally long; it is [vocab 5, d_mo", "every row needs the same number of values"),
    ("run_twice", "12:22", "runs[1].name", "two runs are called `encode`", "give one of them another `name`"),
    ("scale_is_infinite", "9:21", "model.attention.scale", "the scale must be a finite number, not inf", "usual is `SqrtDk`"),
    ("shape_of_the_output_projection", "13:13", r#"weights.values."encoder.0.self_attn.o.weight""#, "`encoder.0.self_attn.o.weight` is [out 4, in 6], the values are [4, 4]", "the shape follows from `model`: q, k are [he"),
    ("shared_table_of_two_sizes", "4:5", "model.embedding.shared", "a shared embedding needs one vocabulary; the source has 5 words, the t", "write `embedding: (shared: false)` for a tab"),
    ("slice_outside", "14:41", "expected[0].slice", "index 5 is outside axis `head` of length 2", "a slice is written `head=0` or `head=0, toke"),
    ("spread_is_negative", "10:23", "weights.init[0].with", "a normal distribution needs a finite mean and a spread of 0 or more, n", "such as `Normal(std: 0.02)`, `Uniform(low: -"),
    ("steps_out_of_order", "15:10", "walkthrough[1].number", "step 2 does not come after the one before it", "number the steps upwards"),
    ("temperature_of_0", "12:66", "runs[0].decode.temperature", "the temperature must be a number above 0, not 0", "1 leaves the probabilities as they are; `Gre"),
    ("text_for_a_number", "5:18", "model.d_model", r#"a whole number is needed here, not `"4"`"#, "`model.d_model` is written like 4"),
    ("too_few_in_a_tuple", "14:49", "walkthrough[0].views[0]", "2 values are needed here, and 1 given", "see the embedded scenarios"),
    ("top_k_of_0", "12:66", "runs[0].decode.top_k", "`top_k` of 0 leaves no token to choose from", "choose from 1 to 5, or leave it out"),
    ("top_p_above_1", "12:66", "runs[0].decode.top_p", "`top_p` lies above 0 and up to 1, not at 1.5", "leave it out to keep all tokens"),
    ("type_outside", "10:28", "source.types", "token type 5 is outside the 2 of the model", "token types go from 0 to `model.embedding.to"),
    ("types_of_a_target_beside_a_source", "12:28", "target.types", "beside an encoder only the source has token types", "leave `types` out here, or give them to the "),
    ("types_without_a_table", "11:28", "source.types", "token types are given, and the model has none", "set `model.embedding.token_types` to how man"),
    ("unknown_activation", "9:27", "model.ffn.activation", "`Gleu` is not one of the choices", "did you mean `Gelu`? known here: Relu, Gelu,"),
    ("unknown_escape", "13:18", "title.zh", "there is no such escape in a text", r"a backslash is written `\\`; known escapes a"),
    ("unknown_extension", "1:11", "", "there is no RON extension `magic`", "see the embedded scenarios"),
    ("unknown_field", "6:9", "model.haeds", "there is no field `haeds` here", "did you mean `heads`? known here: d_model, h"),
    ("unknown_field_after_chinese", "3:55", "备注", "there is no field `备注` here", "known here: name, title, note, precision, di"),
    ("unknown_path", "13:21", r#"symbols."Q".path"#, "the run has no tensor `encoder.0.self_attn.qq`", "did you mean `encoder.0.self_attn.q`?"),
    ("unknown_prefix", "12:49", "runs[0].decode[1]", r#"`冰` in "冰" is not in the vocabulary, and there is no `<unk>`"#, "add it to the vocabulary, or add `<unk>`"),
    ("unknown_run", "14:21", "walkthrough[0].run", "there is no run `encod`", "did you mean `encode`?"),
    ("unknown_symbol", "15:60", "walkthrough[0].views[1]", "there is no symbol `Q2`", "did you mean `Q`?"),
    ("unknown_token", "11:26", "source.text[1]", r#"`冰` in "我爱冰" is not in the vocabulary, and there is no `<unk>`"#, "add it to the vocabulary, or add `<unk>`"),
    ("variant_without_parentheses", "12:18", "runs[0]", "`(` is needed here, not `]`", "`runs[0]` is one of: Training(…), Inference(…), Forward(…), Encode(…)"),
    ("vocabulary_of_a_trillion", "3:5", "vocabulary", "a vocabulary of 1000000000000 words; from 1 to 67108864 are possible", "write the words, or `Size(n)` with their num"),
    ("weight_file_is_broken", "10:24", "weights.files[0].path", "tests/data/bad_scenarios/whitespace_only.ron is neither a safetensors", "safetensors and npz files are read"),
    ("weight_file_is_missing", "10:24", "weights.files[0].path", "tests/data/bad_scenarios/no_such.safetensors cannot be read: No such f", "files are looked for beside the scenario"),
    ("weight_is_missing", "10:5", "weights", "the parameter `output.weight` [vocab 5, d_model 4] has no value", "give it in `values`, in a file, or add an in"),
    ("weight_is_nan", "12:72", r#"weights.values."output.weight"[2][2]"#, "`output.weight` is NaN at [2][2]", "every weight is a finite number"),
    ("weight_of_no_parameter", "12:13", r#"weights.values."encoder.0.self_atn.q.weight""#, "the model has no parameter `encoder.0.self_atn.q.weight`", "did you mean `encoder.0.self_attn.q.weight`?"),
    ("whitespace_only", "", "", "the file is empty", "see the embedded scenarios"),
    ("window_of_0", "9:21", "model.attention.window", "a window of 0 sees nothing, not even the token itself; 1 sees only its", "leave `window` out to see everything"),
    ("word_twice", "3:48", "vocabulary[4]", "the word `我` stands twice in the vocabulary", "keep one of them"),
    ("wrong_struct_name", "1:1", "", "`Scenari` is not the name that belongs here; it is `Scenario`, or noth", "see the embedded scenarios"),
    ("yes_for_true", "9:24", "model.norm.affine", "`true` or `false` is needed here, not `yes`", "`model.norm.affine` is written like true"),
];

fn folder() -> PathBuf {
    // Relative to the package, where tests run: messages name files as they were given.
    PathBuf::from("tests/data/bad_scenarios")
}

fn check(lang: &str, scenario: &Path, stdin: Stdio) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .args(["--lang", lang, "check"])
        .arg(scenario)
        .stdin(stdin)
        .env_remove("RUST_BACKTRACE")
        .output()
        .expect("the binary runs")
}

/// Standard error of a scenario that must be refused, in `lang`.
fn refused(lang: &str, scenario: &Path) -> String {
    let output = check(lang, scenario, Stdio::null());
    let name = scenario.display();
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{name}: {error}");
    assert!(output.stdout.is_empty(), "{name}: something on stdout");
    assert!(!error.contains("panicked"), "{name}: {error}");
    let unsafe_char = |c: char| c.is_control() && c != '\n';
    assert!(!error.contains(unsafe_char), "{name}: {error:?}");
    error
}

/// The diagnostic's own parts: message, place, path, help.
fn parts(error: &str, labels: [&str; 3]) -> (String, String, String, String) {
    let mut lines = error.lines();
    let after =
        |line: Option<&str>, label: &str| line.and_then(|l| l.strip_prefix(label)).map(|l| l.trim_start().to_owned());
    let msg = after(lines.next(), labels[0]).expect("a message");
    let file = after(lines.next(), "  -->").expect("a file");
    let place = file.rsplit_once(".ron:").map_or("", |p| p.1).to_owned();
    let at = after(lines.clone().next(), labels[1]).unwrap_or_default();
    let help = lines.find_map(|l| after(Some(l), labels[2]));
    (msg, place, at, help.expect("help"))
}

const EN: [&str; 3] = ["error:", "   at:", "   help:"];
const ZH: [&str; 3] = ["错误:", "   位置：", "   建议："];

#[test]
fn each_bad_scenario_is_refused_with_place_path_and_help() {
    let mut wrong = String::new();
    for (name, place, at, msg, help) in CASES {
        let file = folder().join(format!("{name}.ron"));
        let found = parts(&refused("en", &file), EN);
        if found.1 != *place || found.2 != *at {
            let _ = writeln!(wrong, "{name}: {} {}", found.1, found.2);
        }
        if !found.0.starts_with(msg) || !found.3.starts_with(help) {
            let _ = writeln!(wrong, "{name}: {} / {}", found.0, found.3);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn in_chinese_places_are_the_same_and_the_text_is_chinese() {
    let chinese = |text: &str| text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
    for (name, place, at, ..) in CASES {
        let file = folder().join(format!("{name}.ron"));
        let found = parts(&refused("zh", &file), ZH);
        assert_eq!((found.1.as_str(), found.2.as_str()), (*place, *at), "{name}");
        assert!(chinese(&found.0) && chinese(&found.3), "{name}: {found:?}");
    }
}

#[test]
fn every_file_of_the_folder_is_a_case() {
    let files = std::fs::read_dir(folder()).expect("the folder");
    let mut files: Vec<String> = files
        .map(|f| f.expect("a file").path())
        .map(|f| f.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    files.sort();
    let cases: Vec<&str> = CASES.iter().map(|c| c.0).collect();
    assert_eq!(files, cases);
}

#[test]
fn the_caret_stands_under_the_place() {
    for (name, place, ..) in CASES.iter().filter(|c| !c.1.is_empty()) {
        let error = refused("en", &folder().join(format!("{name}.ron")));
        let lines: Vec<&str> = error.lines().collect();
        let caret = lines.iter().position(|l| l.trim_end().ends_with("| ^") || l.ends_with(" ^"));
        let caret = caret.unwrap_or_else(|| panic!("{name}: no caret"));
        let line = place.split(':').next().expect("a line");
        assert!(lines[caret - 1].starts_with(&format!(" {line} | ")), "{name}");
        // What is at the caret is what is at the place in the file.
        let cells = tui_transformer::text::width(lines[caret]) - 1;
        let mut shown = lines[caret - 1].chars();
        let mut before = String::new();
        while tui_transformer::text::width(&before) < cells {
            before.push(shown.next().unwrap_or(' '));
        }
        let column: usize = place.split(':').nth(1).and_then(|c| c.parse().ok()).expect("a column");
        let text = std::fs::read_to_string(folder().join(format!("{name}.ron"))).expect("text");
        let text = text.trim_start_matches('\u{feff}');
        let source = text.lines().nth(line.parse::<usize>().expect("a line") - 1).expect("there");
        let here: String = source.chars().skip(column - 1).take(8).collect();
        let here = tui_transformer::text::escape(&here).into_owned();
        assert!(shown.as_str().starts_with(&here), "{name}: {} / {here}", shown.as_str());
    }
}

#[test]
fn many_problems_are_cut_short() {
    let error = refused("en", &folder().join("many_problems.ron"));
    assert_eq!(error.lines().filter(|l| l.starts_with("error:")).count(), 20);
    assert_eq!(error.lines().last(), Some("… and 2 more problems"));
}

#[test]
fn several_problems_are_told_at_once() {
    let error = refused("en", &folder().join("negative_learning_rate.ron"));
    assert!(error.contains("optimiser.lr") && error.contains("optimiser.betas[1]"));
}

/// A file made for one test.
fn made(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("written");
    (folder, path)
}

#[test]
fn files_that_are_no_text_are_refused() {
    let (_keep, empty) = made("empty.ron", b"");
    assert!(refused("en", &empty).starts_with("error: the file is empty"));
    let (_keep, latin) = made("latin.ron", "(name: \"水\",\n title: \"".as_bytes());
    let mut bytes = std::fs::read(&latin).expect("bytes");
    bytes.push(0xe9);
    std::fs::write(&latin, &bytes).expect("written");
    let error = refused("en", &latin);
    let place = parts(&error, EN);
    assert_eq!(place.1, "2:10");
    assert!(place.0.contains(&format!("byte {} is 0xe9", bytes.len())), "{error}");
    let (_keep, wide) = made("utf16.ron", &[0xff, 0xfe, b'(', 0, b')', 0]);
    assert!(refused("en", &wide).contains("UTF-16"));
}

#[test]
fn what_is_no_file_is_refused() {
    assert!(refused("en", &folder()).starts_with("error: this is a directory"));
    let near = refused("en", Path::new("water_clas"));
    assert!(near.contains("did you mean the embedded `water_class`?"), "{near}");
    let far = refused("zh", Path::new("no such scenario"));
    assert!(far.contains("water_class") && far.contains("没有名为"), "{far}");
}

#[cfg(unix)]
#[test]
fn files_without_an_end_and_files_too_large_are_refused() {
    assert!(refused("en", Path::new("/dev/zero")).contains("67108864"));
    let (_keep, path) = made("large.ron", b"(");
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("open");
    // Sparse: the size is reported from its metadata, not by reading.
    file.set_len(1 << 40).expect("a size");
    let start = Instant::now();
    assert!(refused("en", &path).contains("1099511627776"));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn nesting_is_limited_before_anything_recurses() {
    for open in ["(", "[", "{", "Some(", "(a:", "[[{("] {
        let (_keep, path) = made("deep.ron", open.repeat(10_000_000 / open.len()).as_bytes());
        let start = Instant::now();
        let error = refused("en", &path);
        assert!(error.contains("nested too deeply") && error.contains("64"), "{open}: {error:.300}");
        assert!(error.len() < 2000, "{open}");
        assert!(start.elapsed() < Duration::from_secs(20), "{open}");
    }
}

#[test]
fn standard_input_is_diagnosed_too() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .args(["--lang", "en", "check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all("(name: \"水\", nmae: 3)".as_bytes()).expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("an end");
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("--> -:1:13") && error.contains("did you mean `name`?"), "{error}");
}

/// Diagnostics of slips in size come before anything of that size is allocated.
#[cfg(target_os = "linux")]
#[test]
fn slips_in_size_allocate_nothing_large() {
    for name in [
        "vocabulary_of_a_trillion",
        "a_million_layers",
        "a_model_too_large",
        "attention_too_large",
        "generation_too_long",
    ] {
        let file = folder().join(format!("{name}.ron"));
        // An address space of 1 GiB, of which the program itself and its threads take a part.
        let script = "ulimit -v 1048576 && exec \"$0\" --lang en check \"$1\"";
        let start = Instant::now();
        let output = Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_tui-transformer")])
            .arg(&file)
            .output()
            .expect("a shell");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{name}: {error}");
        assert!(error.starts_with("error: ") && !error.contains("panicked"), "{name}: {error}");
        assert!(start.elapsed() < Duration::from_secs(10), "{name}");
    }
}

/// A run that would not fit the memory is refused; one that fits is not.
#[cfg(target_os = "linux")]
#[test]
fn a_run_larger_than_the_memory_is_refused_before_it_starts() {
    for (length, code) in [(29_000, 2), (7_000, 2), (200, 0)] {
        let text = format!(
            r#"(name: "long", vocabulary: Words(["<pad>", "a"]),
                model: (d_model: 4, heads: 1, d_ff: 4, output: (none: true), encoder: (layers: [()])),
                weights: (init: [(with: Xavier)]),
                source: (text: ["a"], length: {length}), runs: [Encode()])"#
        );
        let script = "ulimit -v 1048576 && exec \"$0\" --lang en steps -";
        let mut child = Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_tui-transformer")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(text.as_bytes()).expect("written");
        drop(stdin);
        let output = child.wait_with_output().expect("an end");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{length}: {error}");
        if code == 2 {
            assert!(error.contains("source.length") && error.contains("GiB are free"), "{length}: {error}");
        }
    }
}

/// A pipe that nobody writes to is no file of weights: opening it would wait for ever.
#[cfg(unix)]
#[test]
fn a_pipe_is_no_file_of_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Command::new("mkfifo").arg(folder.path().join("w.npz")).status().expect("mkfifo");
    assert!(made.success());
    let file = folder.path().join("pipe.ron");
    let text = r#"(name: "pipe", vocabulary: Words(["a"]),
        model: (d_model: 4, heads: 1, d_ff: 4, encoder: (layers: [()])),
        weights: (files: [(path: "w.npz")]), source: (text: ["a"]), runs: [Encode()])"#;
    std::fs::write(&file, text).expect("written");
    let output = check("en", &file, Stdio::null());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("w.npz is a pipe or a device"), "{error}");
}
