//! What is fuzzed, with which seeds, and how inputs are changed. The example runs it for as long as one likes, the
//! tests for a moment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tui_transformer::app::action::Action;
use tui_transformer::app::app::App;
use tui_transformer::app::config::Config;
use tui_transformer::app::input::Input;
use tui_transformer::app::key::{Key, KeyCode};
use tui_transformer::app::settings::Settings;
use tui_transformer::app::{command, effect::Effect};
use tui_transformer::checkpoint::Given;
use tui_transformer::checkpoint::family::Family;
use tui_transformer::debug::compare::alias::Table;
use tui_transformer::debug::condition::Condition;
use tui_transformer::debug::expr::Expr;
use tui_transformer::model::params::{VocabSizes, parameters};
use tui_transformer::model::validate::validate;
use tui_transformer::scenario::schema::Vocabulary;
use tui_transformer::scenario::tensors::read_tensors;
use tui_transformer::scenario::{self, syntax};
use tui_transformer::session::{Options, Session, open, open_trace};
use tui_transformer::source::tokenizer::Tokenizer;
use tui_transformer::text::Lang;

/// A kind of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Ron,
    Safetensors,
    Npz,
    Gguf,
    Trace,
    Family,
    Checkpoint,
    Tokenizer,
    Map,
    Config,
    Commands,
    Expressions,
    Keys,
}

impl Target {
    pub const ALL: [Target; 13] = [
        Target::Ron,
        Target::Safetensors,
        Target::Npz,
        Target::Gguf,
        Target::Trace,
        Target::Family,
        Target::Checkpoint,
        Target::Tokenizer,
        Target::Map,
        Target::Config,
        Target::Commands,
        Target::Expressions,
        Target::Keys,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Target::Ron => "ron",
            Target::Safetensors => "safetensors",
            Target::Npz => "npz",
            Target::Gguf => "gguf",
            Target::Trace => "trace",
            Target::Family => "family",
            Target::Checkpoint => "checkpoint",
            Target::Tokenizer => "tokenizer",
            Target::Map => "map",
            Target::Config => "config",
            Target::Commands => "commands",
            Target::Expressions => "expressions",
            Target::Keys => "keys",
        }
    }

    /// Inputs to begin with: the good and the bad files of the tests, and a few of our own.
    pub fn seeds(self) -> Vec<Vec<u8>> {
        let texts = |all: &[&str]| all.iter().map(|t| t.as_bytes().to_vec()).collect::<Vec<_>>();
        let mut seeds = match self {
            Target::Ron => {
                let mut seeds = files("ron");
                seeds.extend(scenario::EMBEDDED.iter().map(|(_, text)| text.as_bytes().to_vec()));
                seeds
            }
            Target::Safetensors => files("safetensors"),
            Target::Npz => files("npz"),
            Target::Gguf => files("gguf"),
            Target::Trace => {
                let folder = recorded();
                let text = |name: &str| std::fs::read(folder.path().join(name)).expect("it was recorded");
                vec![text("manifest.json")]
            }
            Target::Family => files_in("assets/families", |path| path.extension().is_some_and(|e| e == "ron")),
            Target::Checkpoint => {
                files_in("tests/data/checkpoints", |path| path.file_name().is_some_and(|n| n == "config.json"))
            }
            Target::Tokenizer => {
                files_in("tests/data/checkpoints", |path| path.file_name().is_some_and(|n| n == "tokenizer.json"))
            }
            Target::Map => texts(&[
                r#"{"their.{L}.name": "encoder.{L}.ffn.out"}"#,
                r#"{"a.{L}.q": {"path": "encoder.{L}.self_attn.q", "layout": "b t (h d) -> b h t d"}}"#,
                r#"{"x{*}": [{"path": "embed.source.out"}, {"path": "output.logits"}]}"#,
                r#"{"{L}.{L}": "encoder.{L}.ffn.out"}"#,
                r#"{"w": (path: "encoder.{L-1}.ffn.out", layout: "a b -> b a")}"#,
            ]),
            Target::Config => texts(&[
                include_str!("../../assets/config.template.ron"),
                "(lang: zh, theme: \"light\", glyphs: ascii, digits: 4)",
                "(keys: {\"ctrl-x\": \"quit\", \"g g\": \"first\"})",
            ]),
            Target::Commands => texts(&[
                "go Q1[0,2]",
                "print max(A1) > 0.5",
                "break A1[0,0] > 0.6",
                "watch loss.mean",
                "edit Q1[0,0] = 3",
                "step 40.1",
                "next 3",
                "find enc",
                "why Logits[0,3]",
                "where-to E[0,1]",
                "first-nan",
                "checks",
                "view layers",
                "run training",
                "ablate head 0",
                "export 3 -o a.md",
                "save a.ron",
                "set norm.eps 1e-6",
                "compare other",
                "theme dark",
                "lang zh",
                "in",
                "out",
                "last",
                "back",
                "help",
                "continue",
                "delete 1",
                "round 4",
                "train 5",
                "token 2",
                "print \"decoder.0.ffn.act\"[0,:].sum()",
                "reset",
            ]),
            Target::Expressions => texts(&[
                "A1[0..2,:].sum()",
                "max(abs(Q1 - K1)) <= 1e-3 +- 2",
                "argmax(Logits)",
                "softmax(S).T @ V",
                "it > 3 and not any(nan)",
                "\"a.b\"[1,2] ^ 2",
                "inference:P[0]",
                "x.row_sum().entropy()",
                "1e308 * 10",
            ]),
            Target::Keys => {
                texts(&["jjjkkl", ":go Q1\n", "/enc\nnN", "?q", "vbvbv", "ggGG", "\u{1b}:\t\t\n", "ooO", "123G"])
            }
        };
        if seeds.is_empty() {
            seeds.push(Vec::new());
        }
        seeds
    }

    /// Words that belong to the inputs.
    fn words(self) -> &'static [&'static str] {
        match self {
            Target::Ron => &[
                "0",
                "1",
                "-1",
                "1048577",
                "99999999999999999999",
                "1e400",
                "NaN",
                "inf",
                "Some(",
                "None",
                "()",
                "[]",
                "{}",
                "\"\"",
                "\"\\u{1b}[31m\"",
                "repeat: 0",
                "heads: 3",
                "Learned(max_len: 1)",
                "Rotary()",
                "Sinusoidal()",
                "text: [\"a\"]",
                "ids: [[0]]",
                "pad: 1",
                "pad_side: Left",
                "positions: SkipPadding",
                "labels: Shifted",
                "Forced([Ids([0])])",
                "kv_cache: true",
                "precision: f32",
                "expected: []",
                "symbols: {}",
                "//",
                "/*",
            ],
            Target::Safetensors | Target::Gguf => {
                &["{}", "\"shape\":[9999999999,9999999999]", "[0,8]", "\"F32\"", "\"BF16\"", "\0\0\0\0\0\0\0\u{7f}"]
            }
            Target::Npz => &["PK\u{3}\u{4}", "NUMPY", "(((((((((", "'<f8'", "(1000000000, 1000000000)", "\0\0\0\u{7f}"],
            Target::Trace => &[
                "\"complete\":false",
                "\"version\":99",
                "-1",
                "[]",
                "{}",
                "null",
                "18446744073709551616",
                "\"../x\"",
                "\"F64\"",
            ],
            Target::Family => &[
                "{L}",
                "{E}",
                "has_tensor('x')",
                "//",
                "0",
                "**",
                "(",
                ")",
                "'",
                "rope.scaling",
                "Transpose",
                "Slice(axis: 9)",
                " if ",
            ],
            Target::Checkpoint | Target::Tokenizer => &[
                "0",
                "-1",
                "null",
                "1e400",
                "[]",
                "{}",
                "\"\"",
                "true",
                "\"gelu\"",
                "\"llama\"",
                "18446744073709551616",
                "\"Regex\"",
            ],
            Target::Map => &["{L}", "{N}", "{*}", "{S}", "{E}", "{L-1}", " | ", "->", "(h d)", "\"\"", "[", "{", "1"],
            Target::Config => &["keys: {", "\"ctrl-\"", "\"\"", "digits: 99", "lang:", "theme:", "()", ","],
            Target::Commands | Target::Expressions => &[
                "[",
                "]",
                "(",
                ")",
                "..",
                ":",
                "::",
                "-1",
                "99999999999999999999",
                "1e400",
                "\"",
                ".T",
                "nan",
                "max",
                "=",
                ">",
                "encoder.0.ffn.act",
                "gen.0.",
                "水",
                "\u{202e}",
                "--",
                " ",
                "all",
                "Q1",
                "[0,0]",
            ],
            Target::Keys => &["\u{1b}", "\n", "\t", ":", "/", "?", "g", "G", "q", "水", "0", "999"],
        }
    }
}

/// A run in a folder of its own.
fn recorded() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let options = tui_transformer::session::RecordOptions { overwrite: true, ..Default::default() };
    water_class().record(folder.path(), &options).expect("it records");
    folder
}

/// The files of one kind that the tests have.
fn files(extension: &str) -> Vec<Vec<u8>> {
    files_in("tests/data", |path| path.extension().is_some_and(|e| e == extension))
}

/// The files of a folder and those in it that fit.
fn files_in(folder: &str, fits: impl Fn(&Path) -> bool) -> Vec<Vec<u8>> {
    const LARGEST: u64 = 64 << 10;
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if fits(&path) && entry.metadata().is_ok_and(|m| m.len() <= LARGEST) {
                found.push(path);
            }
        }
    }
    found.sort();
    found.into_iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// SplitMix64 (Steele, Lea and Flood 2014).
pub struct Rng(pub u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// An input: a seed, changed in a few places.
pub fn input(target: Target, seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = seeds[rng.below(seeds.len())].clone();
    for _ in 0..=rng.below(6) {
        let at = rng.below(bytes.len() + 1);
        let len = rng.below(12).min(bytes.len() - at);
        match rng.below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            1 => drop(bytes.drain(at..at + len)),
            2 => bytes.insert(at, rng.next() as u8),
            3 => {
                let part = bytes[at..at + len].to_vec();
                bytes.splice(at..at, part);
            }
            4 => {
                let other = &seeds[rng.below(seeds.len())];
                let from = rng.below(other.len() + 1);
                let to = (from + rng.below(80)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            5 => bytes.truncate(at),
            6 | 7 => {
                let words = target.words();
                let word = words[rng.below(words.len())];
                bytes.splice(at..at + len, word.bytes());
            }
            _ => {
                // A number becomes another.
                let digit = |b: &u8| b.is_ascii_digit();
                if let Some(start) = (at..bytes.len()).find(|i| digit(&bytes[*i])) {
                    let end = (start..bytes.len()).find(|i| !digit(&bytes[*i])).unwrap_or(bytes.len());
                    let numbers = ["0", "1", "2", "7", "255", "65536", "4294967296", "18446744073709551616"];
                    bytes.splice(start..end, numbers[rng.below(numbers.len())].bytes());
                }
            }
        }
    }
    bytes
}

/// Runs inputs of one target.
pub struct Runner {
    target: Target,
    session: Option<Arc<Session>>,
    folder: Option<tempfile::TempDir>,
}

fn water_class() -> Session {
    let loaded = scenario::load(Path::new("water_class")).expect("it comes with the program");
    open(loaded.scenario, None, Options::default()).expect("it opens")
}

/// Numbers that a model is made with at most, and tokens that it reads: a fuzzer finds what is wrong with the reading,
/// not how long a large model takes.
const SMALL: usize = 1 << 14;

impl Runner {
    pub fn new(target: Target) -> Self {
        let session = matches!(target, Target::Commands | Target::Keys).then(|| Arc::new(water_class()));
        let folder = match target {
            Target::Gguf | Target::Tokenizer => Some(tempfile::tempdir().expect("a folder")),
            Target::Checkpoint => {
                let folder = tempfile::tempdir().expect("a folder");
                let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/checkpoints/gpt2/model.safetensors");
                std::fs::copy(from, folder.path().join("model.safetensors")).expect("it is there");
                Some(folder)
            }
            Target::Trace => Some(recorded()),
            _ => None,
        };
        Self { target, session, folder }
    }

    /// Reads one input; what is wrong with it must be said, not panicked about.
    pub fn run(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        match self.target {
            Target::Ron => ron(&text),
            Target::Safetensors => drop(read_tensors::<f64>("fuzz.safetensors", bytes)),
            Target::Npz => drop(read_tensors::<f64>("fuzz.npz", bytes)),
            Target::Gguf => {
                let file = self.folder.as_ref().expect("a folder").path().join("fuzz.gguf");
                std::fs::write(&file, bytes).expect("it is written");
                if let Ok(file) = tui_transformer::source::tensor_file::TensorFile::open(&file) {
                    for entry in file.entries().iter().take(16) {
                        let _ = file.read::<f32>(entry);
                    }
                }
            }
            Target::Trace => {
                let folder = self.folder.as_ref().expect("a folder").path();
                std::fs::write(folder.join("manifest.json"), bytes).expect("it is written");
                if let Ok((session, _)) = open_trace(folder, Options::default()) {
                    for run in 0..session.runs.len() {
                        let _ = session.trace(run);
                    }
                }
            }
            Target::Family => drop(Family::read("fuzz.ron", &text)),
            Target::Checkpoint => {
                let folder = self.folder.as_ref().expect("a folder").path();
                std::fs::write(folder.join("config.json"), bytes).expect("it is written");
                match tui_transformer::checkpoint::open(folder, &Given { ids: Some(vec![1, 2]), ..Given::default() }) {
                    Ok(opened) => drop(scenario::write(&opened.scenario)),
                    Err(d) => drop((d.render(Lang::En), d.render(Lang::Zh))),
                }
            }
            Target::Tokenizer => {
                let file = self.folder.as_ref().expect("a folder").path().join("tokenizer.json");
                std::fs::write(&file, bytes).expect("it is written");
                if let Ok(tokenizer) = Tokenizer::open(&file) {
                    for id in 0..8 {
                        let _ = tokenizer.readable(id);
                    }
                }
            }
            Target::Map => {
                for name in ["fuzz.json", "fuzz.ron"] {
                    let _ = Table::read(name, &text);
                }
            }
            Target::Config => {
                if let Ok((config, warnings)) = Config::parse(&text) {
                    let _ = config.keymap();
                    for warning in warnings {
                        let _ = warning.msg("fuzz", Lang::Zh).render(Lang::Zh);
                    }
                }
            }
            Target::Commands => {
                let _ = command::script(&text, Lang::En);
                let mut app = self.app();
                for line in text.lines().take(4) {
                    if let Ok(action) = Action::parse(line.trim()) {
                        // Training takes its time, also by a short name (`tra 65536`).
                        if !matches!(action, Action::Train(_)) {
                            let _ = app.act(action);
                        }
                    }
                }
            }
            Target::Expressions => {
                match Expr::parse(&text) {
                    Ok(_) => {}
                    Err(e) => {
                        assert!(e.at.start <= text.chars().count());
                        let _ = e.lines(&text, Lang::Zh);
                    }
                }
                let _ = Condition::parse(&text);
            }
            Target::Keys => {
                let mut app = self.app();
                for c in text.chars().take(60) {
                    let key = match c {
                        '\u{1b}' => Key::new(KeyCode::Esc),
                        '\n' => Key::new(KeyCode::Enter),
                        '\t' => Key::new(KeyCode::Tab),
                        c if c.is_control() => {
                            Key { ctrl: true, ..Key::char(((c as u32 as u8 & 0x1f) | 0x60) as char) }
                        }
                        c => Key::char(c),
                    };
                    let effects = app.input(&Input::Key(key));
                    if effects.iter().any(|e| matches!(e, Effect::Quit)) {
                        break;
                    }
                }
                draw(&app, bytes.len());
            }
        }
    }

    fn app(&self) -> App {
        App::new(Arc::clone(self.session.as_ref().expect("a session")), None, Settings::default())
    }
}

#[cfg(feature = "tui")]
fn draw(app: &App, n: usize) {
    use tui_transformer::tui::run::{Still, still};
    use tui_transformer::tui::theme::{Depth, Environment};
    let size = ((n * 7 % 160) as u16, (n * 3 % 50) as u16);
    let _ = still(app, size, Environment { no_color: true, detected: Depth::None }, Still::Text);
}

#[cfg(not(feature = "tui"))]
fn draw(_: &App, _: usize) {}

/// Reads a scenario; a small one is opened and run, and what was read is written and read again.
fn ron(text: &str) {
    let scenario = match syntax::read("fuzz", text) {
        Ok(scenario) => scenario,
        Err(d) => return drop((d.render(Lang::En), d.render(Lang::Zh))),
    };
    let again = syntax::read("fuzz", &scenario::write(&scenario));
    assert!(again.is_ok(), "what was written cannot be read");
    let words = match &scenario.vocabulary {
        Vocabulary::Words(words) => words.len(),
        Vocabulary::Size(n) => *n,
        Vocabulary::Characters(_) | Vocabulary::Tokenizer { .. } => 100,
    };
    let vocab = VocabSizes { source: words, target: words };
    let models = scenario.runs.iter().filter_map(|r| r.with().model.as_ref()).chain([&scenario.model]);
    for model in models {
        if !validate(model, vocab).is_empty() {
            continue;
        }
        let numbers: usize =
            parameters(model, vocab).expect("a model that was validated").iter().map(|p| p.shape.len()).sum();
        if numbers > SMALL || words > SMALL {
            return;
        }
    }
    // What asks for much is refused or takes long: neither is looked for here.
    let large = |n: &str| n.len() > 3 && n.parse::<u64>().is_ok_and(|n| n > 500);
    if text.split(|c: char| !c.is_ascii_digit()).any(large) {
        return;
    }
    let Ok(session) = open(scenario, None, Options::default()) else { return };
    let cells: usize = session.runs.iter().flat_map(|r| r.program.nodes()).map(|(_, n)| n.shape.len()).sum();
    if cells < 1 << 18 {
        for run in 0..session.runs.len() {
            let _ = session.trace(run);
        }
        let _ = tui_transformer::debug::expected::compare(&session);
    }
}
