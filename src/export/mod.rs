//! Steps as files: one writer a format, all from the same plain data ([`doc::StepDoc`]).
//!
//! Formats for people (text, Markdown, LaTeX, HTML) round numbers and leave out the middle of large tensors;
//! formats for programs (JSON, CSV, TSV) hold every cell at full precision. Text from outside (tokens, titles)
//! is escaped for its format and never reaches a terminal as it is.
//!
//! A [`Writer`] takes one step at a time, or one a thread, so that an export never holds more than those in memory.

pub mod book;
pub mod checkpoint;
mod delimited;
pub mod doc;
pub mod document;
pub mod file;
mod html;
mod ipynb;
mod json;
mod latex;
mod markdown;
pub mod recording;
pub mod select;
mod table;
pub mod tensors;
mod text;
mod typst;

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::Path;

use crate::parallel;
use crate::text::{Cells, Lang, Msg, NumberFormat};
use doc::StepDoc;

/// A file format.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::VariantArray, strum::IntoStaticStr, strum::EnumString,
)]
#[strum(serialize_all = "snake_case", ascii_case_insensitive)]
pub enum Format {
    /// Aligned tables for a terminal.
    #[default]
    #[strum(to_string = "text", serialize = "txt")]
    Text,
    /// Markdown (GitHub's tables).
    #[strum(to_string = "md", serialize = "markdown")]
    Markdown,
    /// Comma-separated, one row a cell.
    Csv,
    /// Tab-separated, one row a cell.
    Tsv,
    /// One object a step.
    Json,
    /// A LaTeX document.
    #[strum(to_string = "latex", serialize = "tex")]
    Latex,
    /// A standalone page.
    #[strum(to_string = "html", serialize = "htm")]
    Html,
    /// Typst.
    #[strum(to_string = "typst", serialize = "typ")]
    Typst,
    /// A Jupyter notebook.
    #[strum(to_string = "ipynb", serialize = "notebook")]
    Ipynb,
}

impl Format {
    /// All, in the order of the documentation.
    pub const ALL: &[Format] = <Self as strum::VariantArray>::VARIANTS;

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The usual ending of its files, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Text => "txt",
            Format::Latex => "tex",
            Format::Typst => "typ",
            other => other.name(),
        }
    }

    /// The format called `name` (`md` or `markdown`, `latex` or `tex`, …).
    ///
    /// # Errors
    /// A message that lists the formats.
    pub fn parse(name: &str) -> Result<Self, Msg> {
        name.trim().parse().map_err(|_| {
            let known: Vec<_> = Self::ALL.iter().map(|f| f.name()).collect();
            Msg::new("export.format.unknown").arg("text", crate::text::escape(name)).arg("known", known.join(", "))
        })
    }

    /// The format that the ending of `path` means, if it means one.
    pub fn of_path(path: &Path) -> Option<Self> {
        path.extension().and_then(|e| e.to_str()).and_then(|e| Self::parse(e).ok())
    }
}

/// How to write.
#[derive(Clone, Debug)]
pub struct Options {
    /// Language of headings.
    pub lang: Lang,
    /// Numbers in the formats for people.
    pub number: NumberFormat,
    /// How the terminal counts cells (text only).
    pub cells: Cells,
    /// JSON: an array of steps, also of one; otherwise an object a step.
    pub array: bool,
    /// LaTeX and Typst: a whole document, not a part to include in one.
    pub standalone: bool,
    /// Whether derivations are written.
    pub derivations: bool,
    /// CSV and TSV: the names of a step and a tensor in every row, not in the first alone.
    pub repeat_names: bool,
    /// Formats for people: most rows of a table.
    pub max_rows: usize,
    /// Formats for people: most columns of a table.
    pub max_columns: usize,
    /// Formats for people: most tables of a tensor of more than two axes.
    pub max_blocks: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lang: Lang::default(),
            number: NumberFormat::default(),
            cells: Cells::NARROW,
            array: false,
            standalone: true,
            derivations: true,
            repeat_names: false,
            max_rows: 40,
            max_columns: 20,
            max_blocks: 16,
        }
    }
}

/// Writes steps one after another.
pub struct Writer<'o, W: Write> {
    format: Format,
    options: &'o Options,
    out: W,
    steps: usize,
}

impl<'o, W: Write> Writer<'o, W> {
    /// Begins a document.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn begin(format: Format, options: &'o Options, mut out: W) -> io::Result<Self> {
        match format {
            Format::Text | Format::Markdown => {}
            Format::Csv => delimited::begin(&mut out, b',')?,
            Format::Tsv => delimited::begin(&mut out, b'\t')?,
            Format::Json => json::begin(&mut out, options)?,
            Format::Latex => latex::begin(&mut out, options)?,
            Format::Html => html::begin(&mut out, options)?,
            Format::Typst => typst::begin(&mut out, options)?,
            Format::Ipynb => ipynb::begin(&mut out)?,
        }
        Ok(Self { format, options, out, steps: 0 })
    }

    /// Writes the next step.
    ///
    /// # Errors
    /// Those of `out`; `InvalidInput` for a tensor whose values do not fill its shape.
    pub fn step(&mut self, doc: &StepDoc) -> io::Result<()> {
        lay_out(self.format, self.options, doc, self.steps == 0, &mut self.out)?;
        self.steps += 1;
        Ok(())
    }

    /// Writes the steps that `make` gives of `items`, in their order; as many at a time as there are threads are made and laid
    /// out, so that memory holds no more than those.
    ///
    /// # Errors
    /// As [`step`](Self::step), and those of `make`.
    pub fn each<I: Sync>(&mut self, items: &[I], make: impl Fn(&I) -> io::Result<StepDoc> + Sync) -> io::Result<()> {
        for group in items.chunks(rayon::current_num_threads().max(1)) {
            let written = self.steps;
            let one = |i: usize| -> io::Result<Vec<u8>> {
                let mut bytes = Vec::new();
                lay_out(self.format, self.options, &make(&group[i])?, written + i == 0, &mut bytes)?;
                Ok(bytes)
            };
            for bytes in parallel::map(group.len(), one) {
                self.out.write_all(&bytes?)?;
                self.steps += 1;
            }
        }
        Ok(())
    }

    /// Ends the document and gives the sink back, flushed.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn end(mut self) -> io::Result<W> {
        match self.format {
            Format::Text | Format::Markdown | Format::Csv | Format::Tsv | Format::Typst => {}
            Format::Json => json::end(&mut self.out, self.options, self.steps == 0)?,
            Format::Latex => latex::end(&mut self.out, self.options)?,
            Format::Html => html::end(&mut self.out)?,
            Format::Ipynb => ipynb::end(&mut self.out)?,
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// One step as the format has it.
fn lay_out(format: Format, options: &Options, doc: &StepDoc, first: bool, out: &mut impl Write) -> io::Result<()> {
    doc.check()?;
    match format {
        Format::Text => text::step(out, options, doc, first),
        Format::Markdown => markdown::step(out, options, doc, first),
        Format::Csv => delimited::step(out, options, doc, b','),
        Format::Tsv => delimited::step(out, options, doc, b'\t'),
        Format::Json => json::step(out, options, doc, first),
        Format::Latex => latex::step(out, options, doc),
        Format::Html => html::step(out, options, doc),
        Format::Typst => typst::step(out, options, doc),
        Format::Ipynb => ipynb::step(out, options, doc, first),
    }
}

/// Writes `steps` as one document.
///
/// # Errors
/// Those of `out`; `InvalidInput` for a tensor whose values do not fill its shape.
pub fn write(format: Format, steps: &[StepDoc], options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = Writer::begin(format, options, out)?;
    for step in steps {
        writer.step(step)?;
    }
    writer.end().map(drop)
}
