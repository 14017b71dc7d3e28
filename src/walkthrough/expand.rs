//! Going into a step: its sub-steps, down to single primitives.

use super::plan::{Detail, plan, title_of};
use super::{LocalizedText, Role, Step, View};
use crate::program::{Leaf, Name, NodeId, Op, Program, Role as Quantity, ScopeId, ScopeKind};
use crate::tensor::slice::Slice;
use crate::text::Msg;
use crate::text::catalogue::find;

/// The sub-steps of `step`; none where it is a single primitive. A step with several results goes into one sub-step a
/// result; a result goes into its primitives; a decoding call into its whole pass. `program_of` gives the program of a
/// run: a step may show tensors of several.
pub fn expand<'p>(program_of: &dyn Fn(usize) -> &'p Program, step: &Step) -> Vec<Step> {
    if let Some((call, run)) = decoding_call(program_of, step) {
        let program = program_of(run);
        let none = |_: &str, _: &Slice| None;
        let inside = |id: NodeId| program.node(id).name.call == Some(call);
        return numbered(step, plan(program, run, Detail::Grouped, &none, &inside));
    }
    let units = units(program_of, step);
    if units.len() > 1 {
        let steps = units.into_iter().map(|views| part(program_of, step, views)).collect();
        return numbered(step, steps);
    }
    let Some(main) = step.results().last() else {
        return Vec::new();
    };
    let program = program_of(main.run);
    let nodes = primitives(program, main.node);
    if nodes.len() < 2 {
        return Vec::new();
    }
    let steps = nodes.into_iter().filter_map(|id| primitive(program, step, main, id)).collect();
    numbered(step, steps)
}

fn numbered(parent: &Step, mut steps: Vec<Step>) -> Vec<Step> {
    for (i, step) in steps.iter_mut().enumerate() {
        step.number = parent.number.iter().copied().chain([i as u32 + 1]).collect();
        step.section.clone_from(&parent.section);
    }
    steps
}

/// The decoding call that a whole step denotes, and its run: its views are of one call but not a stage of it.
fn decoding_call<'p>(program_of: &dyn Fn(usize) -> &'p Program, step: &Step) -> Option<(u32, usize)> {
    if step.number.len() > 1 {
        return None;
    }
    let call = |v: &View| Some((program_of(v.run).node(v.node).name.call?, v.run));
    let first = call(step.views.first()?)?;
    let several = step.views.len() > 2 && step.views.iter().all(|v| call(v) == Some(first));
    several.then_some(first)
}

/// The step's views grouped by the computation they belong to: exp, sum and weights of one head are one unit.
fn units<'p>(program_of: &dyn Fn(usize) -> &'p Program, step: &Step) -> Vec<Vec<View>> {
    let mut units: Vec<((usize, Unit, String), Vec<View>)> = Vec::new();
    for view in &step.views {
        let key = (view.run, unit_of(program_of(view.run), view.node), view.slice.to_string());
        match units.iter_mut().find(|(k, _)| *k == key) {
            Some((_, views)) => views.push(view.clone()),
            None => units.push((key, vec![view.clone()])),
        }
    }
    units.into_iter().map(|u| u.1).collect()
}

/// A computation that several views belong to.
#[derive(PartialEq)]
enum Unit {
    Composite(ScopeId),
    /// The scores of an attention and their mask.
    Scores(Option<Name>),
    Node(NodeId),
}

fn unit_of(program: &Program, id: NodeId) -> Unit {
    let node = program.node(id);
    match program.scope(node.scope).kind {
        ScopeKind::Softmax { .. }
        | ScopeKind::LayerNorm { .. }
        | ScopeKind::RmsNorm { .. }
        | ScopeKind::CrossEntropy { .. } => Unit::Composite(node.scope),
        _ => match node.name.last() {
            Quantity::ScoresRaw | Quantity::Scores | Quantity::MaskedScores | Quantity::MaskBias => {
                Unit::Scores(node.name.outer())
            }
            _ => Unit::Node(id),
        },
    }
}

fn part<'p>(program_of: &dyn Fn(usize) -> &'p Program, step: &Step, views: Vec<View>) -> Step {
    let main = views.iter().rfind(|v| v.role == Role::Result).or(views.last()).expect("a unit has views").clone();
    Step {
        run: main.run,
        title: title_of(program_of(main.run), main.node, &main.slice),
        note: LocalizedText::Empty,
        formula: String::new(),
        views,
        ..step.clone()
    }
}

/// The primitives that compute `id`: those of its composite, or what a written line looks through.
fn primitives(program: &Program, id: NodeId) -> Vec<NodeId> {
    let scope = program.node(id).scope;
    let composite = matches!(
        program.scope(scope).kind,
        ScopeKind::Softmax { .. }
            | ScopeKind::LayerNorm { .. }
            | ScopeKind::RmsNorm { .. }
            | ScopeKind::CrossEntropy { .. }
            | ScopeKind::Activation { .. }
    );
    let mut nodes = Vec::new();
    if composite {
        nodes.extend(program.scope(scope).nodes.clone().map(NodeId).filter(|n| *n <= id));
    }
    let mut open = vec![id];
    while let Some(at) = open.pop() {
        if nodes.contains(&at) && at != id {
            continue;
        }
        if !nodes.contains(&at) {
            nodes.push(at);
        }
        for &input in &program.node(at).inputs {
            let node = program.node(input);
            let shown = matches!(node.name.last(), Quantity::ScoresRaw | Quantity::MaskBias);
            if (node.inline || shown) && !nodes.contains(&input) {
                open.push(input);
            }
        }
    }
    nodes.retain(|n| !matches!(program.node(*n).op, Op::Leaf(Leaf::Parameter)));
    nodes.sort_unstable();
    nodes
}

/// The sub-step of one primitive, seen through the same slice where it fits.
fn primitive(program: &Program, step: &Step, main: &View, id: NodeId) -> Option<Step> {
    let shape = program.node(id).shape;
    let slice = if main.slice.resolve(&shape).is_ok() { main.slice.clone() } else { Slice::all() };
    let symbol = if let Some(view) = step.views.iter().find(|v| v.run == main.run && v.node == id) {
        view.symbol.clone()
    } else {
        program.node(id).name.tail(1)
    };
    let mut view = View::new(program, main.run, id, symbol, slice.clone()).ok()?;
    view.role = Role::Result;
    Some(Step {
        run: main.run,
        title: primitive_title(program, id),
        note: LocalizedText::Empty,
        formula: String::new(),
        views: vec![view],
        ..step.clone()
    })
}

/// What a primitive makes, in the words of its formula ("row sum"); its path and operation where there are none.
fn primitive_title(program: &Program, id: NodeId) -> LocalizedText {
    let node = program.node(id);
    // `exp`, `first_cos`: a role prints as one part of a path.
    let key = find(&format!("substep.{}", node.name.last())).filter(|_| !node.name.is_derived());
    LocalizedText::Message(match key {
        Some(key) => Msg::new(key),
        None => Msg::new("walk.primitive").arg("op", node.op.name()).arg("path", node.name.tail(2)),
    })
}
