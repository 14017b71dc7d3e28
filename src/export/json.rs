//! JSON: one object a step, on one line; several in an array. Values at full precision, nested by shape.

use std::io::{self, Write};

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::ser::Formatter;

use super::Options;
use super::doc::{Cell, CellValues, DerivationDoc, ReferenceDoc, StepDoc, Table, TensorDoc};
use crate::text::escape::is_unsafe;

pub(super) fn begin(out: &mut impl Write, options: &Options) -> io::Result<()> {
    if options.array {
        out.write_all(b"[")?;
    }
    Ok(())
}

pub(super) fn step(out: &mut impl Write, options: &Options, doc: &StepDoc, first: bool) -> io::Result<()> {
    if options.array {
        out.write_all(if first { b"\n" } else { b",\n" })?;
    }
    let step = Step { doc, derivations: options.derivations };
    step.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, Visible))?;
    if !options.array {
        out.write_all(b"\n")?;
    }
    Ok(())
}

pub(super) fn end(out: &mut impl Write, options: &Options, empty: bool) -> io::Result<()> {
    if options.array {
        out.write_all(if empty { b"]\n" } else { b"\n]\n" })?;
    }
    Ok(())
}

/// Compact JSON in which every character that could disturb a terminal is a `\u` escape: the same data, safe to print.
struct Visible;

impl Formatter for Visible {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_unsafe) {
            out.write_all(&rest.as_bytes()[..at])?;
            rest = &rest[at..];
            let Some(c) = rest.chars().next() else { break };
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[c.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

struct Step<'d> {
    doc: &'d StepDoc,
    derivations: bool,
}

impl Serialize for Step<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let doc = self.doc;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("scenario", &doc.scenario)?;
        map.serialize_entry("run", &doc.run)?;
        match doc.step[..] {
            [whole] => map.serialize_entry("step", &whole)?,
            _ => map.serialize_entry("step", &doc.number())?,
        }
        map.serialize_entry("section", &doc.section)?;
        map.serialize_entry("phase", &doc.phase)?;
        map.serialize_entry("title", &doc.title)?;
        if !doc.formula.is_empty() {
            map.serialize_entry("formula", &doc.formula)?;
        }
        if !doc.note.is_empty() {
            map.serialize_entry("note", &doc.note)?;
        }
        map.serialize_entry("tensors", &Each(&doc.tensors, Tensor))?;
        if let Some(table) = &doc.table {
            map.serialize_entry("table", &Texts(table))?;
        }
        if self.derivations {
            map.serialize_entry("derivations", &Each(&doc.derivations, Derivation))?;
            if doc.derivations_left_out > 0 {
                map.serialize_entry("derivations_left_out", &doc.derivations_left_out)?;
            }
        }
        map.end()
    }
}

/// A slice, each element through its view.
struct Each<'d, T, V>(&'d [T], fn(&'d T) -> V);

impl<T, V: Serialize> Serialize for Each<'_, T, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(self.1))
    }
}

struct Texts<'d>(&'d Table);

impl Serialize for Texts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("columns", &self.0.columns)?;
        map.serialize_entry("rows", &self.0.rows)?;
        map.end()
    }
}

struct Tensor<'d>(&'d TensorDoc);

impl Serialize for Tensor<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tensor = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("symbol", &tensor.symbol)?;
        map.serialize_entry("path", &tensor.path)?;
        map.serialize_entry("slice", &tensor.slice)?;
        map.serialize_entry("shape", &tensor.shape)?;
        map.serialize_entry("rows", &tensor.rows)?;
        map.serialize_entry("columns", &tensor.columns)?;
        let nested = Nested { values: &tensor.values, shape: &tensor.shape, offset: 0 };
        map.serialize_entry("values", &nested)?;
        if let Some(reference) = &tensor.reference {
            map.serialize_entry("reference", &Reference { reference, shape: &tensor.shape })?;
        }
        map.end()
    }
}

struct Reference<'d> {
    reference: &'d ReferenceDoc,
    shape: &'d [usize],
}

impl Serialize for Reference<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("name", &self.reference.name)?;
        for (key, values) in [("values", &self.reference.values), ("recomputed", &self.reference.recomputed)] {
            map.serialize_entry(key, &Nested { values, shape: self.shape, offset: 0 })?;
        }
        map.end()
    }
}

/// Values of a block, nested by what is left of the shape.
struct Nested<'d> {
    values: &'d CellValues,
    shape: &'d [usize],
    offset: usize,
}

impl Serialize for Nested<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some((&n, inner)) = self.shape.split_first() else {
            return match self.values.get(self.offset) {
                Some(cell) => cell.serialize(serializer),
                None => serializer.serialize_none(),
            };
        };
        let stride: usize = inner.iter().product();
        let mut seq = serializer.serialize_seq(Some(n))?;
        for i in 0..n {
            seq.serialize_element(&Nested { values: self.values, shape: inner, offset: self.offset + i * stride })?;
        }
        seq.end()
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Cell::F64(x) if x.is_finite() => serializer.serialize_f64(x),
            Cell::F32(x) if x.is_finite() => serializer.serialize_f32(x),
            // JSON has no such numbers: their names denote them.
            Cell::F64(_) | Cell::F32(_) => serializer.serialize_str(&self.exact()),
            Cell::Int(i) => serializer.serialize_i64(i),
            Cell::Bool(b) => serializer.serialize_bool(b),
        }
    }
}

struct Derivation<'d>(&'d DerivationDoc);

impl Serialize for Derivation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("symbol", &self.0.symbol)?;
        map.serialize_entry("index", &self.0.index)?;
        map.serialize_entry("text", &self.0.text)?;
        map.serialize_entry("value", &Cell::F64(self.0.value))?;
        map.end()
    }
}
