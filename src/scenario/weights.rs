//! Values of the parameters: inline, from files, from seeded initialisers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use globset::GlobBuilder;
use rayon::prelude::*;

use super::diagnostic::{Problem, nearest};
use super::schema::{Init, WeightValue, Weights};
use crate::model::params::{ParamRole, ParamSpec};
use crate::tensor::{Real, Shape, Tensor, Value};
use crate::text::{Msg, escape};
use crate::trace::Bindings;

/// Where the parameters came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Parameters given inline.
    pub inline: usize,
    /// Parameters read from files.
    pub from_files: usize,
    /// Parameters made by initialisers.
    pub initialised: usize,
    /// Tensors of the files that no parameter uses.
    pub unused: Vec<String>,
}

/// The value of every parameter in `specs`. `open` reads a file named in the scenario.
///
/// # Errors
/// Every parameter that is missing, misshapen or not finite, and every file that cannot be read.
pub fn load<T: Real>(
    weights: &Weights,
    specs: &[ParamSpec],
    open: &dyn Fn(&str) -> Result<Vec<u8>, Msg>,
) -> Result<(Bindings<T>, Coverage), Vec<Problem>> {
    let mut problems = Vec::new();
    let mut coverage = Coverage::default();
    let known: BTreeSet<&str> = specs.iter().map(|s| s.path.as_str()).collect();
    for path in weights
        .values
        .keys()
        .filter(|p| !known.contains(p.as_str()))
    {
        let mut problem = Problem::new(
            at(path),
            Msg::new("weights.unknown").arg("path", escape(path)),
        )
        .near(format!("{path:?}"));
        if let Some(near) = nearest(path, known.iter().copied()) {
            problem = problem.help(Msg::new("diagnostic.did_you_mean").arg("name", near));
        }
        problems.push(problem);
    }
    let mut files: Vec<(usize, BTreeMap<String, Tensor<T>>)> = Vec::new();
    for (i, file) in weights.files.iter().enumerate() {
        match open(&file.path).and_then(|bytes| read_tensors(&file.path, &bytes)) {
            Ok(tensors) => files.push((i, tensors)),
            Err(msg) => problems.push(
                Problem::new(format!("weights.files[{i}].path"), msg)
                    .near(format!("{:?}", file.path)),
            ),
        }
    }
    let mut used: BTreeSet<(usize, String)> = BTreeSet::new();
    let mut bindings = Bindings::new();
    let mut to_make: Vec<(&ParamSpec, Init)> = Vec::new();
    'specs: for spec in specs {
        if let Some(value) = weights.values.get(&spec.path) {
            match inline(value, spec) {
                Ok(tensor) => {
                    coverage.inline += 1;
                    bindings.insert(spec.path.as_str().into(), Value::Float(tensor));
                }
                Err(problem) => problems.push(problem),
            }
            continue;
        }
        for (i, tensors) in files.iter().rev() {
            let file = &weights.files[*i];
            let name = file
                .names
                .get(&spec.path)
                .cloned()
                .unwrap_or_else(|| format!("{}{}", file.prefix, spec.path));
            let Some(tensor) = tensors.get(&name) else {
                continue;
            };
            if !tensor.shape().same_dims(&spec.shape) {
                problems.push(Problem::new(
                    format!("weights.files[{i}]"),
                    Msg::new("weights.file_shape")
                        .arg("path", &spec.path)
                        .arg("found", tensor.shape())
                        .arg("wanted", spec.shape),
                ));
                continue 'specs;
            }
            used.insert((*i, name));
            coverage.from_files += 1;
            bindings.insert(
                spec.path.as_str().into(),
                Value::Float(tensor.reshaped(spec.shape)),
            );
            continue 'specs;
        }
        match rule(weights, &spec.path) {
            Some(init) => to_make.push((spec, init)),
            None => problems.push(
                Problem::new(
                    "weights",
                    Msg::new("weights.missing")
                        .arg("path", &spec.path)
                        .arg("shape", spec.shape),
                )
                .help(Msg::new("weights.missing_help").arg("path", &spec.path)),
            ),
        }
    }
    for (i, tensors) in &files {
        let prefix = &weights.files[*i].prefix;
        let left = tensors.keys().filter(|name| {
            name.starts_with(prefix.as_str()) && !used.contains(&(*i, (*name).clone()))
        });
        coverage.unused.extend(left.cloned());
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    coverage.initialised = to_make.len();
    let made: Vec<(&str, Tensor<T>)> = to_make
        .par_iter()
        .map(|(spec, init)| (spec.path.as_str(), make(spec, *init, weights.seed)))
        .collect();
    bindings.extend(
        made.into_iter()
            .map(|(path, tensor)| (path.into(), Value::Float(tensor))),
    );
    Ok((bindings, coverage))
}

fn at(path: &str) -> String {
    format!("weights.values.\"{path}\"")
}

fn inline<T: Real>(value: &WeightValue, spec: &ParamSpec) -> Result<Tensor<T>, Problem> {
    let wrong = |msg: Msg| Problem::new(at(&spec.path), msg).near(format!("{:?}", spec.path));
    let ragged = || {
        wrong(
            Msg::new("weights.ragged")
                .arg("path", &spec.path)
                .arg("wanted", spec.shape),
        )
    };
    let matrix = |rows: &[Vec<f64>]| -> Result<(Vec<f64>, usize, usize), Problem> {
        let cols = rows.first().map_or(0, Vec::len);
        if rows.iter().any(|r| r.len() != cols) {
            return Err(ragged());
        }
        Ok((rows.concat(), rows.len(), cols))
    };
    let transposed = |(data, rows, cols): (Vec<f64>, usize, usize)| {
        let flipped = (0..rows * cols)
            .map(|i| data[i % rows * cols + i / rows])
            .collect();
        (flipped, cols, rows)
    };
    let (data, dims): (Vec<f64>, Vec<usize>) = match value {
        WeightValue::Vector(v) => (v.clone(), vec![v.len()]),
        WeightValue::OutIn(rows) => {
            let (data, r, c) = matrix(rows)?;
            (data, vec![r, c])
        }
        WeightValue::InOut(rows) => {
            let (data, r, c) = transposed(matrix(rows)?);
            (data, vec![r, c])
        }
        WeightValue::Heads(heads) | WeightValue::HeadsInOut(heads) => {
            let mut data = Vec::new();
            let (mut rows, mut cols) = (0, None);
            for head in heads {
                let mut m = matrix(head)?;
                if matches!(value, WeightValue::HeadsInOut(_)) {
                    m = transposed(m);
                }
                if cols.is_some_and(|c| c != m.2) {
                    return Err(ragged());
                }
                data.extend(m.0);
                rows += m.1;
                cols = Some(m.2);
            }
            (data, vec![rows, cols.unwrap_or(0)])
        }
    };
    let found = Shape::new(&dims);
    if !found.same_dims(&spec.shape) {
        return Err(wrong(
            Msg::new("weights.shape")
                .arg("path", &spec.path)
                .arg("found", found)
                .arg("wanted", spec.shape),
        ));
    }
    if let Some(i) = data.iter().position(|x| !x.is_finite()) {
        let cell = &spec.shape.unflat(i)[..spec.shape.rank()];
        return Err(wrong(
            Msg::new("weights.not_finite")
                .arg("path", &spec.path)
                .arg("cell", format!("{cell:?}"))
                .arg("value", data[i]),
        ));
    }
    Ok(Tensor::new(
        spec.shape,
        data.iter().map(|&x| T::from_f64(x)).collect::<Vec<_>>(),
    ))
}

fn rule(weights: &Weights, path: &str) -> Option<Init> {
    let fits = |pattern: &str| {
        GlobBuilder::new(pattern)
            .literal_separator(false)
            .build()
            .is_ok_and(|g| g.compile_matcher().is_match(path))
    };
    if let Some(rule) = weights.init.iter().find(|r| fits(&r.paths)) {
        return Some(rule.with);
    }
    None
}

/// Number `i` of the stream of `path`, uniform in [0, 1).
fn uniform(seed: u64, path: &str, i: u64) -> f64 {
    use crate::program::{Random, RandomKind};
    let stream = path.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    Random {
        seed,
        stream,
        kind: RandomKind::Uniform,
    }
    .eval::<f64>(i)
}

fn make<T: Real>(spec: &ParamSpec, init: Init, seed: u64) -> Tensor<T> {
    let n = spec.shape.len();
    let (fan_in, fan_out) = match spec.role {
        ParamRole::Weight { fan_in, fan_out } => (fan_in, fan_out),
        ParamRole::Bias { fan_in } => (fan_in, n),
        _ => (
            spec.shape.dims().last().copied().unwrap_or(1),
            spec.shape.dims()[0],
        ),
    };
    // γ and β begin where a norm changes nothing, unless a constant or a spread of their own is asked for.
    let fixed = match (spec.role, init) {
        (ParamRole::Gamma, Init::Xavier | Init::Kaiming) => Some(1.0),
        (ParamRole::Beta, Init::Xavier | Init::Kaiming) => Some(0.0),
        (_, Init::Constant(c)) => Some(c),
        _ => None,
    };
    let u = |i: usize| uniform(seed, &spec.path, i as u64);
    let draw = |i: usize| -> f64 {
        if let Some(c) = fixed {
            return c;
        }
        match init {
            Init::Normal { mean, std } => {
                // Box and Muller 1958; both numbers of a pair are used.
                let (a, b) = (1.0 - u(i & !1), u(i | 1));
                let radius = (-2.0 * libm::log(a)).sqrt();
                let angle = std::f64::consts::TAU * b;
                mean + std
                    * radius
                    * if i & 1 == 0 {
                        libm::cos(angle)
                    } else {
                        libm::sin(angle)
                    }
            }
            Init::Uniform { low, high } => low + (high - low) * u(i),
            Init::Xavier => (6.0 / (fan_in + fan_out) as f64).sqrt() * (2.0 * u(i) - 1.0),
            Init::Kaiming => (1.0 / fan_in as f64).sqrt() * (2.0 * u(i) - 1.0),
            Init::Constant(c) => c,
        }
    };
    let data: Vec<T> = (0..n)
        .into_par_iter()
        .with_min_len(4096)
        .map(|i| T::from_f64(draw(i)))
        .collect();
    Tensor::new(spec.shape, data)
}

/// All numeric tensors of a safetensors or npz file.
///
/// # Errors
/// Where the file is neither, or broken.
pub fn read_tensors<T: Real>(name: &str, bytes: &[u8]) -> Result<BTreeMap<String, Tensor<T>>, Msg> {
    let broken = |why: String| {
        Msg::new("weights.broken_file")
            .arg("file", escape(name))
            .arg("why", escape(&why))
    };
    let extension = Path::new(name)
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or("")
        .to_lowercase();
    if extension == "npz" {
        return super::npz::read(bytes).map_err(broken);
    }
    let file = safetensors::SafeTensors::deserialize(bytes).map_err(|e| broken(e.to_string()))?;
    let mut out = BTreeMap::new();
    for (key, view) in file.iter() {
        if view.shape().len() > crate::tensor::MAX_RANK {
            continue;
        }
        let Some(data) = numbers::<T>(view.dtype(), view.data()) else {
            continue;
        };
        out.insert(key.to_owned(), Tensor::new(Shape::new(view.shape()), data));
    }
    Ok(out)
}

/// Little-endian numbers of a type that parameters come in; `None` for another.
fn numbers<T: Real>(dtype: safetensors::Dtype, data: &[u8]) -> Option<Vec<T>> {
    use safetensors::Dtype;
    fn each<T: Real, const N: usize>(data: &[u8], of: impl Fn([u8; N]) -> f64) -> Vec<T> {
        data.chunks_exact(N)
            .map(|b| T::from_f64(of(b.try_into().expect("N bytes"))))
            .collect()
    }
    Some(match dtype {
        Dtype::F64 => each(data, f64::from_le_bytes),
        Dtype::F32 => each(data, |b| f64::from(f32::from_le_bytes(b))),
        Dtype::F16 => each(data, |b| half::f16::from_le_bytes(b).to_f64()),
        Dtype::BF16 => each(data, |b| half::bf16::from_le_bytes(b).to_f64()),
        Dtype::I64 => each(data, |b| i64::from_le_bytes(b) as f64),
        Dtype::I32 => each(data, |b| f64::from(i32::from_le_bytes(b))),
        _ => return None,
    })
}
