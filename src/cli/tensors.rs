//! `tensors`: what is in a file of weights or a recording.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use serde_json::{Value as Json, json};

use super::Failure;
use super::global::Global;
use crate::export::file::Target;
use crate::export::tensors::{Described, write_header};
use crate::parallel;
use crate::report;
use crate::scenario::tensors::read_tensors;
use crate::source::Mapped;
use crate::source::tensor_file::{NumberType, TensorFile, widen};
use crate::tensor::Tensor;
use crate::text::{Align, Cells, Lang, Msg, NumberFormat, escape, tr};

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A file of tensors, or a folder of them.
    #[arg(value_name = "FILE|FOLDER")]
    pub source: PathBuf,
    /// For programs.
    #[arg(long)]
    pub json: bool,
    /// Where to write the tensors, widened to f32.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file of `--output`.
    #[arg(long)]
    pub force: bool,
}

/// The tensors of one file.
enum Tensors {
    /// Mapped.
    File(TensorFile),
    /// Arrays of an npz archive.
    Arrays(Vec<(String, String, Tensor<f64>)>),
}

/// A tensor of a file.
struct Item<'a> {
    name: &'a str,
    shape: &'a [usize],
    number_type: String,
    numbers: Numbers<'a>,
}

enum Numbers<'a> {
    Stored(NumberType, &'a [u8]),
    Read(&'a [f64]),
}

impl Numbers<'_> {
    /// Gives each number to `put`; false where their type is not read.
    fn each(&self, mut put: impl FnMut(f64)) -> bool {
        match self {
            Self::Stored(kind, bytes) => widen(*kind, bytes, put),
            Self::Read(numbers) => {
                numbers.iter().for_each(|x| put(*x));
                true
            }
        }
    }
}

impl Tensors {
    fn open(path: &Path) -> Result<Self, Msg> {
        let npz = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npz"));
        if !npz {
            return TensorFile::open(path).map(Self::File);
        }
        let file = Mapped::open(path)?;
        let read = read_tensors::<f64>(&file.path().to_string_lossy(), &file)?;
        let kind = |name: &str| read.stored.get(name).map_or_else(String::new, |s| format!("{s:?}").to_uppercase());
        let arrays = read.numbers.iter().map(|(name, t)| (name.clone(), kind(name), t.clone())).collect();
        Ok(Self::Arrays(arrays))
    }

    fn items(&self) -> Vec<Item<'_>> {
        match self {
            Self::File(file) => file
                .entries()
                .iter()
                .map(|e| Item {
                    name: &e.name,
                    shape: &e.shape,
                    number_type: e.number_type.to_string(),
                    numbers: Numbers::Stored(e.number_type, file.bytes(e)),
                })
                .collect(),
            Self::Arrays(arrays) => arrays
                .iter()
                .map(|(name, kind, t)| Item {
                    name,
                    shape: t.shape().dims(),
                    number_type: kind.clone(),
                    numbers: Numbers::Read(t.data()),
                })
                .collect(),
        }
    }
}

/// Files of tensors in a folder, sorted by name.
fn files(path: &Path) -> Result<Vec<PathBuf>, Msg> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let named = |key| Msg::new(key).arg("file", escape(&path.to_string_lossy()));
    let entries = std::fs::read_dir(path).map_err(|e| named("source.unreadable").arg("why", e))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "safetensors" || e == "gguf" || e == "npz") && f.is_file());
    files.sort();
    if files.is_empty() { Err(named("source.no_tensors")) } else { Ok(files) }
}

/// What is said of a tensor's numbers; exact, over every one of them.
struct Statistics {
    min: f64,
    max: f64,
    mean: f64,
    std: f64,
    nan: usize,
    infinite: usize,
}

fn statistics(numbers: &Numbers<'_>) -> Option<Statistics> {
    let (mut min, mut max, mut sum, mut n, mut nan, mut infinite) =
        (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0_usize, 0, 0);
    let known = numbers.each(|x| {
        if x.is_nan() {
            nan += 1;
        } else if x.is_infinite() {
            infinite += 1;
        } else {
            (min, max, sum, n) = (min.min(x), max.max(x), sum + x, n + 1);
        }
    });
    let mean = sum / n as f64;
    let mut squares = 0.0;
    numbers.each(|x| {
        if x.is_finite() {
            squares += (x - mean) * (x - mean);
        }
    });
    known.then(|| Statistics { min, max, mean, std: (squares / n as f64).sqrt(), nan, infinite })
}

/// Names of the columns.
const COLUMNS: [&str; 8] = [
    "tensors.name",
    "tensors.shape",
    "tensors.type",
    "tensors.min",
    "tensors.max",
    "tensors.mean",
    "tensors.std",
    "tensors.not_finite",
];

/// Prints the tensors of a file or folder, or writes them widened.
///
/// # Errors
/// Files that cannot be read, a number type that is not read, an output that cannot be written.
pub fn run(args: &Args, global: &Global, lang: Lang) -> Result<(), Failure> {
    let files = files(&args.source)?;
    let opened = files.iter().map(|f| Tensors::open(f)).collect::<Result<Vec<_>, Msg>>()?;
    let items: Vec<Item<'_>> = opened.iter().flat_map(Tensors::items).collect();
    if let Some(out) = &args.output {
        return write(out, args.force, &items);
    }
    let stats: Vec<Option<Statistics>> = parallel::map(items.len(), |i| statistics(&items[i].numbers));
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        let list: Vec<Json> = items.iter().zip(&stats).map(|(i, s)| to_json(i, s.as_ref())).collect();
        report::write_json(&mut out, &list)?;
    } else {
        table(&mut out, &items, &stats, global.number().unwrap_or_default(), lang)?;
    }
    out.flush()?;
    Ok(())
}

fn to_json(item: &Item<'_>, stats: Option<&Statistics>) -> Json {
    let mut json = json!({"name": item.name, "shape": item.shape, "dtype": item.number_type});
    if let Some(s) = stats {
        let finite = |x: f64| if x.is_finite() { json!(x) } else { Json::Null };
        json["min"] = finite(s.min);
        json["max"] = finite(s.max);
        json["mean"] = finite(s.mean);
        json["std"] = finite(s.std);
        json["nan"] = json!(s.nan);
        json["infinite"] = json!(s.infinite);
    }
    json
}

fn table(
    out: &mut dyn Write,
    items: &[Item<'_>],
    stats: &[Option<Statistics>],
    format: NumberFormat,
    lang: Lang,
) -> io::Result<()> {
    let head = COLUMNS.map(|key| tr(lang, key).to_owned());
    let number = |x: f64| if x.is_finite() { format.format(x) } else { "–".to_owned() };
    let row = |(i, s): (&Item<'_>, &Option<Statistics>)| {
        let of = |f: fn(&Statistics) -> f64| s.as_ref().map_or_else(String::new, |s| number(f(s)));
        let bad = s.as_ref().map_or_else(String::new, |s| match (s.nan, s.infinite) {
            (0, 0) => String::new(),
            (nan, 0) => format!("{nan} NaN"),
            (0, inf) => format!("{inf} ∞"),
            (nan, inf) => format!("{nan} NaN, {inf} ∞"),
        });
        let shape = format!("{:?}", i.shape);
        let name = escape(i.name).into_owned();
        [name, shape, i.number_type.clone(), of(|s| s.min), of(|s| s.max), of(|s| s.mean), of(|s| s.std), bad]
    };
    let rows: Vec<[String; 8]> = std::iter::once(head).chain(items.iter().zip(stats).map(row)).collect();
    let cells = Cells::NARROW;
    let widths: Vec<usize> = (0..8).map(|c| rows.iter().map(|r| cells.width(&r[c])).max().unwrap_or(0)).collect();
    for row in &rows {
        let line: Vec<String> = (0..8)
            .map(|c| cells.pad(&row[c], widths[c], if (3..7).contains(&c) { Align::Right } else { Align::Left }).into())
            .collect();
        writeln!(out, "{}", line.join("  ").trim_end())?;
    }
    Ok(())
}

/// The type that a tensor has in the file of `--output`: floating point in less than 32 bits, and blocks, become F32.
fn widened(item: &Item<'_>) -> Dtype {
    match item.numbers {
        Numbers::Stored(NumberType::Plain(t), _) if !matches!(t, Dtype::F16 | Dtype::BF16) => t,
        _ => Dtype::F32,
    }
}

fn write(path: &Path, force: bool, items: &[Item<'_>]) -> Result<(), Failure> {
    let mut items: Vec<&Item<'_>> = items.iter().collect();
    items.sort_by(|a, b| a.name.cmp(b.name));
    if let Some(twice) = items.windows(2).find(|w| w[0].name == w[1].name) {
        return Err(Msg::new("tensors.twice").arg("name", escape(twice[0].name)).into());
    }
    let described: Vec<Described> = items
        .iter()
        .map(|i| Described { name: i.name.to_owned(), dtype: widened(i), shape: i.shape.to_vec() })
        .collect();
    Target::new(Some(path)).write(force, |out| {
        write_header(out, &described, &BTreeMap::new())?;
        for (item, to) in items.iter().zip(&described) {
            match item.numbers {
                Numbers::Stored(NumberType::Plain(t), bytes) if t == to.dtype => out.write_all(bytes)?,
                _ => {
                    let mut bytes = Vec::with_capacity(to.bytes());
                    item.numbers.each(|x| bytes.extend((x as f32).to_le_bytes()));
                    out.write_all(&bytes)?;
                }
            }
        }
        Ok(())
    })?;
    Ok(())
}
