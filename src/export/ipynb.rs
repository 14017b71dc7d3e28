//! A Jupyter notebook: one Markdown cell a step.

use std::io::{self, Write};

use super::doc::StepDoc;
use super::{Options, markdown};

pub(super) fn begin(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{{\n \"nbformat\": 4,\n \"nbformat_minor\": 5,\n \"metadata\": {{}},\n \"cells\": [")
}

pub(super) fn step(out: &mut impl Write, options: &Options, doc: &StepDoc, first: bool) -> io::Result<()> {
    let mut text = Vec::new();
    markdown::step(&mut text, options, doc, true)?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let cell = serde_json::json!({
        "cell_type": "markdown",
        "id": format!("step-{}", doc.number().replace('.', "-")),
        "metadata": {},
        "source": lines,
    });
    write!(out, "{}{cell}", if first { "" } else { ",\n" })
}

pub(super) fn end(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n ]\n}}")
}
