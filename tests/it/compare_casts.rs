//! `compare` with references as other programs write them: in half precision, with steps in a coarser type than the
//! rest, with labels, masks and last rows as transformers has them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rstest::rstest;
use safetensors::{Dtype, SafeTensors, View};
use tui_transformer::debug::compare::alias::Table;
use tui_transformer::debug::compare::{Failed, Mode, Options, Reference, Report, State, Unit, compare};
use tui_transformer::scenario::syntax;
use tui_transformer::session::{self, Session};
use tui_transformer::tensor::Precision;

/// A tensor of a file: its type, its shape, its numbers.
#[derive(Clone)]
struct Stored(Dtype, Vec<usize>, Vec<f64>);

struct Raw(Dtype, Vec<usize>, Vec<u8>);

impl View for Raw {
    fn dtype(&self) -> Dtype {
        self.0
    }
    fn shape(&self) -> &[usize] {
        &self.1
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.2)
    }
    fn data_len(&self) -> usize {
        self.2.len()
    }
}

type File = BTreeMap<String, Stored>;

fn read(path: &Path) -> File {
    let bytes = std::fs::read(path).expect("readable");
    let tensors = SafeTensors::deserialize(&bytes).expect("safetensors");
    let one = |(name, view): (&str, safetensors::tensor::TensorView<'_>)| {
        let data = view.data();
        let numbers: Vec<f64> = match view.dtype() {
            Dtype::F64 => (data.chunks_exact(8)).map(|b| f64::from_le_bytes(b.try_into().expect("8 bytes"))).collect(),
            Dtype::F32 => {
                (data.chunks_exact(4)).map(|b| f64::from(f32::from_le_bytes(b.try_into().expect("4 bytes")))).collect()
            }
            Dtype::I64 => {
                (data.chunks_exact(8)).map(|b| i64::from_le_bytes(b.try_into().expect("8 bytes")) as f64).collect()
            }
            other => panic!("{other:?}"),
        };
        let stored = Stored(view.dtype(), view.shape().to_vec(), numbers);
        (name.to_owned(), stored)
    };
    tensors.iter().map(one).collect()
}

fn reference(file: &File) -> Reference {
    let raw = |Stored(dtype, shape, numbers): &Stored| {
        let each = |&x: &f64| match dtype {
            Dtype::F64 => x.to_le_bytes().to_vec(),
            Dtype::F32 => (x as f32).to_le_bytes().to_vec(),
            Dtype::F16 => half::f16::from_f64(x).to_le_bytes().to_vec(),
            Dtype::BF16 => half::bf16::from_f64(x).to_le_bytes().to_vec(),
            Dtype::I64 => (x as i64).to_le_bytes().to_vec(),
            Dtype::BOOL | Dtype::U8 => vec![x as u8],
            Dtype::I16 => (x as i16).to_le_bytes().to_vec(),
            other => panic!("{other:?}"),
        };
        Raw(*dtype, shape.clone(), numbers.iter().flat_map(each).collect())
    };
    let all: Vec<(&String, Raw)> = file.iter().map(|(name, t)| (name, raw(t))).collect();
    let bytes = safetensors::serialize(all, None).expect("serialises");
    Reference::from_file("cast.safetensors", &bytes).expect("tensors")
}

/// All its numbers in another type; ids and masks stay.
fn cast(file: &mut File, to: Dtype) {
    for Stored(dtype, ..) in file.values_mut().filter(|t| t.0 != Dtype::I64) {
        *dtype = to;
    }
}

fn opened(scenario: &Path, precision: Option<Precision>, change: &dyn Fn(String) -> String) -> Session {
    let text = change(std::fs::read_to_string(scenario).expect("readable"));
    let scenario_read = syntax::read("cast", &text).expect("a scenario");
    let options = session::Options { precision, ..session::Options::default() };
    session::open(scenario_read, Some(scenario), options).expect("opens")
}

fn recorded(model: &str) -> (PathBuf, File) {
    let scenario = PathBuf::from(format!("tests/data/recorded/{model}.ron"));
    let file = read(&scenario.with_extension("recorded.safetensors"));
    (scenario, file)
}

fn compared(session: &Session, file: &File, mode: Mode) -> Report {
    let options = Options { mode, ..Options::default() };
    compare(session, 0, &reference(file), &options).expect("compares")
}

fn paths(report: &Report) -> Vec<&str> {
    (report.differences.iter()).map(|d| d.place.path.as_str()).collect()
}

/// How the nodes that the tensors called `name` denote stand.
fn states(report: &Report, name: &str) -> Vec<State> {
    let named = |c: &&tui_transformer::debug::compare::Checked| c.against.as_ref().is_some_and(|a| a.name == name);
    (report.nodes.iter().filter(named)).map(|c| c.state).collect()
}

/// A small probability is 0 there, means cancel, and yet nothing differs.
#[rstest]
fn halves_of_a_correct_run_raise_no_difference(
    #[values("decoder_gpt2_like", "encoder_decoder_post_ln", "encoder_pre_ln_gelu_bias")] case: &str,
    #[values(Dtype::F16, Dtype::BF16)] to: Dtype,
    #[values(Mode::Isolated, Mode::Cumulative)] mode: Mode,
) {
    let scenario = PathBuf::from(format!("tests/data/reference/{case}.ron"));
    let session = opened(&scenario, None, &|t| t);
    let mut file = read(&scenario.with_extension("safetensors"));
    file.retain(|name, _| name.starts_with("activations."));
    cast(&mut file, to);
    let report = compared(&session, &file, mode);
    assert_eq!(paths(&report), [""; 0]);
    // What is wrong is found all the same.
    let wrong = (file.keys().rev()).find(|name| name.ends_with(".ffn.out")).expect("recorded").clone();
    let out = &mut file.get_mut(&wrong).expect("recorded").2;
    for x in out {
        *x *= 2.0;
    }
    let report = compared(&session, &file, mode);
    assert_eq!(paths(&report)[0], &wrong["activations.".len()..]);
}

/// transformers computes softmax in f32 whatever the model's type is.
#[test]
fn steps_in_a_finer_type_are_as_coarse_as_what_they_come_from() {
    let (scenario, mut file) = recorded("llama");
    let session = opened(&scenario, None, &|t| t);
    cast(&mut file, Dtype::BF16);
    for layer in 0..2 {
        let at = |what: &str| format!("model.layers.{layer}.self_attn.{what}");
        let Stored(_, shape, scores) = file[&at("scores")].clone();
        let keys = *shape.last().expect("an axis");
        let weights = scores.chunks(keys).flat_map(|row| {
            let row: Vec<f64> = (row.iter()).map(|x| half::bf16::from_f64(*x).to_f64().exp()).collect();
            let sum: f64 = row.iter().sum();
            row.into_iter().map(move |x| x / sum)
        });
        let weights = Stored(Dtype::F32, shape, weights.collect());
        file.insert(at("weights"), weights);
    }
    for mode in [Mode::Isolated, Mode::Cumulative] {
        assert_eq!(paths(&compared(&session, &file, mode)), [""; 0], "{mode:?}");
    }
}

/// A binary64 model whose softmax and rotary angles were computed in binary32, as its numbers show.
#[rstest]
fn a_run_that_goes_down_to_binary32_is_held_to_that(#[values(Mode::Isolated, Mode::Cumulative)] mode: Mode) {
    let (scenario, _) = recorded("llama");
    let session = opened(&scenario, Some(Precision::F64), &|t| t);
    let trace = session.trace(0).expect("runs");
    let mut file = File::new();
    for path in ["q", "q_rotated", "masked_scores", "weights"] {
        let path = format!("decoder.0.self_attn.{path}");
        let value = trace.value(trace.program().find(&path).expect("a node"));
        let angle = |x: f64| x * (1.0 + f64::from(f32::EPSILON) / 2.0);
        let cell = |i: usize| match value.get(i) {
            x if path.ends_with("weights") => f64::from(x as f32),
            x if path.ends_with("rotated") => angle(x),
            x => x,
        };
        let cells = (0..value.shape().len()).map(cell).collect();
        let stored = Stored(Dtype::F64, value.shape().dims().to_vec(), cells);
        file.insert(path, stored);
    }
    let report = compared(&session, &file, mode);
    assert_eq!(paths(&report), [""; 0]);
    let unit = |path: &str| {
        let found = report.nodes.iter().find(|c| c.place.path == path);
        found.and_then(|c| c.against.as_ref()).map(|a| a.unit)
    };
    assert_eq!(unit("decoder.0.self_attn.q_rotated"), Some(Unit::F32));
    // Without such a step, all of it is held to binary64.
    file.remove("decoder.0.self_attn.weights");
    let report = compared(&session, &file, mode);
    assert_eq!(paths(&report)[0], "decoder.0.self_attn.q_rotated");
}

/// transformers shifts labels inside a decoder, and −100 is ignored.
#[test]
fn labels_are_those_of_the_next_position() {
    let (scenario, mut file) = recorded("gpt2");
    let ours = "labels: Ids([[17, 8, 2, -1, 6, -1]]),\n    runs: [";
    let session = opened(&scenario, None, &|t| t.replace("runs: [", ours));
    let labels = |ids: [i64; 6]| {
        let ids = ids.iter().map(|&x| x as f64).collect();
        Stored(Dtype::I64, vec![1, 6], ids)
    };
    file.insert("labels".into(), labels([4, 17, 8, 2, -100, 6]));
    let report = compared(&session, &file, Mode::Isolated);
    assert_eq!(paths(&report), [""; 0]);
    assert_eq!(states(&report, "labels"), [State::Match]);
    file.insert("labels".into(), labels([4, 17, 9, 2, -100, 6]));
    let report = compared(&session, &file, Mode::Isolated);
    assert_eq!(paths(&report), ["loss.labels"]);
}

#[rstest]
fn an_inverted_mask_is_found(#[values(Dtype::I64, Dtype::BOOL, Dtype::U8, Dtype::I16)] dtype: Dtype) {
    let (scenario, mut file) = recorded("bert");
    let session = opened(&scenario, None, &|t| t);
    let mask = file.get_mut("attention_mask").expect("recorded");
    mask.0 = dtype;
    let report = compared(&session, &file, Mode::Isolated);
    assert_eq!(paths(&report), [""; 0]);
    assert_eq!(states(&report, "attention_mask"), [State::Match]);
    let mask = file.get_mut("attention_mask").expect("recorded");
    for x in &mut mask.2 {
        *x = 1.0 - *x;
    }
    let report = compared(&session, &file, Mode::Isolated);
    assert_eq!(paths(&report)[0], "encoder.0.self_attn.mask");
    assert_eq!(report.unreadable, []);
}

/// Who generates needs the logits of the last position only. Two names of one node are one node.
#[test]
fn logits_of_the_last_position_stand_beside_the_last_row() {
    let (scenario, mut file) = recorded("gpt2");
    let session = opened(&scenario, None, &|t| t);
    let Stored(dtype, shape, all) = file["logits"].clone();
    let width = shape[2];
    let mut last = Stored(dtype, vec![1, 1, width], all[all.len() - width..].to_vec());
    for name in ["logits", "lm_head"] {
        file.insert(name.into(), last.clone());
    }
    for mode in [Mode::Isolated, Mode::Cumulative] {
        let report = compared(&session, &file, mode);
        assert_eq!(paths(&report), [""; 0]);
        assert_eq!(states(&report, "logits"), [State::Match]);
    }
    last.2[3] += 1.0;
    for name in ["logits", "lm_head"] {
        file.insert(name.into(), last.clone());
    }
    let report = compared(&session, &file, Mode::Isolated);
    let cells = &report.each().find(|c| c.state == State::Diverged).expect("one");
    let cell = &cells.against.as_ref().expect("a tensor").cells[0];
    assert_eq!(cell.index, [0, shape[1] - 1, 3]);
    assert_eq!(report.count(State::Diverged), 1, "it has two names");
}

#[test]
fn a_table_of_names_that_says_nothing_is_told() {
    let (scenario, file) = recorded("gpt2");
    let session = opened(&scenario, None, &|t| t);
    let with = |map: &str| {
        let options = Options { names: Some(Table::read("names.json", map).expect("a table")), ..Options::default() };
        compare(&session, 0, &reference(&file), &options)
    };
    let report = with(r#"{"transformer.h.{L}.lnn_1": "decoder.{L}.norm1.out", "logits": "output.logits"}"#);
    assert_eq!(report.expect("compares").unused, ["transformer.h.{L}.lnn_1"]);
    // Also where another table knows the name.
    let failed = with(r#"{"transformer.h.{L}.ln_1": "decoder.{L}.norm1.outt"}"#);
    let Err(Failed::Nothing(msg)) = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(msg.key, "compare.map.no_path_near");
}

/// A port that looks its positions up without a batch, `wpe(torch.arange(T))`.
#[test]
fn positions_without_a_batch_are_the_same_positions() {
    let (scenario, mut file) = recorded("gpt2");
    let session = opened(&scenario, None, &|t| t);
    let positions = file.get_mut("transformer.wpe").expect("recorded");
    positions.1.retain(|n| *n != 1);
    assert_eq!(positions.1.len(), 2);
    let report = compared(&session, &file, Mode::Isolated);
    assert_eq!(paths(&report), [""; 0]);
    assert_eq!(states(&report, "transformer.wpe"), [State::Match]);
    // Of another length, both shapes are reported, and they differ.
    let positions = file.get_mut("transformer.wpe").expect("recorded");
    positions.1[0] -= 1;
    positions.2.truncate(positions.1[0] * positions.1[1]);
    let report = compared(&session, &file, Mode::Isolated);
    let node = report.of(report.verdict().expect("a difference").place.node).expect("checked");
    assert_ne!(node.shape, node.against.as_ref().expect("a tensor").shape);
}
