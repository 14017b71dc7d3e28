//! Files of tensors opened as they are: order, groups, axes, values, and files that lie or were cut off.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors, serialize, tensor::TensorView};
use tempfile::TempDir;
use tui_transformer::program::NodeId;
use tui_transformer::session::{self, Session, open_recording};
use tui_transformer::source::recording::Recording;
use tui_transformer::tensor::{Axis, Precision, Shape, Tensor, Value};
use tui_transformer::text::Lang;
use tui_transformer::trace::{Trace, ValueSource};

/// A file of tensors: name, type, shape, bytes.
fn write(
    dir: &TempDir,
    tensors: &[(&str, Dtype, &[usize], Vec<u8>)],
    metadata: Option<HashMap<String, String>>,
) -> PathBuf {
    let views = tensors.iter().map(|(name, dtype, shape, data)| {
        (name.to_string(), TensorView::new(*dtype, shape.to_vec(), data).expect("a tensor"))
    });
    let path = dir.path().join("r.safetensors");
    std::fs::write(&path, serialize(views, metadata).expect("serialises")).expect("written");
    path
}

fn floats(data: &[f32]) -> Vec<u8> {
    data.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn open(path: &Path) -> Session {
    open_recording(Recording::open(path).expect("opens"), session::Options::default()).expect("a session")
}

fn run(arguments: &[&str]) -> (String, String, Option<i32>) {
    let out = Command::new(env!("CARGO_BIN_EXE_tui-transformer")).args(arguments).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(out.stdout), text(out.stderr), out.status.code())
}

fn names(session: &Session) -> Vec<String> {
    session.steps.list().iter().map(|s| s.title.render(Lang::En)).collect()
}

#[test]
fn steps_follow_the_recorded_order_or_else_the_names() {
    let dir = TempDir::new().expect("a folder");
    let one = |name| (name, Dtype::F32, &[1][..], floats(&[1.0]));
    let all = [one("logits"), one("h.10.mlp"), one("h.2.mlp"), one("h.2.ln_1"), one("wte")];
    let session = open(&write(&dir, &all, None));
    assert_eq!(names(&session), ["h.2.ln_1", "h.2.mlp", "h.10.mlp", "logits", "wte"]);
    let order = r#"["wte", "h.2.ln_1", "h.2.mlp", "h.10.mlp", "logits"]"#;
    let metadata = HashMap::from([("order".to_owned(), order.to_owned())]);
    let session = open(&write(&dir, &all, Some(metadata)));
    assert_eq!(names(&session), ["wte", "h.2.ln_1", "h.2.mlp", "h.10.mlp", "logits"]);
    let phases: Vec<&str> = session.steps.list().iter().map(|s| s.phase.as_str()).collect();
    assert_eq!(phases, ["output", "h.2", "h.2", "h.10", "output"]);
}

#[test]
fn numbers_of_every_type_are_what_the_file_holds() {
    let dir = TempDir::new().expect("a folder");
    let bytes16 = |x: [u16; 2]| x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let all = [
        ("a_f32", Dtype::F32, &[2][..], floats(&[0.1, f32::NAN])),
        ("b_f16", Dtype::F16, &[2], bytes16([f16::from_f32(1.5).to_bits(), f16::INFINITY.to_bits()])),
        ("c_bf16", Dtype::BF16, &[2], bytes16([bf16::from_f32(-3.0).to_bits(), 0])),
        ("d_f8", Dtype::F8_E4M3, &[2], vec![0x7e, 0x38]),
        ("e_i32", Dtype::I32, &[2], [7i32, -9].iter().flat_map(|x| x.to_le_bytes()).collect()),
        ("f_i64", Dtype::I64, &[1], 5i64.to_le_bytes().to_vec()),
        ("g_bool", Dtype::BOOL, &[3], vec![1, 0, 2]),
        ("h_u8", Dtype::U8, &[], vec![200]),
    ];
    let session = open(&write(&dir, &all, None));
    assert_eq!(session.precision, Precision::F32);
    let trace = session.trace(0).expect("it is there");
    let program = trace.program();
    let values = |name: &str| {
        let value = trace.value(program.find(name).expect("a node"));
        (0..value.shape().len()).map(|i| value.get(i)).collect::<Vec<f64>>()
    };
    assert_eq!(values("a_f32")[0], f64::from(0.1f32));
    assert!(values("a_f32")[1].is_nan());
    assert_eq!(values("b_f16"), [1.5, f64::INFINITY]);
    assert_eq!(values("c_bf16"), [-3.0, 0.0]);
    assert_eq!(values("d_f8"), [448.0, 1.0]);
    assert_eq!(values("e_i32"), [7.0, -9.0]);
    assert_eq!(values("f_i64"), [5.0]);
    assert_eq!(values("g_bool"), [1.0, 0.0, 1.0]);
    assert_eq!(values("h_u8"), [200.0]);
    let wide = [("x", Dtype::F64, &[1][..], 0.1f64.to_le_bytes().to_vec())];
    let session = open(&write(&dir, &wide, None));
    assert_eq!(session.precision, Precision::F64);
    let x = session.trace(0).expect("there").value(session.runs[0].program.find("x").expect("a node"));
    assert_eq!(x.bits(0), 0.1f64.to_bits());
}

/// What transformers recorded of a BERT: attention has queries and keys, and tokens are labelled with their ids.
#[test]
fn axes_and_labels_of_a_recorded_model() {
    let session = open(Path::new("tests/data/recorded/bert.recorded.safetensors"));
    let program = &session.runs[0].program;
    let node = |name: &str| program.find(name).expect("a node");
    let weights = node("encoder.layer.0.attention.self.weights");
    assert_eq!(program.node(weights).shape.axes(), [Axis::Batch, Axis::Head, Axis::Query, Axis::Key]);
    let hidden = node("encoder.layer.1");
    assert_eq!(program.node(hidden).shape.axes(), [Axis::Batch, Axis::Token, Axis::DModel]);
    let label = |axis, i| session.axis_labels(0, weights, axis, 0).get(i);
    assert_eq!(label(2, 1).as_deref(), Some("7"));
    assert_eq!(label(3, 4).as_deref(), Some("19"));
    assert_eq!(label(1, 0), None);
}

#[test]
fn npz_archives_open_too() {
    let path = Path::new("tests/data/good_scenarios/weights.npz");
    let recording = Recording::open(path).expect("opens");
    let bytes = std::fs::read(path).expect("readable");
    let read = tui_transformer::scenario::tensors::read_tensors::<f64>("weights.npz", &bytes).expect("read");
    assert!(!recording.tensors.is_empty());
    for tensor in &recording.tensors {
        let (ours, theirs) = (tensor.numbers().expect("numbers"), &read.numbers[&tensor.name]);
        assert_eq!(ours.data(), theirs.data(), "{}", tensor.name);
        assert_eq!(ours.shape().dims(), theirs.shape().dims());
    }
}

#[test]
fn what_is_inside_a_cut_file_opens_and_the_rest_is_named() {
    let dir = TempDir::new().expect("a folder");
    let all = [("a", Dtype::F32, &[2][..], floats(&[1.0, 2.0])), ("b", Dtype::F32, &[2], floats(&[3.0, 4.0]))];
    let path = write(&dir, &all, None);
    let bytes = std::fs::read(&path).expect("readable");
    std::fs::write(&path, &bytes[..bytes.len() - 4]).expect("written");
    let recording = Recording::open(&path).expect("opens as far as it goes");
    assert_eq!(recording.tensors.len(), 1);
    assert_eq!(recording.tensors[0].numbers().expect("there").data(), [1.0, 2.0]);
    assert_eq!(recording.unreadable.len(), 1);
    assert_eq!(recording.unreadable[0].0, "b");
    let (out, err, code) = run(&["steps", path.to_str().expect("a name")]);
    assert_eq!((code, out.lines().count()), (Some(0), 1));
    assert!(err.contains("cannot be read: b"), "{err}");
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).expect("written");
        if let Ok(recording) = Recording::open(&path) {
            assert!(recording.tensors.iter().all(|t| t.numbers().is_some()));
        }
    }
}

#[test]
fn files_that_lie_are_refused_with_the_reason() {
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join("x.safetensors");
    let refused = |header: &str, data: usize| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(vec![0; data]);
        std::fs::write(&path, &bytes).expect("written");
        Recording::open(&path).expect_err("refused").render(Lang::En)
    };
    let tensor = |name: &str, shape: &str, from: usize, to: usize| {
        format!(r#""{name}": {{"dtype": "F32", "shape": {shape}, "data_offsets": [{from}, {to}]}}"#)
    };
    let two = format!("{{{}, {}}}", tensor("a", "[2]", 0, 8), tensor("b", "[2]", 4, 12));
    assert!(refused(&two, 12).contains("a overlaps b"));
    let twice = format!("{{{}, {}}}", tensor("a", "[1]", 0, 4), tensor("a", "[1]", 4, 8));
    assert!(refused(&twice, 8).contains("twice"));
    let huge = format!("{{{}}}", tensor("a", "[4294967296, 4294967296]", 0, 4));
    assert!(refused(&huge, 4).contains("4294967296"));
    let backwards = format!("{{{}}}", tensor("a", "[1]", 8, 4));
    assert!(refused(&backwards, 8).contains("8..4"));
    assert!(refused("{", 0).contains("x.safetensors"));
    assert!(refused("{}", 0).contains("x.safetensors"));
    std::fs::write(&path, u64::MAX.to_le_bytes()).expect("written");
    assert!(Recording::open(&path).is_err());
    assert!(Recording::open(dir.path()).is_err(), "a folder");
    let (_, err, code) = run(&["steps", path.to_str().expect("a name")]);
    assert_eq!(code, Some(2));
    assert!(err.contains("header of 18446744073709551615 bytes"), "{err}");
}

/// Names are text of strangers: nothing of them reaches the terminal as it is.
#[test]
fn names_with_control_characters_are_escaped() {
    let dir = TempDir::new().expect("a folder");
    let name = "a\u{1b}[2J../../x";
    let path = write(&dir, &[(name, Dtype::F32, &[1], floats(&[1.0]))], None);
    let file = path.to_str().expect("a name");
    for arguments in [vec!["steps", file], vec!["export", file, "--step", "all"], vec!["play", file, "-e", "next"]] {
        let (out, err, _) = run(&arguments);
        assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}'), "{arguments:?}: {out:?} {err:?}");
    }
}

/// What needs no arithmetic works: values by name, the first step that is not a number, export.
#[test]
fn a_recording_is_searched_and_exported() {
    let dir = TempDir::new().expect("a folder");
    let all = [
        ("h.0.mlp", Dtype::F32, &[2, 2][..], floats(&[1.0, 2.0, 3.0, 4.0])),
        ("h.1.mlp", Dtype::F32, &[2, 2], floats(&[1.0, f32::INFINITY, f32::NAN, 4.0])),
    ];
    let path = write(&dir, &all, None);
    let file = path.to_str().expect("a name");
    let (out, _, code) = run(&["play", file, "-e", "print h.0.mlp[1,0]", "-e", "print max(h.0.mlp)"]);
    assert_eq!(code, Some(0));
    assert!(out.contains('3') && out.contains('4'), "{out}");
    let (out, err, code) = run(&["play", file, "-e", "break any nan", "-e", "continue"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("h.1.mlp"), "{out}");
    let (out, _, code) = run(&["export", file, "--step", "1", "--format", "json"]);
    assert_eq!(code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&out).expect("json");
    assert_eq!(json["tensors"][0]["path"], "h.0.mlp");
    assert_eq!(json["tensors"][0]["values"][1][0], 3.0);
    let _ = SafeTensors::deserialize(&std::fs::read(&path).expect("readable")).expect("still whole");
}

/// A file whose reading lets the thread take up other work of its pool meanwhile, as reading on several threads does.
#[derive(Debug)]
struct Shared;

impl ValueSource<f32> for Shared {
    fn has(&self, _: NodeId) -> bool {
        true
    }

    fn read(&self, _: NodeId) -> Option<Value<f32>> {
        rayon::yield_now();
        Some(Value::Float(Tensor::new(Shape::new(&[1]), vec![0.5])))
    }
}

#[test]
fn a_thread_that_reads_a_value_may_take_up_another_reader_of_it() {
    let dir = TempDir::new().expect("a folder");
    let session = open(&write(&dir, &[("h", Dtype::F32, &[1], floats(&[1.0]))], None));
    let trace = Arc::new(Trace::stored(&session.runs[0].program, Arc::new(Shared)));
    let node = trace.program().nodes().next().expect("one").0;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    let (done, read) = std::sync::mpsc::channel();
    for _ in 0..3 {
        let (trace, done) = (Arc::clone(&trace), done.clone());
        pool.spawn(move || done.send(trace.value(node).get(0)).expect("the test waits"));
    }
    for _ in 0..3 {
        assert_eq!(read.recv_timeout(std::time::Duration::from_secs(20)), Ok(0.5));
    }
}
