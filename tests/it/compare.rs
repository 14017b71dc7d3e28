//! `compare` over references that PyTorch computed: a correct run raises no difference, in either number type; what is
//! wrong on the command line is reported.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rstest::rstest;
use safetensors::{Dtype, SafeTensors, View};
use serde_json::Value as Json;

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

fn compare(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .arg("compare")
        .args(arguments)
        .env("LC_ALL", "C")
        .output()
        .expect("runs")
}

/// Exit code and what `--json` prints.
fn json(arguments: &[&str]) -> (i32, Json) {
    let out = compare(&[arguments, &["--json"]].concat());
    let reported = String::from_utf8_lossy(&out.stderr);
    let json = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {reported}"));
    (out.status.code().expect("ended"), json)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The activations of a safetensors file in f32, under names of `rename`.
fn narrowed(from: &Path, to: &Path, rename: impl Fn(&str) -> Option<String>) {
    let bytes = std::fs::read(from).expect("readable");
    let tensors = SafeTensors::deserialize(&bytes).expect("safetensors");
    let out: Vec<(String, Raw)> = tensors
        .iter()
        .filter_map(|(name, view)| {
            let name = rename(name)?;
            let data = view
                .data()
                .chunks_exact(8)
                .flat_map(|b| {
                    let x = f64::from_le_bytes(b.try_into().expect("8 bytes"));
                    (x as f32).to_le_bytes()
                })
                .collect();
            Some((name, Raw(Dtype::F32, view.shape().to_vec(), data)))
        })
        .collect();
    let bytes = safetensors::serialize(out, None).expect("serialises");
    std::fs::write(to, bytes).expect("writable");
}

fn agrees(arguments: &[&str], at_least: u64) -> Json {
    let (code, json) = json(arguments);
    assert_eq!(json["verdict"], Json::Null, "{arguments:?}: {:#}", json["verdict"]);
    assert_eq!((code, &json["good"]), (0, &Json::Bool(true)), "{arguments:?}");
    let matched = json["counts"]["match"].as_u64().expect("a number");
    assert!(matched >= at_least, "{arguments:?}: only {matched} match");
    json
}

#[rstest]
fn a_correct_run_raises_no_difference(#[files("tests/data/reference/*.ron")] case: PathBuf) {
    let file = case.with_extension("safetensors");
    let backward = ["training", "backward"];
    let decoder = std::fs::read_to_string(&case).expect("readable").contains("Training");
    let runs = if decoder { &backward[..] } else { &["encode"] };
    let folder = tempfile::tempdir().expect("a folder");
    let f32s = folder.path().join("f32.safetensors");
    narrowed(&file, &f32s, |name| Some(name.to_owned()));
    for run in runs {
        for mode in ["isolated", "cumulative"] {
            let given = [text(&case), text(&file), "--run", run, "--mode", mode];
            let report = agrees(&given, 30);
            let limits = &report["nodes"]
                .as_array()
                .expect("nodes")
                .iter()
                .find(|n| n["path"].as_str().is_some_and(|p| p.ends_with("residual1")))
                .expect("a residual")["limits"];
            assert_eq!((&limits["rms"], &limits["max"]), (&4e-15.into(), &2e-14.into()));
            let report = agrees(&[text(&case), text(&f32s), "--run", run, "--mode", mode], 30);
            let units: Vec<&Json> = report["nodes"]
                .as_array()
                .expect("nodes")
                .iter()
                .filter(|n| n["state"] != "unchecked" && n["reference_shape"] != Json::Null)
                .map(|n| &n["unit"])
                .collect();
            assert!(units.contains(&&Json::from("f32")));
        }
    }
    // Nothing that was expected is left aside, and forward runs do not even drift.
    let report = agrees(&[text(&case), text(&file), "--run", runs[0]], 30);
    assert_eq!(report["counts"]["drift"], 0);
    for name in report["unmatched"].as_array().expect("names") {
        assert!(name.as_str().is_some_and(|n| n.starts_with("gradients.")), "{name}");
    }
}

#[test]
fn the_first_difference_lies_in_an_interval() {
    let case = Path::new("tests/data/reference/encoder_pre_ln_gelu_bias");
    let (scenario, file) = (case.with_extension("ron"), case.with_extension("safetensors"));
    let folder = tempfile::tempdir().expect("a folder");
    // A reference of sublayers only, whose second layer was computed with another activation.
    let broken = folder.path().join("scenario.ron");
    let written = std::fs::read_to_string(&scenario).expect("readable");
    let beside = std::path::absolute(&file).expect("a path");
    let written = written
        .replace("activation: Gelu,", "activation: Relu,")
        .replace("encoder_pre_ln_gelu_bias.safetensors", text(&beside));
    std::fs::write(&broken, written).expect("writable");
    let sparse = folder.path().join("sparse.safetensors");
    narrowed(&file, &sparse, |name| {
        let path = name.strip_prefix("activations.")?;
        let kept = ["residual1", "residual2", "self_attn.out", "ffn.out"];
        kept.iter().any(|k| path.ends_with(k)).then(|| path.to_owned())
    });
    let (code, report) = json(&[text(&broken), text(&sparse)]);
    assert_eq!(code, 1);
    let verdict = &report["verdict"];
    assert_eq!(verdict["path"], "encoder.0.ffn.out");
    assert_eq!(verdict["last_match"]["path"], "encoder.0.residual1");
    let between: Vec<&str> =
        verdict["between"].as_array().expect("places").iter().map(|p| p["path"].as_str().expect("a path")).collect();
    assert_eq!(
        between,
        [
            "encoder.0.norm2.mean",
            "encoder.0.norm2.var",
            "encoder.0.norm2.out",
            "encoder.0.ffn.hidden",
            "encoder.0.ffn.act"
        ]
    );
    assert!(verdict["given"].as_array().expect("paths").contains(&"encoder.0.ffn.w1.weight".into()));
    // The last match, the first difference and what lies between are in order.
    let step = |v: &Json| v["step"].as_u64().expect("a step");
    let steps: Vec<u64> = verdict["between"].as_array().expect("places").iter().map(step).collect();
    assert!(step(&verdict["last_match"]) <= steps[0] && steps.is_sorted());
    assert!(steps[4] <= step(verdict));
    // Each layer is computed from the reference's values: every ffn.out differs for a reason of its own.
    let paths = |report: &Json| -> Vec<String> {
        report["differences"]
            .as_array()
            .expect("differences")
            .iter()
            .map(|d| format!("{}{}", d["path"].as_str().expect("a path"), if d["carried"] == true { "?" } else { "" }))
            .collect()
    };
    let isolated = paths(&report);
    assert!(isolated.iter().all(|p| p.ends_with(".ffn.out")), "{isolated:?}");
    // Computed from our own, everything after the first differs and may be carried.
    let (code, report) = json(&[text(&broken), text(&sparse), "--mode", "cumulative"]);
    assert_eq!((code, &report["verdict"]["path"]), (1, &"encoder.0.ffn.out".into()));
    let cumulative = paths(&report);
    assert_eq!(cumulative[..2], ["encoder.0.ffn.out", "encoder.0.residual2?"]);
    let out = compare(&[text(&broken), text(&sparse)]);
    let reported = String::from_utf8_lossy(&out.stdout);
    for line in [
        "first difference: step",
        "last match: step",
        "between them, not in the reference: steps ",
        "what is given there: encoder.0.norm2.gamma",
    ] {
        assert!(reported.contains(line), "{reported}");
    }
}

#[test]
fn shapes_that_do_not_fit_are_differences() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.safetensors");
    let zeros = |dims: &[usize]| Raw(Dtype::F32, dims.to_vec(), vec![0; 4 * dims.iter().product::<usize>()]);
    let tensors = vec![("encoder.0.self_attn.q", zeros(&[1, 4, 4])), ("other", zeros(&[1]))];
    std::fs::write(&file, safetensors::serialize(tensors, None).expect("serialises")).expect("writable");
    let (code, report) = json(&["water_class", text(&file)]);
    assert_eq!((code, &report["verdict"]["path"]), (1, &"encoder.0.self_attn.q".into()));
    assert_eq!(report["unmatched"], serde_json::json!(["other"]));
    let node = report["nodes"].as_array().expect("nodes").iter().find(|n| n["state"] == "diverged");
    let node = node.expect("a node");
    assert_eq!((&node["reference_shape"], &node["rms"]), (&serde_json::json!([1, 4, 4]), &Json::Null));
    // With its layout, it fits.
    let map = folder.path().join("names.ron");
    std::fs::write(
        &map,
        r#"{"encoder.{L}.self_attn.q": (path: "encoder.{L}.self_attn.q", layout: "b t (h d) -> b h t d")}"#,
    )
    .expect("writable");
    let (code, report) = json(&["water_class", text(&file), "--map", text(&map)]);
    let node = report["nodes"].as_array().expect("nodes").iter().find(|n| n["state"] == "diverged");
    assert_eq!((code, &node.expect("a node")["max"]), (1, &"inf".into()));
}

#[test]
fn two_scenarios_stand_beside_one_another() {
    agrees(&["water_class", "water_class"], 250);
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("other.ron");
    let original = std::fs::read_to_string("scenarios/encoder_char.ron").expect("readable");
    let changed = |change: &dyn Fn(&str) -> String| {
        let edited = change(&original);
        assert_ne!(edited, original);
        std::fs::write(&other, edited).expect("writable");
        let (code, report) = json(&["encoder_char", text(&other), "--run", "encode"]);
        (code, report)
    };
    // One has nodes that the other lacks: the first that both have and that differs is named.
    let (code, report) = changed(&|t| t.replacen("eps_at: BesideSigma", "eps_at: InsideRoot", 1));
    assert_eq!((code, &report["verdict"]["path"]), (1, &"encoder.0.norm1.root".into()));
    assert_eq!(report["verdict"]["last_match"]["path"], "encoder.0.norm1.var");
    let (code, report) = changed(&|t| {
        t.replacen("scale: true", "scale: false", 1).replace("embed.source.scaled", "embed.source.lookup")
    });
    assert_eq!((code, &report["verdict"]["path"]), (1, &"embed.source.out".into()));
    assert_eq!(report["verdict"]["between"][0]["path"], "embed.source.scaled");
    // Each layer has its own, and nothing else differs.
    let (code, report) = changed(&|t| t.replacen("eps: 1e-6", "eps: 1e-5", 1));
    let all = report["differences"].as_array().expect("differences");
    assert_eq!((code, all.len()), (1, 6));
    assert!(all.iter().all(|d| { d["path"].as_str().is_some_and(|p| p.rsplit('.').next() == Some("root")) }));
    // Inputs that differ are where everything begins.
    let (code, report) = changed(&|t| t.replacen("\"我学习\"], sos", "\"我深度\"], sos", 1));
    assert_eq!((code, &report["verdict"]["path"]), (1, &"embed.source.ids".into()));
}

/// Cells that a scenario holds are its own: they differ on whichever side they are.
#[test]
fn edited_cells_of_either_side_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let edited = folder.path().join("edited.ron");
    let out = Command::new(env!("CARGO_BIN_EXE_tui-transformer"))
        .args(["play", "water_class", "-e", "ablate layer encoder.0", "-e"])
        .arg(format!("save {}", text(&edited)))
        .output()
        .expect("runs");
    let reported = String::from_utf8_lossy(&out.stderr);
    assert!(edited.is_file(), "{reported}");
    for mode in ["isolated", "cumulative"] {
        for (a, b) in [(text(&edited), "water_class"), ("water_class", text(&edited))] {
            let (code, report) = json(&[a, b, "--mode", mode]);
            let verdict = report["verdict"]["path"].as_str().unwrap_or_default();
            assert_eq!(code, 1, "{mode}, {a}");
            assert!(verdict.starts_with("encoder.0."), "{mode}, {a}: {verdict}");
            assert_ne!(report["counts"]["match"], 0);
        }
    }
}

#[test]
fn the_measures_of_others() {
    let case = Path::new("tests/data/reference/encoder_pre_ln_gelu_bias");
    let (scenario, file) = (case.with_extension("ron"), case.with_extension("safetensors"));
    let folder = tempfile::tempdir().expect("a folder");
    let f32s = folder.path().join("f32.safetensors");
    narrowed(&file, &f32s, |name| Some(name.to_owned()));
    // 1.3e-6 and 1e-5 hold for a correct run of this size; 1e-7 of each cell fails one, which is why it is not ours.
    let report = agrees(&[text(&scenario), text(&f32s), "--policy", "torch"], 30);
    assert_eq!(report["policy"], "torch");
    let (code, report) = json(&[text(&scenario), text(&f32s), "--policy", "numpy"]);
    assert_eq!((code, &report["policy"]), (1, &"numpy".into()));
    let nodes = report["nodes"].as_array().expect("nodes");
    let diverged = nodes.iter().find(|n| n["state"] == "diverged").expect("one");
    assert_eq!(diverged["limits"], serde_json::json!({ "rtol": 1e-7, "atol": 0.0 }));
    // Limits of one's own are meant: rounding is no excuse.
    let (code, _) = json(&[text(&scenario), text(&f32s), "--rtol", "1e-9"]);
    assert_eq!(code, 1);
    agrees(&[text(&scenario), text(&f32s), "--rtol", "1e-9", "--atol", "1e-4"], 30);
}

#[test]
fn what_cannot_be_compared_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("writable");
        path
    };
    let tensors = vec![("nobody\u{1b}[31m", Raw(Dtype::F32, vec![1], vec![0; 4]))];
    let nobody = at("nobody.safetensors", &safetensors::serialize(tensors, None).expect("serialises"));
    let broken = at("broken.safetensors", b"PK");
    let no_map = at("map.ron", b"{\"a\": 1}");
    let bad_path = at("path.ron", b"{\"nobody{*}\": \"encoder.0.self_attn.qq\"}");
    for (arguments, reported) in [
        (&["water_class", text(&nobody)][..], "stands for numbers of this run"),
        (&["water_class", text(&broken)], "broken.safetensors"),
        (&["water_class", "missing.npz"], "missing.npz"),
        (&["water_class", "missing.ron"], "missing.ron"),
        (&["water_class", text(&nobody), "--map", text(&no_map)], "is no map of names to paths"),
        (&["water_class", text(&nobody), "--map", text(&bad_path)], "did you mean encoder.0.self_attn.q"),
        (&["water_class", text(&nobody), "--map", "missing.json"], "missing.json cannot be read"),
        (&["water_class", text(&nobody), "--run", "none"], "none"),
        (&["water_class", "encoder_char", "--run", "training"], "has no run called training"),
        (&["water_class", text(&nobody), "--rtol=-1"], "--rtol"),
    ] {
        let out = compare(arguments);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(reported) && out.stdout.is_empty(), "{arguments:?}: {stderr}");
        assert!(!stderr.contains('\u{1b}'), "{arguments:?}");
    }
}
