//! From an edit as typed to the thing that is edited: symbols, paths, sides and layers are looked up where one is.

use super::command::{Command, Slip};
use super::tokens::{TokenPlace, id_of};
use super::{Edit, WhatIf};
use crate::program::{Block, Name, NodeId, Site, Stack};
use crate::scenario;
use crate::scenario::edit::{self, Side};
use crate::session::locate::{Address, Context, locate};
use crate::session::{RunKind, Session, Steps};
use crate::tensor::Axis;
use crate::text::{Msg, escape, nearest};
use crate::walkthrough::Step;

/// Where one is: names are looked for from here.
#[derive(Clone, Copy)]
pub struct EditContext<'a> {
    /// The run looked at.
    pub run: usize,
    /// The steps listed.
    pub steps: &'a Steps,
    /// Position in them.
    pub at: usize,
    /// What is on the screen, where that is more than the step itself.
    pub shown: Option<&'a Step>,
    /// The tensor looked at, and the index of the cursor in the whole of it.
    pub cursor: Option<(NodeId, &'a [usize])>,
}

impl WhatIf {
    /// What an edit as typed means here. `text` is the line, for columns.
    ///
    /// # Errors
    /// Names, cells, words and sides that are not there, with their column.
    pub fn resolve(&self, text: &str, command: &Command, here: &EditContext<'_>) -> Result<Edit, Slip> {
        let s = &*self.current;
        let at = |part: &str| text.find(part).unwrap_or(0);
        match command {
            Command::Cell { name, index, change } => {
                let found = named(s, name, here).ok_or_else(|| unknown(s, text, name, here))?;
                let (run, node) = (found.run, found.node);
                let cell_at = found.cell(index).filter(|_| found.is_full(index)).ok_or_else(|| {
                    let listed: Vec<String> = index.iter().map(ToString::to_string).collect();
                    let msg = Msg::new("edit.outside")
                        .arg("index", listed.join(", "))
                        .arg("path", escape(name))
                        .arg("shape", found.part.shape());
                    Slip::at(text, at("["), msg)
                })?;
                let shape = s.runs[run].program.node(node).shape;
                let full = shape.unflat(cell_at.flat)[..shape.rank()].to_vec();
                let old = self.value(run, node, &full);
                let value = change.of(old);
                s.can_be(run, node, value).map_err(|msg| {
                    let path = &s.runs[run].program.node(node).path;
                    let by = text.find('=').map_or(0, |e| e + 1);
                    let by = by + (text[by..].len() - text[by..].trim_start().len());
                    Slip::at(text, by, msg.arg("path", path))
                })?;
                Ok(cell(s, run, node, full, value))
            }
            Command::Token { side, sentence, position, word } => {
                let side = side_of(s, here.run, *side)
                    .ok_or_else(|| Slip::at(text, at("token"), Msg::new("edit.which_side")))?;
                let words = s.words(side);
                let id =
                    id_of(word, words).map_err(|msg| Slip::at(text, text.rfind(word.as_str()).unwrap_or(0), msg))?;
                // A backward run or an update reads the sentences of its training run.
                let run = s.forward_of(here.run).unwrap_or(here.run);
                let place =
                    TokenPlace { side, sentence: *sentence, position: *position, run: s.runs[run].name.clone() };
                Ok(Edit::Token { place, id })
            }
            Command::Input(words) => match s.with_text(&s.scenario, words) {
                Ok(_) => Ok(Edit::Input(words.clone())),
                Err(msg) => Err(Slip::at(text, at(words), msg)),
            },
            Command::Setting { field, value } => {
                if let Some(found) = named(s, field, here) {
                    return scalar(s, text, value, &found, field);
                }
                Ok(Edit::Setting { field: scenario::setting(field), value: value.clone() })
            }
            Command::Head { of, head } => {
                let attention = if Name::parse(of).site.is_attention() {
                    of.clone()
                } else {
                    let layer =
                        layer(s, of, here).ok_or_else(|| Slip::at(text, at(of), Msg::new("edit.which_stack")))?;
                    match Name::parse(&layer).site.layer() {
                        Some((stack, layer)) => Name::of(Site::Layer(stack, layer, Block::SelfAttention)).to_string(),
                        None => layer,
                    }
                };
                Ok(Edit::Recorded(edit::Edit::Head { attention, head: *head, run: None }))
            }
            Command::Layer(of) => {
                let layer = layer(s, of, here).ok_or_else(|| Slip::at(text, at(of), Msg::new("edit.which_stack")))?;
                Ok(Edit::Recorded(edit::Edit::Layer { layer, run: None }))
            }
            Command::Block(path) => {
                let block = Name::of(Name::parse(path).site).to_string();
                Ok(Edit::Recorded(edit::Edit::Block { block, run: None }))
            }
            Command::Positions(side) => {
                let side = side_of(s, here.run, *side)
                    .ok_or_else(|| Slip::at(text, at("positions"), Msg::new("edit.which_side")))?;
                Ok(Edit::Recorded(edit::Edit::Positions { side, run: None }))
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

/// What a name is here; see [`locate`].
fn named(s: &Session, name: &str, here: &EditContext<'_>) -> Option<Address> {
    let context = Context { session: s, steps: here.steps, at: here.at, run: here.run, shown: here.shown, past: None };
    locate(name, &context).ok().map(|found| found.address)
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

fn scalar(s: &Session, text: &str, value: &str, of: &Address, name: &str) -> Result<Edit, Slip> {
    let part = of.part.shape();
    if part.len() > 1 {
        let msg = Msg::new("edit.needs_index").arg("name", escape(name)).arg("shape", part);
        return Err(Slip::at(text, text.find(name).unwrap_or(0), msg));
    }
    let at = text.rfind(value).unwrap_or(0);
    let x: f64 = value.parse().map_err(|_| {
        let msg = Msg::new("edit.no_number").arg("text", escape(value));
        Slip::at(text, at, msg)
    })?;
    let shape = s.runs[of.run].program.node(of.node).shape;
    let index = shape.unflat(of.part.flat(&[]))[..shape.rank()].to_vec();
    s.can_be(of.run, of.node, x).map_err(|msg| Slip::at(text, at, msg.arg("path", escape(name))))?;
    Ok(cell(s, of.run, of.node, index, x))
}

fn unknown(s: &Session, text: &str, name: &str, here: &EditContext<'_>) -> Slip {
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
fn layer(s: &Session, said: &str, here: &EditContext<'_>) -> Option<String> {
    if said.parse::<u32>().is_err() {
        return Some(said.to_owned());
    }
    let program = &s.runs[here.run].program;
    let looked_at = here.cursor.and_then(|(node, _)| program.node(node).name.site.stack());
    let model = s.model_of(here.run);
    let stack = looked_at.or(match (&model.encoder, &model.decoder) {
        (Some(_), None) => Some(Stack::Encoder),
        (None, Some(_)) => Some(Stack::Decoder),
        _ => None,
    })?;
    Some(Name::of(Site::Layer(stack, said.parse().ok()?, Block::Layer)).to_string())
}

/// What the cursor is on: the head of what has heads, the position of an embedded token, the block, else the layer.
fn under(s: &Session, here: &EditContext<'_>) -> Option<edit::Edit> {
    let (id, index) = here.cursor?;
    let program = &s.runs[here.run].program;
    let node = program.node(id);
    let axis = |wanted: &[Axis]| node.shape.axes().iter().position(|a| wanted.contains(a));
    let run = None;
    let site = node.name.site;
    let place = |site: Site| Name::of(site).to_string();
    match site {
        Site::Layer(_, _, Block::SelfAttention | Block::CrossAttention) => {
            let attention = place(site);
            // A key/value head that several heads read is none of them.
            if axis(&[Axis::KvHead]).is_some() {
                return None;
            }
            Some(match axis(&[Axis::Head]) {
                Some(head) => edit::Edit::Head { attention, head: index[head], run },
                None => edit::Edit::Block { block: attention, run },
            })
        }
        Site::Layer(_, _, Block::FeedForward | Block::Norm(_) | Block::PostNorm(_)) => {
            Some(edit::Edit::Block { block: place(site), run })
        }
        Site::Layer(stack, layer, Block::Layer) => {
            Some(edit::Edit::Layer { layer: place(Site::Layer(stack, layer, Block::Layer)), run })
        }
        Site::Embedding(Some(side)) | Site::EmbeddingNorm(side) => {
            let token = axis(&[Axis::Token])?;
            Some(edit::Edit::Position { side, at: index[token], run })
        }
        Site::Root
        | Site::Vocabulary
        | Site::Embedding(None)
        | Site::Stack(_)
        | Site::Rotary(_)
        | Site::FinalNorm(_)
        | Site::Output
        | Site::Pooler
        | Site::Classifier
        | Site::Loss
        | Site::Beam
        | Site::Next
        | Site::Cache(_) => None,
    }
}
