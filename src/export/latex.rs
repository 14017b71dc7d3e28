//! A LaTeX document: plain `tabular` tables, formulas and derivations as amsmath lines.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::Options;
use super::doc::{StepDoc, TensorDoc};
use super::table::{Table, tables};
use super::text::{blocks_left_out_text, heading, left_out_text};
use crate::text::{escape, tr, width};

mod math;

use math::{Class, class, math};

/// A derivation wider than this (in characters of its source) goes on, on a second line.
const LINE: usize = 84;

const PREAMBLE: &str = r"% Compile with xelatex; the ctex package sets the Chinese.
\documentclass{article}
\usepackage[scheme=plain]{ctex}
\usepackage{amsmath,amssymb}
\usepackage{graphicx}
\usepackage[margin=2cm]{geometry}
\setlength{\parindent}{0pt}
\allowdisplaybreaks
% A table wider than the page is made smaller.
\newcommand{\fitted}[1]{\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{#1}}
\begin{document}
";

/// What a part needs of the document that includes it.
const NEEDS: &str = r"% For \input: the document needs ctex (xelatex), amsmath, amssymb and graphicx.
\providecommand{\fitted}[1]{\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{#1}}
";

pub(super) fn begin(out: &mut impl Write, options: &Options) -> io::Result<()> {
    if !options.standalone {
        return out.write_all(NEEDS.as_bytes());
    }
    out.write_all(PREAMBLE.as_bytes())
}

pub(super) fn end(out: &mut impl Write, options: &Options) -> io::Result<()> {
    if !options.standalone {
        return Ok(());
    }
    writeln!(out, "\n\\end{{document}}")
}

pub(super) fn step(out: &mut impl Write, options: &Options, doc: &StepDoc) -> io::Result<()> {
    writeln!(out, "\n\\section*{{{}}}", plain(&heading(doc, options)))?;
    let place: Vec<String> = [&doc.scenario, &doc.run, &doc.phase]
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(|part| code(part))
        .collect();
    writeln!(out, "{}", place.join(" \\quad "))?;
    if !doc.formula.is_empty() {
        lines(out, doc.formula.split('\n'))?;
    }
    for tensor in doc.inputs.iter().chain(&doc.tensors) {
        writeln!(out)?;
        write_tensor(out, tensor, options)?;
    }
    if options.derivations && !doc.derivations.is_empty() {
        lines(out, doc.derivations.iter().flat_map(|d| d.text.split('\n')))?;
    }
    if options.derivations && doc.derivations_left_out > 0 {
        writeln!(out, "\n{}", plain(&left_out_text(doc, options)))?;
    }
    if let Some(table) = &doc.table {
        let spec = "l".repeat(table.columns.len());
        writeln!(out, "\\par\\fitted{{\\begin{{tabular}}{{{spec}}}")?;
        for (i, row) in std::iter::once(&table.columns).chain(&table.rows).enumerate() {
            let cells: Vec<String> = row.iter().map(|c| plain(&escape(c))).collect();
            // `\\\\` would take a bracket or star that begins the next row for its own.
            let rule = if i == 0 { "\\hline" } else { "" };
            writeln!(out, "{{}}{} \\\\{rule}", cells.join(" & "))?;
        }
        writeln!(out, "\\end{{tabular}}}}")?;
    }
    for paragraph in doc.note.split('\n').filter(|p| !p.trim().is_empty()) {
        writeln!(out, "\n{}", plain(&escape(paragraph)))?;
    }
    Ok(())
}

/// Lines of mathematics, aligned at their first `=`.
fn lines<'t>(out: &mut impl Write, texts: impl Iterator<Item = &'t str>) -> io::Result<()> {
    let mut first = true;
    for text in texts.filter(|t| !t.trim().is_empty()) {
        let text = escape(text);
        let (left, right) = match text.split_once(" = ") {
            Some((left, right)) => (left, Some(right)),
            None => (text.as_ref(), None),
        };
        let before = if first { "\\begin{align*}" } else { " \\\\" };
        writeln!(out, "{before}")?;
        first = false;
        // `\\` would take a bracket or star that follows for its own.
        let left = math(left);
        let guard = if left.starts_with(['[', '*']) { "{}" } else { "" };
        write!(out, "{guard}{left}")?;
        let Some(right) = right else { continue };
        for (i, part) in broken(right).into_iter().enumerate() {
            let join = if i == 0 { " &= " } else { " \\\\\n&\\quad " };
            write!(out, "{join}{}", math(part))?;
        }
    }
    if first {
        return Ok(());
    }
    writeln!(out, "\n\\end{{align*}}")
}

/// `text` in parts of about [`LINE`] characters, cut before a sign that is outside parentheses.
fn broken(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0_usize);
    let mut cut = None;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '+' | '-' | '=' | '≈'
                if depth == 0
                    && at > start
                    && text[..at].ends_with(' ')
                    && text[at + c.len_utf8()..].starts_with(' ') =>
            {
                if width(&text[start..at]) > LINE {
                    let end = cut.take().unwrap_or(at);
                    parts.push(text[start..end].trim_end());
                    start = end;
                }
                cut = Some(at).filter(|&at| at > start);
            }
            _ => {}
        }
    }
    if let Some(end) = cut.filter(|_| width(&text[start..]) > LINE) {
        parts.push(text[start..end].trim_end());
        start = end;
    }
    parts.push(&text[start..]);
    parts
}

fn write_tensor(out: &mut impl Write, tensor: &TensorDoc, options: &Options) -> io::Result<()> {
    let symbol = math(&escape(&tensor.symbol));
    let place = code(&tensor.place());
    if tensor.shape.is_empty() {
        let value = number(&tensor.shown(0, options.number));
        return writeln!(out, "\\par ${symbol}$ = {value} \\quad {place}");
    }
    writeln!(out, "\\par ${symbol}$ \\quad {place} \\quad {}\\par\\smallskip", plain(&tensor.shape_text()))?;
    let tables = tables(tensor, options);
    if tables.tables.is_empty() {
        writeln!(out, "{}", plain(tr(options.lang, "export.empty")))?;
    }
    for table in &tables.tables {
        if !table.label.is_empty() {
            writeln!(out, "\\par {}\\par\\smallskip", code(&table.label))?;
        }
        for page in table.pages(options) {
            write_table(out, &page, options)?;
        }
    }
    if tables.left_out > 0 {
        let text = blocks_left_out_text(tables.left_out, options);
        writeln!(out, "\\par {}", plain(&text))?;
    }
    Ok(())
}

fn write_table(out: &mut impl Write, table: &Table<'_>, options: &Options) -> io::Result<()> {
    let numbers = "r".repeat(table.columns.len());
    let label = if table.has_rows { "l|" } else { "" };
    writeln!(out, "\\fitted{{\\begin{{tabular}}{{{label}{numbers}}}")?;
    let header: Vec<String> = table.columns.iter().map(|&c| plain(&table.column_label(c))).collect();
    let edge = if table.has_rows { "& " } else { "" };
    writeln!(out, "{edge}{} \\\\\n\\hline", header.join(" & "))?;
    for &row in &table.rows {
        if table.has_rows {
            write!(out, "{} & ", plain(&table.row_label(row)))?;
        }
        let cell = |&column: &Option<usize>| {
            let name = table.name(row, column).map(|n| format!(" ({})", plain(&n))).unwrap_or_default();
            number(&table.cell(row, column, options)) + &name
        };
        let cells: Vec<String> = table.columns.iter().map(cell).collect();
        writeln!(out, "{} \\\\", cells.join(" & "))?;
    }
    writeln!(out, "\\end{{tabular}}}}\\par\\medskip")
}

/// A number as it is shown, in mathematics.
fn number(shown: &str) -> String {
    format!("${}$", math(shown))
}

/// Escaped text in a typewriter face.
fn code(text: &str) -> String {
    format!("\\texttt{{{}}}", plain(&escape(text)))
}

/// Text as it is.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut previous = ' ';
    for c in text.chars() {
        match c {
            '_' | '&' | '%' | '$' | '#' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '`' => out.push_str("\\textasciigrave{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            // After `\\`, a bracket or star would be its argument; two dashes would be one.
            '[' | ']' | '*' => {
                out.push('{');
                out.push(c);
                out.push('}');
            }
            // The fonts have it, and in Chinese two of them stand together.
            '…' => out.push(c),
            '-' if previous == '-' => out.push_str("{}-"),
            c => match class(c) {
                Class::Symbol(command) => {
                    out.push('$');
                    out.push_str(command.trim_end());
                    out.push('$');
                }
                Class::Super(inner) => {
                    let _ = write!(out, "$^{{{}}}$", inner.trim_end());
                }
                Class::Sub(inner) => {
                    let _ = write!(out, "$_{{{inner}}}$");
                }
                Class::Other => out.push(c),
            },
        }
        previous = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{LINE, broken, lines};
    use crate::text::width;

    #[test]
    fn long_sums_go_on_below() {
        let sum = vec!["0.5×-0.3"; 40].join(" + ") + " = 1";
        let parts = broken(&sum);
        assert_eq!(parts.join(" "), sum);
        assert!(parts.len() > 3 && parts.iter().all(|p| width(p) <= LINE), "{parts:?}");
        let inside = format!("√({}) = 1", vec!["1.25"; 40].join(" + "));
        assert_eq!(broken(&inside).join(" "), inside);
        assert_eq!(broken("1 + 2"), ["1 + 2"]);
        assert_eq!(broken(""), [""]);
    }

    #[test]
    fn nothing_to_align() {
        let mut out = Vec::new();
        lines(&mut out, ["", " "].into_iter()).unwrap();
        assert!(out.is_empty());
        lines(&mut out, ["[0] x", "[1] = y"].into_iter()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\\begin{align*}\n{}[0]\\ x \\\\\n{}[1] &= y\n\\end{align*}\n");
    }
}
