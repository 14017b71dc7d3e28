//! Values of the parameters: inline, from files, from seeded initialisers.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::diagnostic::Problem;
use super::files::{Weighty, in_chunks};
use super::rewrite::{self, Plan, Rewrite};
use super::schema::{Init, WeightFile, WeightValue, Weights};
use crate::kernels::normals;
use crate::model::params::{ParamRole, ParamSpec};
use crate::tensor::{Buffer, Real, Shape, Tensor, Value};
use crate::text::{Msg, escape, nearest};
use crate::trace::Bindings;
use globset::GlobBuilder;

/// Where the parameters came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Coverage {
    /// Parameters given inline.
    pub inline: usize,
    /// Parameters read from files.
    pub from_files: usize,
    /// Parameters made by initialisers.
    pub initialised: usize,
    /// Tensors of the files that no parameter uses.
    pub unused: Vec<String>,
    /// Parameters that the files lack and that a rule for everything made, although there are files.
    pub made_up: Vec<String>,
    /// Patterns of initialisers that no parameter has a path for.
    pub idle: Vec<String>,
}

/// The value of every parameter in `specs`. `locate` gives the path of a file named in the scenario; a parameter that `have` gives is
/// not looked for.
///
/// # Errors
/// Every parameter that is missing, misshapen or not finite, and every file that cannot be read.
pub fn load<T: Real>(
    weights: &Weights,
    specs: &[ParamSpec],
    locate: &dyn Fn(&str) -> Result<PathBuf, Msg>,
    have: &dyn Fn(&ParamSpec) -> Option<Value<T>>,
) -> Result<(Bindings<T>, Coverage), Vec<Problem>> {
    let mut bindings: Bindings<T> = specs.iter().filter_map(|s| Some((s.path.as_str().into(), have(s)?))).collect();
    let all_there = !specs.is_empty() && bindings.len() == specs.len();
    let mut problems = Vec::new();
    let mut coverage = Coverage::default();
    let known: BTreeSet<&str> = specs.iter().map(|s| s.path.as_str()).collect();
    for path in weights.values.keys().filter(|p| !known.contains(p.as_str())) {
        let mut problem =
            Problem::new(at(path), Msg::new("weights.unknown").arg("path", escape(path))).near(format!("{path:?}"));
        if let Some(near) = nearest(path, known.iter().copied()) {
            problem = problem.help(Msg::new("diagnostic.did_you_mean").arg("name", near));
        }
        problems.push(problem);
    }
    let mut files: Vec<(usize, Arc<Weighty<T>>)> = Vec::new();
    for (i, file) in weights.files.iter().enumerate().filter(|_| !all_there) {
        let at = format!("weights.files[{i}]");
        let wanted: BTreeSet<String> = specs.iter().flat_map(|spec| Source::of(file, &spec.path).from).collect();
        match Weighty::open(&file.path, locate, &|name| wanted.contains(name)) {
            Ok(tensors) => {
                problems.extend(names(&at, file, &known, &tensors));
                files.push((i, Arc::new(tensors)));
            }
            Err(msg) => {
                let absent = msg.key == "scenario.unreadable" || msg.key == "source.unreadable";
                let problem = Problem::new(format!("{at}.path"), msg);
                let help = if absent { "weights.no_file_help" } else { "weights.broken_file_help" };
                let helped = problem.help.is_some() && !absent;
                problems.push(if helped { problem } else { problem.help(Msg::new(help)) });
            }
        }
    }
    let mut used: BTreeSet<(usize, String)> = BTreeSet::new();
    let mut to_make: Vec<(&ParamSpec, Init)> = Vec::new();
    let broken_pattern = (weights.init.iter()).any(|r| GlobBuilder::new(&r.paths).build().is_err());
    'specs: for spec in specs {
        if bindings.contains_key(spec.path.as_str()) {
            continue;
        }
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
            let source = Source::of(&weights.files[*i], &spec.path);
            match source.read(tensors, spec, &format!("weights.files[{i}]")) {
                Ok(Some(tensor)) => {
                    used.extend(source.from.into_iter().map(|name| (*i, name)));
                    coverage.from_files += 1;
                    bindings.insert(spec.path.as_str().into(), Value::Float(tensor));
                    continue 'specs;
                }
                Ok(None) => {}
                Err(problem) => {
                    problems.push(problem);
                    continue 'specs;
                }
            }
        }
        match rule(weights, &spec.path) {
            Some((pattern, init)) => {
                if !files.is_empty() && pattern == "*" {
                    coverage.made_up.push(spec.path.clone());
                }
                to_make.push((spec, init));
            }
            // What a broken pattern was meant to hold for is not known; the pattern itself is a problem reported elsewhere.
            None if broken_pattern => {}
            None => problems.push(
                Problem::new("weights", Msg::new("weights.missing").arg("path", &spec.path).arg("shape", spec.shape))
                    .help(Msg::new("weights.missing_help").arg("path", &spec.path)),
            ),
        }
    }
    for (i, tensors) in &files {
        let file = &weights.files[*i];
        let left = tensors.names().filter(|name| {
            name.starts_with(file.prefix.as_str())
                && !used.contains(&(*i, (*name).to_owned()))
                && !file.ignore.iter().any(|pattern| fits(pattern, name))
        });
        coverage.unused.extend(left.map(str::to_owned));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    coverage.initialised = to_make.len();
    coverage.idle = idle(weights, specs);
    let made = to_make.into_iter().map(|(spec, init)| (spec.path.as_str(), make(spec, init, weights.seed)));
    bindings.extend(made.map(|(path, tensor)| (path.into(), Value::Float(tensor))));
    Ok((bindings, coverage))
}

/// Most names of a file that a message lists.
const MAX_NAMED: usize = 8;

/// Where a parameter comes from in a file.
struct Source<'w> {
    /// Names in the file.
    from: Vec<String>,
    with: &'w [Rewrite],
    /// Whether the tensors are stacked along a new first axis.
    stacked: bool,
    file: &'w str,
}

impl<'w> Source<'w> {
    fn of(file: &'w WeightFile, path: &str) -> Self {
        if let Some(made) = file.made.get(path) {
            let stacked = made.from.len() > 1;
            return Self { from: made.from.clone(), with: &made.with, stacked, file: &file.path };
        }
        let name = file.names.get(path).cloned().unwrap_or_else(|| format!("{}{path}", file.prefix));
        Self { from: vec![name], with: &[], stacked: false, file: &file.path }
    }

    /// The parameter; `None` where the file does not have its tensors.
    fn read<T: Real>(
        &self,
        tensors: &Arc<Weighty<T>>,
        spec: &ParamSpec,
        at: &str,
    ) -> Result<Option<Tensor<T>>, Problem> {
        let mut parts: Vec<(String, Plan)> = Vec::new();
        for name in &self.from {
            let Some(info) = tensors.info(name) else {
                return Ok(None);
            };
            if let Err(dtype) = &info.usable {
                let msg = Msg::new("weights.dtype").arg("name", escape(name)).arg("file", escape(self.file));
                return Err(Problem::new(at, msg.arg("dtype", dtype)));
            }
            let plan = Plan::new(&info.dims, self.with).map_err(|unfit| {
                let msg = Msg::new("weights.rewrite").arg("name", escape(name));
                let msg = msg.arg("rewrite", unfit.rewrite).arg("shape", unfit.shape);
                Problem::new(format!("{at}.made.\"{}\"", spec.path), msg)
            })?;
            let stack: &[usize] = if self.stacked { &[self.from.len()] } else { &[] };
            let found: Vec<usize> = stack.iter().chain(plan.dims()).copied().collect();
            let fits = found == spec.shape.dims() || !self.with.is_empty() && long(&found) == long(spec.shape.dims());
            if !fits {
                let msg = Msg::new("weights.file_shape").arg("path", &spec.path).arg("found", rewrite::shape(&found));
                return Err(Problem::new(at, msg.arg("wanted", spec.shape)));
            }
            parts.push((name.clone(), plan));
        }
        if let [(name, plan)] = parts.as_slice()
            && plan.is_plain()
            && let Some(mapped) = tensors.in_place(name)
        {
            return Ok(Some(Tensor::new(spec.shape, mapped)));
        }
        let file = Arc::clone(tensors);
        let numbers = move || -> Option<Vec<T>> {
            let mut data = Vec::new();
            for (name, plan) in &parts {
                let numbers = file.rewritten(name, plan)?;
                if data.is_empty() {
                    data = numbers;
                } else {
                    data.extend(numbers);
                }
            }
            Some(data)
        };
        if tensors.is_mapped() {
            // Of a type that is read, as was looked at above: there are numbers.
            let later = Buffer::later(spec.shape.len(), move || numbers().unwrap_or_default());
            return Ok(Some(Tensor::new(spec.shape, later)));
        }
        Ok(numbers().map(|data| Tensor::new(spec.shape, data)))
    }
}

/// Lengths without those of 1.
fn long(dims: &[usize]) -> Vec<usize> {
    dims.iter().copied().filter(|n| *n != 1).collect()
}

/// Slips in the tables of names of a file.
fn names<T: Real>(at: &str, file: &WeightFile, known: &BTreeSet<&str>, tensors: &Weighty<T>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let plain = file.names.iter().map(|(path, name)| ("names", path, std::slice::from_ref(name)));
    let made = file.made.iter().map(|(path, made)| ("made", path, made.from.as_slice()));
    for (field, path, names) in plain.chain(made) {
        let at = format!("{at}.{field}.\"{path}\"");
        let did_you_mean = |p: Problem, near: Option<&str>| match near {
            Some(near) => p.help(Msg::new("diagnostic.did_you_mean").arg("name", escape(near))),
            None => p,
        };
        if !known.contains(path.as_str()) {
            let msg = Msg::new("weights.unknown").arg("path", escape(path));
            let near = nearest(path, known.iter().copied());
            problems.push(did_you_mean(Problem::new(at, msg), near));
        } else if let Some(name) = names.iter().find(|name| tensors.info(name).is_none()) {
            let all: Vec<_> = tensors.names().take(MAX_NAMED).map(|n| escape(n)).collect();
            let msg = Msg::new("weights.not_in_file").arg("name", escape(name)).arg("names", all.join(", "));
            let near = nearest(name, tensors.names());
            problems.push(did_you_mean(Problem::new(at, msg), near));
        }
    }
    problems
}

fn at(path: &str) -> String {
    format!("weights.values.\"{path}\"")
}

/// One matrix of inline values.
struct Matrix {
    data: Vec<f64>,
    rows: usize,
    cols: usize,
}

impl Matrix {
    /// Joins rows; `Err` is the first row of another length than the first.
    fn new(rows: &[Vec<f64>], transposed: bool) -> Result<Self, usize> {
        let cols = rows.first().map_or(0, Vec::len);
        if let Some(bad) = rows.iter().position(|r| r.len() != cols) {
            return Err(bad);
        }
        let (data, rows) = (rows.concat(), rows.len());
        Ok(if transposed {
            Self { data: (0..rows * cols).map(|i| data[i % rows * cols + i / rows]).collect(), rows: cols, cols: rows }
        } else {
            Self { data, rows, cols }
        })
    }
}

/// Inline values as the parameter's tensor. Problems name the cell as it is in the scenario.
fn inline<T: Real>(value: &WeightValue, spec: &ParamSpec) -> Result<Tensor<T>, Problem> {
    let wrong = |cell: &str, msg: Msg| Problem::new(format!("{}{cell}", at(&spec.path)), msg.arg("path", &spec.path));
    let ragged = |cell: &str| wrong(cell, Msg::new("weights.ragged").arg("wanted", spec.shape));
    if let Some((cell, x)) = not_finite(value) {
        let msg = Msg::new("weights.not_finite").arg("cell", &cell).arg("value", x);
        return Err(wrong(&cell, msg));
    }
    let matrix = |rows: &[Vec<f64>], transposed: bool, before: &str| {
        Matrix::new(rows, transposed).map_err(|row| ragged(&format!("{before}[{row}]")))
    };
    let (data, dims): (Vec<f64>, Vec<usize>) = match value {
        WeightValue::Vector(v) => (v.clone(), vec![v.len()]),
        WeightValue::OutIn(rows) | WeightValue::InOut(rows) => {
            let m = matrix(rows, matches!(value, WeightValue::InOut(_)), "")?;
            (m.data, vec![m.rows, m.cols])
        }
        WeightValue::Heads(heads) | WeightValue::HeadsInOut(heads) => {
            let mut data = Vec::new();
            let (mut rows, mut cols) = (0, None);
            for (i, head) in heads.iter().enumerate() {
                let before = format!("[{i}]");
                let m = matrix(head, matches!(value, WeightValue::HeadsInOut(_)), &before)?;
                if *cols.get_or_insert(m.cols) != m.cols {
                    return Err(ragged(&before));
                }
                data.extend(m.data);
                rows += m.rows;
            }
            (data, vec![rows, cols.unwrap_or(0)])
        }
    };
    let found = Shape::new(&dims);
    if !found.same_dims(&spec.shape) {
        let msg = Msg::new("weights.shape").arg("found", found).arg("wanted", spec.shape);
        let mut problem = wrong("", msg);
        if dims.len() == 2 && Shape::new(&[dims[1], dims[0]]).same_dims(&spec.shape) {
            problem = problem.help(Msg::new("weights.transposed_help"));
        }
        return Err(problem);
    }
    Ok(Tensor::new(spec.shape, data.iter().map(|&x| T::from_f64(x)).collect::<Vec<_>>()))
}

/// The first value that is no finite number, and its cell as the scenario writes it.
fn not_finite(value: &WeightValue) -> Option<(String, f64)> {
    let in_row = |row: &[f64]| {
        let j = row.iter().position(|x| !x.is_finite())?;
        Some((format!("[{j}]"), row[j]))
    };
    let in_rows = |rows: &[Vec<f64>]| {
        let mut each = rows.iter().enumerate();
        each.find_map(|(i, row)| in_row(row).map(|(cell, x)| (format!("[{i}]{cell}"), x)))
    };
    match value {
        WeightValue::Vector(row) => in_row(row),
        WeightValue::OutIn(rows) | WeightValue::InOut(rows) => in_rows(rows),
        WeightValue::Heads(heads) | WeightValue::HeadsInOut(heads) => {
            let mut each = heads.iter().enumerate();
            each.find_map(|(h, rows)| in_rows(rows).map(|(cell, x)| (format!("[{h}]{cell}"), x)))
        }
    }
}

/// The first initialiser that holds for `path`, and its pattern.
fn rule<'w>(weights: &'w Weights, path: &str) -> Option<(&'w str, Init)> {
    let rule = weights.init.iter().find(|r| fits(&r.paths, path))?;
    Some((rule.paths.as_str(), rule.with))
}

fn fits(pattern: &str, path: &str) -> bool {
    GlobBuilder::new(pattern).literal_separator(false).build().is_ok_and(|g| g.compile_matcher().is_match(path))
}

/// Patterns that fit no parameter; one for everything is none of them.
fn idle(weights: &Weights, specs: &[ParamSpec]) -> Vec<String> {
    let patterns = weights.init.iter().map(|r| &r.paths);
    patterns.filter(|p| *p != "*" && !specs.iter().any(|s| fits(p, &s.path))).cloned().collect()
}

/// Numbers that are worth a thread to draw them.
const DRAWN: usize = 1 << 14;

/// The stream of random numbers of `path`, uniform in [0, 1).
fn stream(seed: u64, path: &str) -> impl Fn(usize) -> f64 + Copy {
    use crate::program::{Random, RandomKind};
    let stream = path.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    Random { seed, stream, kind: RandomKind::Uniform }.uniform()
}

/// A parameter that an initialiser makes: its numbers are drawn when they are first looked at.
fn make<T: Real>(spec: &ParamSpec, init: Init, seed: u64) -> Tensor<T> {
    let (shape, spec) = (spec.shape, spec.clone());
    Tensor::new(shape, Buffer::later(shape.len(), move || draw(&spec, init, seed)))
}

fn draw<T: Real>(spec: &ParamSpec, init: Init, seed: u64) -> Vec<T> {
    let n = spec.shape.len();
    let (fan_in, fan_out) = match spec.role {
        ParamRole::Weight { fan_in, fan_out } => (fan_in, fan_out),
        ParamRole::Bias { fan_in } => (fan_in, n),
        _ => (spec.shape.dims().last().copied().unwrap_or(1), spec.shape.dims()[0]),
    };
    // γ and β begin where a norm changes nothing, unless a constant or a spread of their own is requested.
    let fixed = match (spec.role, init) {
        (ParamRole::Gamma, Init::Xavier | Init::Kaiming) => Some(1.0),
        (ParamRole::Beta, Init::Xavier | Init::Kaiming) => Some(0.0),
        (_, Init::Constant(c)) => Some(c),
        _ => None,
    };
    let mut data = vec![T::default(); n];
    if let Some(c) = fixed {
        data.fill(T::from_f64(c));
        return data;
    }
    let u = stream(seed, &spec.path);
    // Pairs, of which a normal distribution uses both numbers.
    in_chunks(&mut data, 2, DRAWN, |from, part| {
        let from_unit = |part: &mut [T], of: &dyn Fn(f64) -> f64| {
            for (i, cell) in part.iter_mut().enumerate() {
                *cell = T::from_f64(of(u(from + i)));
            }
        };
        match init {
            Init::Normal { mean, std } => normals(u, from, mean, std, part),
            Init::Uniform { low, high } => from_unit(part, &|u| low + (high - low) * u),
            Init::Xavier => from_unit(part, &|u| (6.0 / (fan_in + fan_out) as f64).sqrt() * (2.0 * u - 1.0)),
            Init::Kaiming => from_unit(part, &|u| (1.0 / fan_in as f64).sqrt() * (2.0 * u - 1.0)),
            Init::Constant(c) => part.fill(T::from_f64(c)),
        }
    });
    data
}

#[cfg(test)]
#[path = "weights_tests.rs"]
mod tests;
