use std::collections::BTreeMap;

use super::*;
use crate::scenario::schema::InitRule;
use crate::scenario::tensors::read_tensors;
use crate::tensor::Axis;

fn matrix(path: &str, out: usize, width: usize) -> ParamSpec {
    ParamSpec {
        path: path.to_owned(),
        shape: Shape::named(&[(Axis::Out, out), (Axis::In, width)]),
        role: ParamRole::Weight { fan_in: width, fan_out: out },
        heads: 1,
    }
}

fn vector(path: &str, len: usize, role: ParamRole) -> ParamSpec {
    ParamSpec { path: path.to_owned(), shape: Shape::named(&[(Axis::Out, len)]), role, heads: 1 }
}

fn with(init: Init, seed: u64) -> Weights {
    Weights { init: vec![InitRule { paths: "*".to_owned(), with: init }], seed, ..Weights::default() }
}

fn no_file(_: &str) -> Result<PathBuf, Msg> {
    Err(Msg::new("scenario.not_utf8"))
}

fn values<T: Real>(weights: &Weights, specs: &[ParamSpec], path: &str) -> Vec<f64> {
    let (made, _) = load::<T>(weights, specs, &no_file, &|_| None).expect("weights");
    made[path].float().data().iter().map(|x| x.to_f64()).collect()
}

/// Mean, standard deviation, smallest and largest.
fn spread(x: &[f64]) -> (f64, f64, f64, f64) {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let var = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
    let min = x.iter().copied().fold(f64::INFINITY, f64::min);
    (mean, var.sqrt(), min, x.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

#[test]
fn initialisers_have_the_spread_of_their_definition() {
    let w = [matrix("w", 100, 64)];
    let of = |init| spread(&values::<f64>(&with(init, 1), &w, "w"));
    // PyTorch's Linear: uniform in ±1/√in, whose standard deviation is that over √3.
    let (mean, std, min, max) = of(Init::Kaiming);
    let bound = 1.0 / 8.0;
    assert!(min >= -bound && max < bound && min < -0.99 * bound && max > 0.99 * bound);
    assert!(mean.abs() < 0.004 && (std - bound / 3f64.sqrt()).abs() < 0.002);
    let (mean, std, min, max) = of(Init::Xavier);
    let bound = (6.0 / 164.0f64).sqrt();
    assert!(min >= -bound && max < bound && max > 0.99 * bound);
    assert!(mean.abs() < 0.006 && (std - bound / 3f64.sqrt()).abs() < 0.003);
    let (mean, std, ..) = of(Init::Normal { mean: 2.0, std: 0.5 });
    assert!((mean - 2.0).abs() < 0.025 && (std - 0.5).abs() < 0.02);
    let (mean, _, min, max) = of(Init::Uniform { low: 1.0, high: 3.0 });
    assert!((mean - 2.0).abs() < 0.03 && min >= 1.0 && max < 3.0);
    let (mean, std, ..) = of(Init::Constant(0.5));
    assert!((mean, std) == (0.5, 0.0));
}

#[test]
fn a_bias_follows_the_matrix_it_goes_with_and_norms_begin_as_none() {
    let specs = [
        vector("bias", 400, ParamRole::Bias { fan_in: 16 }),
        vector("gamma", 3, ParamRole::Gamma),
        vector("beta", 3, ParamRole::Beta),
    ];
    let kaiming = with(Init::Kaiming, 5);
    let (_, _, min, max) = spread(&values::<f64>(&kaiming, &specs, "bias"));
    assert!(min >= -0.25 && max < 0.25 && max > 0.24);
    assert_eq!(values::<f64>(&kaiming, &specs, "gamma"), [1.0; 3]);
    assert_eq!(values::<f64>(&kaiming, &specs, "beta"), [0.0; 3]);
}

#[test]
fn the_same_seed_gives_the_same_numbers_whatever_stands_before() {
    let (a, b) = (matrix("a", 3, 5), matrix("b", 4, 2));
    let normal = |seed| with(Init::Normal { mean: 0.0, std: 1.0 }, seed);
    let alone = values::<f64>(&normal(7), std::slice::from_ref(&b), "b");
    assert_eq!(alone, values::<f64>(&normal(7), &[a.clone(), b.clone()], "b"));
    assert_eq!(alone, values::<f64>(&normal(7), &[b.clone(), a.clone()], "b"));
    assert_ne!(alone, values::<f64>(&normal(8), &[a.clone(), b.clone()], "b"));
    // Parameters of one shape are not copies of each other, and f32 rounds the same numbers.
    let twins = [matrix("a", 4, 2), b];
    assert_ne!(values::<f64>(&normal(7), &twins, "a"), alone);
    let rounded: Vec<f64> = alone.iter().map(|&x| f64::from(x as f32)).collect();
    assert_eq!(values::<f32>(&normal(7), &twins, "b"), rounded);
}

#[test]
fn the_first_pattern_that_fits_is_used() {
    let rule = |paths: &str, c: f64| InitRule { paths: paths.to_owned(), with: Init::Constant(c) };
    let weights = Weights {
        init: vec![rule("encoder.*.bias", 1.0), rule("encoder.*", 2.0), rule("*", 3.0)],
        ..Weights::default()
    };
    let specs = [
        vector("encoder.0.ffn.w1.bias", 1, ParamRole::Bias { fan_in: 1 }),
        matrix("encoder.0.ffn.w1.weight", 1, 1),
        matrix("output.weight", 1, 1),
    ];
    for (spec, c) in specs.iter().zip([1.0, 2.0, 3.0]) {
        assert_eq!(values::<f64>(&weights, &specs, &spec.path), [c]);
    }
}

/// A safetensors file of one tensor `w` `[2, 2]`.
fn safetensors(dtype: &str, data: &[u8]) -> Vec<u8> {
    let header = format!(r#"{{"w":{{"dtype":"{dtype}","shape":[2,2],"data_offsets":[0,{}]}}}}"#, data.len());
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.extend(data);
    file
}

#[test]
fn every_number_type_of_checkpoints_is_read() {
    let x = [1.5f32, -2.0, 0.25, 1024.0];
    let bytes = |each: &dyn Fn(f32) -> Vec<u8>| x.iter().flat_map(|&x| each(x)).collect::<Vec<u8>>();
    for (dtype, data) in [
        ("F64", bytes(&|x| f64::from(x).to_le_bytes().to_vec())),
        ("F32", bytes(&|x| x.to_le_bytes().to_vec())),
        ("F16", bytes(&|x| half::f16::from_f32(x).to_le_bytes().to_vec())),
        ("BF16", bytes(&|x| half::bf16::from_f32(x).to_le_bytes().to_vec())),
    ] {
        let read = read_tensors::<f64>("w.safetensors", &safetensors(dtype, &data)).expect(dtype);
        assert_eq!(read.numbers["w"].data(), x.map(f64::from), "{dtype}");
        assert!(read.unreadable.is_empty());
    }
}

#[test]
fn tensors_of_other_types_and_slips_in_names_are_told() {
    let file = WeightsOf(safetensors("F8_E4M3", &[1, 2, 3, 4]));
    let reported = file.problems(&[], &[matrix("w", 2, 2)]);
    assert_eq!(reported, [("weights.files[0]", "weights.dtype")]);
    let file = WeightsOf(safetensors("F32", &[0; 16]));
    let reported = file.problems(&[("v", "w"), ("w", "u")], &[matrix("w", 2, 2)]);
    assert_eq!(
        reported[..2],
        [("weights.files[0].names.\"v\"", "weights.unknown"), ("weights.files[0].names.\"w\"", "weights.not_in_file"),]
    );
    let reported = file.problems(&[], &[matrix("w", 2, 3)]);
    assert_eq!(reported, [("weights.files[0]", "weights.file_shape")]);
    let reported = file.problems(&[], &[matrix("x", 2, 3)]);
    assert_eq!(reported, [("weights", "weights.missing")]);
    let reported = WeightsOf(b"PK".to_vec()).problems(&[], &[]);
    assert_eq!(reported, [("weights.files[0].path", "source.unknown_kind")]);
}

/// Weights that are this file and nothing else.
struct WeightsOf(Vec<u8>);

impl WeightsOf {
    /// Path in the data and message of everything that is wrong.
    fn problems(&self, names: &[(&str, &str)], specs: &[ParamSpec]) -> Vec<(&'static str, &'static str)> {
        let weights = Weights {
            files: vec![crate::scenario::schema::WeightFile {
                path: "w.safetensors".to_owned(),
                prefix: String::new(),
                names: names.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
                made: BTreeMap::new(),
                ignore: Vec::new(),
            }],
            ..Weights::default()
        };
        let folder = tempfile::tempdir().expect("a folder");
        let open = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, &self.0).expect("written");
            Ok(path)
        };
        let problems = load::<f64>(&weights, specs, &open, &|_| None).expect_err("something wrong");
        problems.into_iter().map(|p| (&*p.at.leak(), p.msg.key)).collect()
    }
}

#[test]
fn a_later_file_stands_before_an_earlier_one_and_what_is_unused_is_told() {
    let file = |path: &str| crate::scenario::schema::WeightFile {
        path: path.to_owned(),
        prefix: String::new(),
        names: BTreeMap::new(),
        made: BTreeMap::new(),
        ignore: Vec::new(),
    };
    let weights = Weights { files: vec![file("first.safetensors"), file("second.safetensors")], ..Weights::default() };
    let folder = tempfile::tempdir().expect("a folder");
    let open = |name: &str| {
        let x: f32 = if name.starts_with("first") { 1.0 } else { 2.0 };
        let path = folder.path().join(name);
        std::fs::write(&path, safetensors("F32", &x.to_le_bytes().repeat(4))).expect("written");
        Ok(path)
    };
    let (made, coverage) = load::<f64>(&weights, &[matrix("w", 2, 2)], &open, &|_| None).expect("weights");
    assert_eq!(made["w"].float().data(), [2.0; 4]);
    assert_eq!((coverage.from_files, coverage.unused), (1, vec!["w".to_owned()]));
}
