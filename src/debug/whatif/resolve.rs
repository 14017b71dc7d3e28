//! From an edit as typed to the thing that is edited: symbols, paths, sides and layers are looked up where one is.

use super::command::{Command, Slip};
use super::tokens::{TokenPlace, id_of};
use super::{Edit, WhatIf};
use crate::program::NodeId;
use crate::scenario::edit::{self, Side};
use crate::scenario::{self, diagnostic::nearest};
use crate::session::{RunKind, Session, Steps};
use crate::tensor::{Axis, Slice};
use crate::text::{Msg, escape};
use crate::walkthrough::View;

/// Where one is: names are looked for from here.
#[derive(Clone, Copy, Debug)]
pub struct Here<'a> {
    /// The run looked at.
    pub run: usize,
    /// The steps listed.
    pub steps: &'a Steps,
    /// Position in them.
    pub at: usize,
    /// The tensor looked at, and the index of the cursor in the whole of it.
    pub cursor: Option<(NodeId, &'a [usize])>,
}

impl WhatIf {
    /// What an edit as typed means here. `text` is the line, for columns.
    ///
    /// # Errors
    /// Names, cells, words and sides that are not there, with their column.
    pub fn resolve(&self, text: &str, command: &Command, here: &Here<'_>) -> Result<Edit, Slip> {
        let s = &*self.current;
        let at = |part: &str| text.find(part).unwrap_or(0);
        match command {
            Command::Cell { name, index, change } => {
                let (view, run) = named(s, name, here).ok_or_else(|| unknown(s, text, name, here))?;
                let full = full_index(s, &view, index).ok_or_else(|| {
                    let listed: Vec<String> = index.iter().map(ToString::to_string).collect();
                    let msg = Msg::new("edit.outside")
                        .arg("index", listed.join(", "))
                        .arg("path", escape(name))
                        .arg("shape", view.shape());
                    Slip::at(text, at("["), msg)
                })?;
                let old = self.value(run, view.node, &full);
                let value = change.of(old);
                s.can_be(run, view.node, value).map_err(|msg| {
                    let path = &s.runs[run].program.node(view.node).path;
                    let by = text.find('=').map_or(0, |e| e + 1);
                    let by = by + (text[by..].len() - text[by..].trim_start().len());
                    Slip::at(text, by, msg.arg("path", path))
                })?;
                Ok(cell(s, run, view.node, full, value))
            }
            Command::Token { side, sentence, position, word } => {
                let side = side_of(s, here.run, *side)
                    .ok_or_else(|| Slip::at(text, at("token"), Msg::new("edit.which_side")))?;
                let words = s.words(side.name());
                let id =
                    id_of(word, words).map_err(|msg| Slip::at(text, text.rfind(word.as_str()).unwrap_or(0), msg))?;
                // A backward run or an update reads the sentences of its training run.
                let run = s.forward_of(here.run).unwrap_or(here.run);
                let place =
                    TokenPlace { side, sentence: *sentence, position: *position, run: s.runs[run].name.clone() };
                Ok(Edit::Token { place, id })
            }
            Command::Setting { field, value } => {
                if let Some((view, run)) = named(s, field, here) {
                    return scalar(s, text, value, &view, run, field);
                }
                Ok(Edit::Setting { field: scenario::setting(field), value: value.clone() })
            }
            Command::Head { of, head } => {
                let attention = if of.ends_with("_attn") {
                    of.clone()
                } else {
                    let layer =
                        layer(s, of, here).ok_or_else(|| Slip::at(text, at(of), Msg::new("edit.which_stack")))?;
                    format!("{layer}.self_attn")
                };
                Ok(Edit::Recorded(edit::Edit::Head { attention, head: *head, run: None }))
            }
            Command::Layer(of) => {
                let layer = layer(s, of, here).ok_or_else(|| Slip::at(text, at(of), Msg::new("edit.which_stack")))?;
                Ok(Edit::Recorded(edit::Edit::Layer { layer, run: None }))
            }
            Command::Position { side, position } => {
                let side = side_of(s, here.run, *side)
                    .ok_or_else(|| Slip::at(text, at("position"), Msg::new("edit.which_side")))?;
                Ok(Edit::Recorded(edit::Edit::Position { side, at: *position, run: None }))
            }
            Command::Here => {
                under(s, here).map(Edit::Recorded).ok_or_else(|| Slip::at(text, 0, Msg::new("edit.nothing_here")))
            }
        }
    }

    fn value(&self, run: usize, node: NodeId, index: &[usize]) -> f64 {
        let shape = self.current.runs[run].program.node(node).shape;
        let value = self.current.trace(run).ok().and_then(|t| t.get(node));
        value.map_or(f64::NAN, |v| v.get(shape.flat(index)))
    }
}

/// A tensor by symbol (the nearest one at or before here, else after) or by path (in the run looked at, else in
/// another), and its run.
fn named(s: &Session, name: &str, here: &Here<'_>) -> Option<(View, usize)> {
    let list = here.steps.list();
    let split = (here.at + 1).min(list.len());
    let mut near = list[..split].iter().rev().chain(&list[split..]);
    let view = near.find_map(|step| step.views.iter().find(|v| v.symbol == name));
    if let Some(view) = view {
        return Some((view.clone(), view.run));
    }
    let runs = std::iter::once(here.run).chain((0..s.runs.len()).filter(|r| *r != here.run));
    runs.into_iter().find_map(|run| {
        let program = &s.runs[run].program;
        let node = program.find(name)?;
        let view = View::new(program, run, node, name, Slice::all()).ok()?;
        Some((view, run))
    })
}

/// The index in the whole tensor: given in the view, or in the tensor itself.
fn full_index(s: &Session, view: &View, index: &[usize]) -> Option<Vec<usize>> {
    let inside = |dims: &[usize]| index.len() == dims.len() && index.iter().zip(dims).all(|(i, n)| i < n);
    let shape = s.runs[view.run].program.node(view.node).shape;
    if inside(view.shape().dims()) {
        let flat = view.cells.flat(index);
        return Some(shape.unflat(flat)[..shape.rank()].to_vec());
    }
    (view.slice.is_all() && inside(shape.dims())).then(|| index.to_vec())
}

/// An edit of a cell, in the run where it is first computed; of a parameter, in all.
fn cell(s: &Session, run: usize, node: NodeId, at: Vec<usize>, value: f64) -> Edit {
    let path = s.runs[run].program.node(node).path.to_string();
    let parameter = s.specs.iter().any(|spec| spec.path == path);
    // A backward run and an update begin with the nodes of the runs before them.
    let mut first = run;
    for before in s.runs_before(run) {
        if s.runs[before].program.find(&path).is_some() {
            first = before;
        }
    }
    let run = (!parameter).then(|| s.runs[first].name.clone());
    Edit::Recorded(edit::Edit::Cell { path, at, value, run })
}

fn scalar(s: &Session, text: &str, value: &str, view: &View, run: usize, name: &str) -> Result<Edit, Slip> {
    if !view.shape().is_empty() && view.shape().len() > 1 {
        let msg = Msg::new("edit.needs_index").arg("name", escape(name)).arg("shape", view.shape());
        return Err(Slip::at(text, text.find(name).unwrap_or(0), msg));
    }
    let at = text.rfind(value).unwrap_or(0);
    let x: f64 = value.parse().map_err(|_| {
        let msg = Msg::new("edit.no_number").arg("text", escape(value));
        Slip::at(text, at, msg)
    })?;
    let shape = s.runs[run].program.node(view.node).shape;
    let flat = view.cells.flat(&vec![0; view.shape().rank()]);
    let index = shape.unflat(flat)[..shape.rank()].to_vec();
    s.can_be(run, view.node, x).map_err(|msg| Slip::at(text, at, msg.arg("path", escape(name))))?;
    Ok(cell(s, run, view.node, index, x))
}

fn unknown(s: &Session, text: &str, name: &str, here: &Here<'_>) -> Slip {
    let msg = Msg::new("edit.unknown_name").arg("name", escape(name));
    let mut slip = Slip::at(text, text.find(name).unwrap_or(0), msg);
    let symbols = here.steps.list().iter().flat_map(|step| &step.views);
    let near = nearest(name, symbols.map(|v| v.symbol.as_str())).map(str::to_owned).or_else(|| {
        let similar = s.runs[here.run].program.similar_paths(name, 1);
        similar.first().map(|p| (*p).to_owned())
    });
    if let Some(near) = near {
        slip.help = Some(Msg::new("diagnostic.did_you_mean").arg("name", escape(&near)));
    }
    slip
}

/// The side that is meant: the one said, else the only one that a run reads.
fn side_of(s: &Session, run: usize, said: Option<Side>) -> Option<Side> {
    if said.is_some() {
        return said;
    }
    let r = &s.runs[run];
    let target = r.inputs.target.is_some() || r.kind == RunKind::Inference;
    match (r.inputs.source.is_some(), target) {
        (true, false) => Some(Side::Source),
        (false, true) => Some(Side::Target),
        _ => None,
    }
}

/// The path of a layer: as said, or in the stack that one looks at, else in the only one.
fn layer(s: &Session, said: &str, here: &Here<'_>) -> Option<String> {
    if said.parse::<usize>().is_err() {
        return Some(said.to_owned());
    }
    let program = &s.runs[here.run].program;
    let looked_at = here.cursor.and_then(|(node, _)| {
        let path = inside(&program.node(node).path);
        let stack = path.split('.').next()?;
        matches!(stack, "encoder" | "decoder").then(|| stack.to_owned())
    });
    let model = s.model_of(here.run);
    let stack = looked_at.or(match (&model.encoder, &model.decoder) {
        (Some(_), None) => Some("encoder".to_owned()),
        (None, Some(_)) => Some("decoder".to_owned()),
        _ => None,
    });
    Some(format!("{}.{said}", stack?))
}

/// A path without the decoding call it belongs to.
fn inside(path: &str) -> &str {
    let path = path.strip_prefix("grad.").unwrap_or(path);
    path.strip_prefix("gen.").and_then(|rest| rest.split_once('.')).map_or(path, |(_, rest)| rest)
}

/// What the cursor is on: the head of what has heads, the position of an embedded token, else the layer.
fn under(s: &Session, here: &Here<'_>) -> Option<edit::Edit> {
    let (id, index) = here.cursor?;
    let program = &s.runs[here.run].program;
    let node = program.node(id);
    let path = inside(&node.path);
    let parts: Vec<&str> = path.split('.').collect();
    let axis = |wanted: &[Axis]| node.shape.axes().iter().position(|a| wanted.contains(a));
    let run = None;
    match parts.as_slice() {
        [stack @ ("encoder" | "decoder"), layer, attention @ ("self_attn" | "cross_attn"), ..] => {
            let attention = format!("{stack}.{layer}.{attention}");
            let layer = format!("{stack}.{layer}");
            // A key/value head that several heads read is none of them.
            if axis(&[Axis::KvHead]).is_some() {
                return None;
            }
            Some(match axis(&[Axis::Head]) {
                Some(head) => edit::Edit::Head { attention, head: index[head], run },
                None => edit::Edit::Layer { layer, run },
            })
        }
        [stack @ ("encoder" | "decoder"), layer, _, ..] if layer.parse::<usize>().is_ok() => {
            Some(edit::Edit::Layer { layer: format!("{stack}.{layer}"), run })
        }
        ["embed", side @ ("source" | "target"), ..] => {
            let token = axis(&[Axis::Token])?;
            Some(edit::Edit::Position {
                side: if *side == "source" { Side::Source } else { Side::Target },
                at: index[token],
                run,
            })
        }
        _ => None,
    }
}
