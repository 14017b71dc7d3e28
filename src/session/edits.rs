//! From the edits of a scenario to cells: which are held in each run, which are edited in the parameters.

use std::sync::Arc;

use super::{AnyBindings, Session};
use crate::program::{Block, Name, NodeId, Op, Pick, Program, Role, Site};
use crate::scenario::diagnostic::Problem;
use crate::scenario::edit::{Edit, Side};
use crate::tensor::{Axis, DType, Real, Shape, Tensor, Value};
use crate::text::{Msg, escape, nearest};
use crate::trace::derive::Cell;
use crate::trace::{self, Bindings, Pinned};

/// What the edits of a scenario come to.
pub(super) struct Resolved {
    /// Pinned cells, by run.
    pub held: Vec<Pinned>,
    /// Cells of parameters: which edit, path, position, value.
    pub params: Vec<(usize, String, usize, f64)>,
}

/// Resolves all edits of the session's scenario.
///
/// # Errors
/// Runs, paths, cells, heads, layers and positions that are not there; values that do not fit.
pub(super) fn resolve(s: &Session) -> Result<Resolved, Vec<Problem>> {
    let mut out = Resolved { held: vec![Pinned::default(); s.runs.len()], params: Vec::new() };
    let mut problems = Vec::new();
    for (i, edit) in s.scenario.edits.iter().enumerate() {
        let at = format!("edits[{i}]");
        if let Err(problem) = one(s, i, edit, &at, &mut out) {
            problems.push(problem);
        }
    }
    if problems.is_empty() { Ok(out) } else { Err(problems) }
}

fn one(s: &Session, i: usize, edit: &Edit, at: &str, out: &mut Resolved) -> Result<(), Problem> {
    let runs = s.runs_of(edit.run(), at)?;
    if let Edit::Cell { path, at: index, value, .. } = edit
        && edits_params(s, edit)
        && let Some(spec) = s.specs.iter().find(|spec| spec.path == *path)
    {
        let flat = cell(path, &spec.shape, index, at)?;
        out.params.push((i, path.clone(), flat, *value));
        return Ok(());
    }
    // A run where the place is not, or is smaller, is none that it is for.
    let (mut any, mut outside) = (false, None);
    for &run in &runs {
        match hold(&s.runs[run].program, edit, at, &mut out.held[run]) {
            Ok(found) => any |= found,
            Err(problem) => outside = outside.or(Some(problem)),
        }
    }
    match outside {
        _ if any => Ok(()),
        Some(problem) => Err(problem),
        None => Err(nothing(s, &runs, edit, at)),
    }
}

/// Holds the cells of an edit in a program; whether there were any.
fn hold(program: &Program, edit: &Edit, at: &str, held: &mut Pinned) -> Result<bool, Problem> {
    let mut any = false;
    let mut put = |node: NodeId, flat: usize, value: f64| {
        let cell = Cell { node, flat };
        held.hold(trace::Edit { cell, value });
    };
    match edit {
        Edit::Cell { path, at: index, value, .. } => {
            let Some(id) = program.find(path) else {
                return Ok(false);
            };
            let node = program.node(id);
            let flat = cell(path, &node.shape, index, at)?;
            fits(program, id, *value)
                .map_err(|msg| Problem::new(format!("{at}.value"), msg.arg("path", escape(path))))?;
            put(id, flat, *value);
            any = true;
        }
        Edit::Head { attention, head, .. } => {
            for (id, shape) in named(program, &[Name::parse(attention).then(Role::Context)]) {
                let (axis, heads) = head_axis(&shape);
                if *head >= heads {
                    let msg = Msg::new("edit.no_head")
                        .arg("head", head)
                        .arg("attention", escape(attention))
                        .arg("last", heads.saturating_sub(1));
                    return Err(Problem::new(format!("{at}.head"), msg));
                }
                any = true;
                for flat in (0..shape.len()).filter(|f| shape.unflat(*f)[axis] == *head) {
                    put(id, flat, 0.0);
                }
            }
        }
        Edit::Layer { layer, .. } => {
            let outputs: Vec<Name> = match Name::parse(layer).site {
                Site::Layer(stack, layer, Block::Layer) => {
                    [Block::SelfAttention, Block::CrossAttention, Block::FeedForward]
                        .map(|block| Name::of(Site::Layer(stack, layer, block)).then(Role::Out))
                        .into()
                }
                _ => Vec::new(),
            };
            for (id, shape) in named(program, &outputs) {
                any = true;
                (0..shape.len()).for_each(|flat| put(id, flat, 0.0));
            }
        }
        Edit::Block { block, .. } => {
            let site = Name::parse(block).site;
            for (id, node) in program.nodes() {
                let name = &node.name;
                let own = name.site == site && name.inner.is_empty() && !name.is_gradient();
                if let Some(value) = without_block(name).filter(|_| own) {
                    any = true;
                    (0..node.shape.len()).for_each(|flat| put(id, flat, value));
                }
            }
        }
        Edit::Positions { side, .. } => {
            for (id, node) in program.nodes() {
                let computed = node.dtype == DType::Float && !matches!(node.op, Op::Leaf(_));
                if let Some(value) = without_positions(&node.name, *side).filter(|_| computed) {
                    any = true;
                    (0..node.shape.len()).for_each(|flat| put(id, flat, value));
                }
            }
        }
        Edit::Position { side, at: position, .. } => {
            for (id, node) in program.nodes() {
                let Some(read) = keys(&node.name, *side) else {
                    continue;
                };
                let shape = node.shape;
                match read {
                    Keys::Scores { own } if are_read(program, &node.name) => {
                        any |= hide(&shape, own, *position, |flat| {
                            put(id, flat, f64::NEG_INFINITY);
                        });
                    }
                    Keys::Scores { .. } => {}
                    Keys::Features => {
                        any |= *position < shape.dims()[2];
                        (0..shape.len())
                            .filter(|f| shape.unflat(*f)[2] == *position)
                            .for_each(|flat| put(id, flat, 0.0));
                    }
                }
            }
        }
    }
    Ok(any)
}

/// What a node of a block is, where the block adds nothing: the output of an attention or a feed-forward network, the
/// statistics of a norm.
fn without_block(name: &Name) -> Option<f64> {
    match (name.site.block()?, &name.role) {
        (Block::SelfAttention | Block::CrossAttention | Block::FeedForward, Role::Out)
        | (Block::Norm(_) | Block::PostNorm(_), Role::Mean) => Some(0.0),
        (Block::Norm(_) | Block::PostNorm(_), Role::Root) => Some(1.0),
        _ => None,
    }
}

/// What a node is where positions are not known: the table that is added, the cosines and sines of a rotation, the
/// biases of scores.
fn without_positions(name: &Name, side: Side) -> Option<f64> {
    if name.is_gradient() {
        return None;
    }
    match (name.site, &name.role) {
        (Site::Embedding(Some(of)), Role::Positions) if of == side && name.inner.is_empty() => Some(0.0),
        (Site::Rotary(stack), Role::Cos) if stack.side() == side => Some(1.0),
        (Site::Rotary(stack), Role::Sin) if stack.side() == side => Some(0.0),
        (Site::Stack(stack) | Site::Layer(stack, _, Block::SelfAttention), role) if stack.side() == side => {
            let adds = *role == Role::Relative || *role == Role::parse("alibi");
            adds.then_some(0.0)
        }
        _ => None,
    }
}

/// Nodes of these names, those of decoding calls too.
fn named<'p>(program: &'p Program, names: &'p [Name]) -> impl Iterator<Item = (NodeId, Shape)> + 'p {
    program.nodes().filter(|(_, n)| names.contains(&n.name.outside_call())).map(|(id, n)| (id, n.shape))
}

fn head_axis(shape: &Shape) -> (usize, usize) {
    let axis = shape.axes().iter().position(|a| *a == Axis::Head);
    let axis = axis.unwrap_or(1);
    (axis, shape.dims()[axis])
}

/// What of an attention knows the positions of its keys.
enum Keys {
    /// Scores `[batch, head, query, key]`; `own`: queries are in the same sequence.
    Scores { own: bool },
    /// φ(K) `[batch, head, token, width]` of linear attention.
    Features,
}

fn keys(name: &Name, side: Side) -> Option<Keys> {
    let (reads, own) = match name.site {
        Site::Layer(stack, _, Block::SelfAttention) => (stack.side(), true),
        Site::Layer(_, _, Block::CrossAttention) => (Side::Source, false),
        _ => return None,
    };
    if reads != side || !name.inner.is_empty() || name.is_gradient() {
        return None;
    }
    match name.role {
        Role::Scores | Role::MaskedScores => Some(Keys::Scores { own }),
        Role::KeyFeature => Some(Keys::Features),
        _ => None,
    }
}

/// Whether a softmax reads these scores: not where the masked ones come after them, nor in linear attention.
fn are_read(program: &Program, name: &Name) -> bool {
    let there = |role: Role| program.named(&name.sibling(role)).is_some();
    !there(Role::KeyFeature) && (name.role == Role::MaskedScores || !there(Role::MaskedScores))
}

/// Calls `put` for the scores of all queries but its own for the key at `position`; whether there were any.
fn hide(shape: &Shape, own: bool, position: usize, mut put: impl FnMut(usize)) -> bool {
    let rank = shape.rank();
    let (queries, keys) = (shape.dims()[rank - 2], shape.dims()[rank - 1]);
    if position >= keys {
        return false;
    }
    // With a cache, the queries are the last positions.
    let first = keys.saturating_sub(queries);
    for row in 0..shape.len() / keys {
        if !own || first + row % queries != position {
            put(row * keys + position);
        }
    }
    true
}

fn cell(path: &str, shape: &Shape, index: &[usize], at: &str) -> Result<usize, Problem> {
    let fits = index.len() == shape.rank() && index.iter().zip(shape.dims()).all(|(i, n)| i < n);
    if fits {
        return Ok(shape.flat(index));
    }
    let listed: Vec<String> = index.iter().map(ToString::to_string).collect();
    let msg = Msg::new("edit.outside").arg("index", listed.join(", ")).arg("path", escape(path)).arg("shape", shape);
    Err(Problem::new(format!("{at}.at"), msg))
}

/// Whether a node can hold a value: any number; a whole number that is in the table that reads it; 0 or 1.
///
/// # Errors
/// Why it cannot.
fn fits(program: &Program, id: NodeId, value: f64) -> Result<(), Msg> {
    let node = program.node(id);
    match node.dtype {
        DType::Float => Ok(()),
        DType::Bool if value == 0.0 || value == 1.0 => Ok(()),
        DType::Bool => Err(Msg::new("edit.mask_value").arg("value", value)),
        DType::Int if value.fract() != 0.0 || value < 0.0 || value.is_nan() => {
            Err(Msg::new("edit.id_value").arg("value", value))
        }
        DType::Int => match table(program, id).filter(|rows| value >= *rows as f64) {
            Some(rows) => Err(Msg::new("edit.id_outside").arg("value", value).arg("rows", rows)),
            None => Ok(()),
        },
    }
}

/// Rows of the smallest table that the ids of a node pick from.
fn table(program: &Program, id: NodeId) -> Option<usize> {
    let mut open = vec![id];
    let mut smallest: Option<usize> = None;
    let mut at = 0;
    while at < open.len() {
        let from = open[at];
        at += 1;
        for &user in program.users(from) {
            let node = program.node(user);
            let picks = match &node.op {
                Op::Gather(pick) | Op::ScatterAdd(pick) if node.inputs[1] == from => Some(*pick),
                _ => None,
            };
            if let Some(pick) = picks {
                let table = program.node(node.inputs[0]).shape;
                let rows = match pick {
                    Pick::Rows => table.dims()[0],
                    Pick::Along => table.dims()[table.rank() - 1],
                };
                smallest = Some(smallest.map_or(rows, |s| s.min(rows)));
            } else if node.dtype == DType::Int && node.op.moves_only() && !open.contains(&user) {
                open.push(user);
            }
        }
    }
    smallest
}

/// Why an edit found nothing.
fn nothing(s: &Session, runs: &[usize], edit: &Edit, at: &str) -> Problem {
    let places = |fits: &dyn Fn(&Name) -> bool| -> Vec<String> {
        let of = |run: &usize| {
            let nodes = s.runs[*run].program.nodes().map(|(_, n)| &n.name);
            let found = nodes.filter(|name| !name.is_gradient() && name.inner.is_empty() && fits(name));
            found.map(|name| Name::of(name.site)).collect::<Vec<_>>()
        };
        runs.iter().flat_map(of).map(|place| place.to_string()).collect()
    };
    let layers = || {
        let out = |name: &Name| {
            name.role == Role::Out && matches!(name.site.block(), Some(Block::SelfAttention | Block::FeedForward))
        };
        let of = |run: &usize| {
            let nodes = s.runs[*run].program.nodes().map(|(_, n)| &n.name);
            let layers = nodes.filter(|name| !name.is_gradient() && out(name)).filter_map(|name| name.site.layer());
            layers.map(|(stack, layer)| Name::of(Site::Layer(stack, layer, Block::Layer))).collect::<Vec<_>>()
        };
        runs.iter().flat_map(of).map(|place| place.to_string()).collect::<Vec<_>>()
    };
    let unknown = |field: &str, key: &'static str, name: &str, known: &[String]| {
        let problem = Problem::new(format!("{at}.{field}"), Msg::new(key).arg("name", escape(name)));
        match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => problem.help(Msg::new("diagnostic.did_you_mean").arg("name", near)),
            None => problem,
        }
    };
    match edit {
        Edit::Cell { path, .. } => {
            let msg = Msg::new("scenario.unknown_path").arg("path", escape(path));
            let problem = Problem::new(format!("{at}.path"), msg);
            let similar = runs.iter().find_map(|r| s.runs[*r].program.similar_paths(path, 1).first().copied());
            match similar {
                Some(near) => problem.help(Msg::new("diagnostic.did_you_mean").arg("name", near)),
                None => problem,
            }
        }
        Edit::Head { attention, .. } => {
            unknown("attention", "edit.no_attention", attention, &places(&|name| name.role == Role::Context))
        }
        Edit::Layer { layer, .. } => unknown("layer", "edit.no_layer", layer, &layers()),
        Edit::Block { block, .. } => {
            unknown("block", "edit.no_block", block, &places(&|name| without_block(name).is_some()))
        }
        Edit::Positions { side, .. } => {
            Problem::new(format!("{at}.side"), Msg::new("edit.no_positions").arg("side", side.name()))
        }
        Edit::Position { side, at: position, .. } => Problem::new(
            format!("{at}.at"),
            Msg::new("edit.no_position").arg("position", position).arg("side", side.name()),
        ),
    }
}

/// Whether an edit is one of the parameters themselves.
fn edits_params(s: &Session, edit: &Edit) -> bool {
    matches!(edit, Edit::Cell { path, run: None, .. } if s.specs.iter().any(|spec| spec.path == *path))
}

impl Session {
    /// The runs that an edit holds in: all, or the one of a name and those that begin with its nodes.
    fn runs_of(&self, name: Option<&str>, at: &str) -> Result<Vec<usize>, Problem> {
        let Some(name) = name else {
            return Ok((0..self.runs.len()).collect());
        };
        let Some(run) = self.run_named(name) else {
            let msg = Msg::new("scenario.unknown_run").arg("name", escape(name));
            let problem = Problem::new(format!("{at}.run"), msg);
            let names = self.runs.iter().map(|r| r.name.as_str());
            return Err(match nearest(name, names) {
                Some(near) => problem.help(Msg::new("diagnostic.did_you_mean").arg("name", near)),
                None => problem,
            });
        };
        let begins = |r: &usize| *r == run || self.runs_before(*r).any(|b| b == run);
        Ok((0..self.runs.len()).filter(begins).collect())
    }

    /// Puts the edited cells of parameters in place, those of edits before `from` excepted.
    pub(super) fn edit_params(&mut self, edits: &[(usize, String, usize, f64)], from: usize) {
        fn put<T: Real>(params: &mut Bindings<T>, path: &str, cells: &[(usize, f64)]) {
            let Some(value) = params.get(path) else {
                return;
            };
            let t = value.float();
            let mut data = t.data().to_vec();
            for &(flat, x) in cells {
                data[flat] = T::from_f64(x);
            }
            let edited = Value::Float(Tensor::new(*t.shape(), data));
            params.insert(path.into(), edited);
        }
        let mut paths: Vec<&str> = Vec::new();
        for (_, path, ..) in edits.iter().filter(|e| e.0 >= from) {
            if !paths.contains(&path.as_str()) {
                paths.push(path);
            }
        }
        for path in paths {
            let cells: Vec<(usize, f64)> =
                edits.iter().filter(|e| e.0 >= from && e.1 == path).map(|e| (e.2, e.3)).collect();
            match &mut self.params {
                AnyBindings::F64(b) => put(b, path, &cells),
                AnyBindings::F32(b) => put(b, path, &cells),
            }
        }
    }

    /// The cells that the scenario's edits hold in a program of this session that is none of its runs: those of edits
    /// for all runs.
    pub(super) fn held_in(&self, program: &Program) -> Pinned {
        let mut held = Pinned::default();
        for edit in self.scenario.edits.iter().filter(|e| e.run().is_none()) {
            if edits_params(self, edit) {
                continue;
            }
            // What does not fit this program was checked against the runs.
            let _ = hold(program, edit, "edits", &mut held);
        }
        held
    }

    /// The first of the scenario's edits that is none of the parameters: such edits do not act in training.
    pub fn first_recorded_edit(&self) -> Option<usize> {
        let mut edits = self.scenario.edits.iter();
        edits.position(|e| !edits_params(self, e))
    }

    /// Whether a node of a run can hold a value; see the scenario's edits.
    ///
    /// # Errors
    /// Why it cannot; the message asks for `path`.
    pub fn can_be(&self, run: usize, node: NodeId, value: f64) -> Result<(), Msg> {
        fits(&self.runs[run].program, node, value)
    }

    /// The cells that are held in a run, whatever their operands say.
    pub fn held(&self, run: usize) -> &Arc<Pinned> {
        &self.runs[run].held
    }
}
