//! What a checkpoint's weights say of the modules that a recording names: the module whose matrix is our `ffn.w1` is the
//! one that computes our hidden layer. It is read where no table of names knows a tensor: a module that holds several of our
//! matrices, what a norm reads, scores, attention and layers as a whole.
//!
//! Names are read from the scenario's weight files, which a checkpoint fills from its family's table. A module that holds
//! several of ours in one matrix is read by the rewrites that take them apart. Modules without weights follow from those
//! around them: attention is what the module of the queries is in, a layer what attention is in.

use std::collections::BTreeMap;

use super::fit::Reading;
use super::layout::Layout;
use crate::program::{Block, Name, NodeId, Op, Pick, Program, Role, ScopeKind, Site};
use crate::scenario::rewrite::Rewrite;
use crate::scenario::schema::{Scenario, WeightFile};
use crate::source::recording::ModuleName;
use crate::tensor::Axis;

/// What the table is called in a report.
pub(super) const ABOUT: &str = "weights";

/// What activation functions of modules are called.
const ACTIVATIONS: [&str; 5] = ["act", "act_fn", "activation", "activation_fn", "activation_function"];

/// A node that a module's output denotes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Output {
    pub node: NodeId,
    pub layout: Option<Layout>,
    pub reading: Reading,
}

/// Nodes by the names of recorded tensors.
#[derive(Debug, Default)]
pub(super) struct Modules {
    by_name: BTreeMap<String, Vec<Output>>,
    /// Gradients of the tensors of the files.
    gradients: BTreeMap<String, Vec<Output>>,
}

impl Modules {
    /// The modules of a scenario's weights, as far as the program has what they compute once.
    pub(super) fn of(scenario: &Scenario, program: &Program) -> Self {
        let mut modules = Self::default();
        for file in &scenario.weights.files {
            for (path, from, with) in tensors(file) {
                if let Some(id) = program.find(path) {
                    modules.of_parameter(program, id, from, with);
                    modules.gradient_of(program, id, from, with);
                }
            }
        }
        modules.gradients(program);
        modules
    }

    /// What a recorded tensor denotes. A recorder names a module from the model on that it was given, which may be
    /// within that of the checkpoint or around it.
    pub(super) fn resolve(&self, name: &str) -> &[Output] {
        nearest(&self.by_name, name)
    }

    /// The parameters' gradients that a recorded tensor is.
    pub(super) fn gradient(&self, name: &str) -> &[Output] {
        // Names are looked for one by one where none is the same: not for what is no gradient.
        if name.ends_with(GRADIENT) { nearest(&self.gradients, name) } else { &[] }
    }

    fn add(&mut self, name: String, node: NodeId, layout: Option<&str>) {
        self.add_read(name, node, layout, Reading::Whole);
    }

    fn add_read(&mut self, name: String, node: NodeId, layout: Option<&str>, reading: Reading) {
        let layout = layout.and_then(|l| Layout::parse(l).ok());
        push(&mut self.by_name, name, Output { node, layout, reading });
    }

    /// The gradient of a tensor of the file is taken apart as the tensor is; what is added to its elements does not
    /// change their gradients.
    fn gradient_of(&mut self, program: &Program, id: NodeId, from: &str, with: &[Rewrite]) {
        let Some(node) = program.named(&program.node(id).name.gradient()) else { return };
        let of = |rewrite: &Rewrite| match rewrite {
            Rewrite::Add(_) => None,
            Rewrite::Multiply(by) => Some(Rewrite::Multiply(1.0 / by)),
            other => Some(other.clone()),
        };
        let with: Vec<Rewrite> = with.iter().filter_map(of).collect();
        let layout = (!with.is_empty()).then(|| Layout::made(with));
        push(&mut self.gradients, gradient(from), Output { node, layout, reading: Reading::Whole });
    }

    /// What modules give out, by the names that the recorder gives the gradients of it.
    fn gradients(&mut self, program: &Program) {
        let of = |o: &Output| {
            let node = program.named(&program.node(o.node).name.gradient())?;
            Some(Output { node, ..o.clone() })
        };
        let all: Vec<(String, Vec<Output>)> = self
            .by_name
            .iter()
            .map(|(name, outputs)| (gradient(name), outputs.iter().filter_map(of).collect()))
            .collect();
        for (name, outputs) in all {
            for output in outputs {
                push(&mut self.by_name, name.clone(), output);
            }
        }
    }

    fn of_parameter(&mut self, program: &Program, id: NodeId, from: &str, with: &[Rewrite]) {
        let from = ModuleName::of(from);
        let Some(module) = from.parent().filter(|_| from.last() == "weight") else { return };
        let users = readers(program, id);
        let [user] = users[..] else {
            // A table that is read back as the head too: what looks up is the module.
            let looks_up = |u: &&NodeId| matches!(program.node(**u).op, Op::Gather(Pick::Rows));
            if let Some(lookup) = users.iter().find(looks_up) {
                self.add(module.to_owned(), *lookup, None);
            }
            return;
        };
        match program.node(user).op {
            Op::Gather(Pick::Rows) => {
                let batched = program.node(user).shape.axes().contains(&Axis::Batch);
                self.add(module.to_owned(), user, (!batched).then_some("0/* t d -> t d"));
            }
            Op::MatMul { .. } => self.linear(program, user, module, with),
            _ => {
                let norm =
                    program.enclosing(user, |k| matches!(k, ScopeKind::LayerNorm { .. } | ScopeKind::RmsNorm { .. }));
                if let Some(scope) = norm
                    && let ScopeKind::LayerNorm { input, output, .. } | ScopeKind::RmsNorm { input, output, .. } =
                        program.scope(scope).kind
                {
                    self.add(module.to_owned(), output, None);
                    self.add(format!("{module}.in"), input, None);
                }
            }
        }
    }

    fn linear(&mut self, program: &Program, product: NodeId, module: &str, with: &[Rewrite]) {
        let mut node = product;
        if let Some(scope) = program.enclosing(product, |k| *k == ScopeKind::Linear) {
            node = program.scope(scope).nodes.clone().next_back().map_or(node, NodeId);
        }
        // Heads are split by moving numbers; groups of them are no longer what the module gives out.
        let is_whole = |id: NodeId| {
            let name = &program.node(id).name;
            matches!(name.role, Role::Query | Role::Key | Role::Value) && name.inner.is_empty()
        };
        while !is_whole(node)
            && let [user] = readers(program, node)[..]
            && matches!(program.node(user).op, Op::Reshape | Op::Permute(_))
        {
            node = user;
        }
        let Some(layout) = Layout::outputs(with) else { return };
        // Who generates computes the logits of the last position only.
        let head = program.node(node).name.site == Site::Output;
        let reading = if head { Reading::LastRows } else { Reading::Whole };
        push(&mut self.by_name, module.to_owned(), Output { node, layout: Some(layout), reading });
        self.around(program, node, module);
    }

    /// Modules without weights, around the one that computes `node`.
    fn around(&mut self, program: &Program, node: NodeId, module: &str) {
        let name = &program.node(node).name;
        let Site::Layer(stack, layer, block) = name.site else { return };
        let Some(parent) = ModuleName::of(module).parent() else { return };
        let at = |site: Site, role: Role| {
            program.named(&Name { site, within: None, role, inner: name.inner.clone(), ..name.clone() })
        };
        let here = |role: Role| at(name.site, role);
        match (block, &name.role) {
            (Block::SelfAttention | Block::CrossAttention, Role::Query) => {
                let scores = here(Role::Weights).and_then(|weights| softmax_input(program, weights));
                for (end, found) in [
                    (".scores", scores),
                    (".weights", here(Role::Weights)),
                    ("[1]", here(Role::Weights)),
                    (".q_rotated", here(Role::QueryRotated)),
                    (".k_rotated", here(Role::KeyRotated)),
                ] {
                    let name = format!("{parent}{end}");
                    if let Some(id) = found {
                        self.add_read(name, id, None, Reading::Leading);
                    }
                }
                let outer = ModuleName::of(parent).parent();
                let is_layer = |m: &&str| ModuleName::of(m).last().parse() == Ok(layer);
                if let (Some(outer), Block::SelfAttention) = (outer.filter(is_layer), block) {
                    let scope = program.scopes().find(|(_, s)| {
                        s.kind == ScopeKind::Layer && s.name.site == Site::Layer(stack, layer, Block::Layer)
                    });
                    let last = scope.and_then(|(_, s)| s.nodes.clone().next_back());
                    if let Some(id) = last {
                        self.add(outer.to_owned(), NodeId(id), None);
                    }
                }
            }
            (Block::FeedForward, Role::Hidden) => {
                if let Some(id) = here(Role::Act).filter(|_| here(Role::Gate).is_none()) {
                    for act in ACTIVATIONS {
                        self.add(format!("{parent}.{act}"), id, None);
                    }
                }
            }
            _ => {}
        }
    }
}

fn push(named: &mut BTreeMap<String, Vec<Output>>, name: String, output: Output) {
    let of = named.entry(name).or_default();
    if of.iter().all(|o| o.node != output.node) {
        of.push(output);
    }
}

fn nearest<'a>(named: &'a BTreeMap<String, Vec<Output>>, name: &str) -> &'a [Output] {
    if let Some(found) = named.get(name) {
        return found;
    }
    let inside = |long: &str, short: &str| ModuleName::of(long).is_inner(short);
    let mut near = named.iter().filter(|(known, _)| inside(known, name) || inside(name, known));
    match (near.next(), near.next()) {
        (Some((_, found)), None) => found,
        _ => &[],
    }
}

/// What the softmax reads that makes `weights`, with a sink among them or without.
fn softmax_input(program: &Program, mut weights: NodeId) -> Option<NodeId> {
    if let Op::Slice { .. } = program.node(weights).op {
        weights = program.node(weights).inputs[0];
    }
    let scope = program.enclosing(weights, |kind| matches!(kind, ScopeKind::Softmax { .. }))?;
    match program.scope(scope).kind {
        ScopeKind::Softmax { input, output } if output == weights => Some(input),
        _ => None,
    }
}

/// The nodes of the forward pass that read `id`.
fn readers(program: &Program, id: NodeId) -> Vec<NodeId> {
    program.users(id).iter().copied().filter(|user| !program.node(*user).name.is_derived()).collect()
}

/// What the recorder puts behind the name of what a gradient is of.
pub(super) const GRADIENT: &str = ".grad";

/// What the recorder calls the gradient of `name`.
fn gradient(name: &str) -> String {
    format!("{name}{GRADIENT}")
}

/// Parameters of a file with the one tensor each comes from, and what is done with it.
fn tensors(file: &WeightFile) -> impl Iterator<Item = (&str, &str, &[Rewrite])> {
    let plain = file.names.iter().map(|(path, from)| (path.as_str(), from.as_str(), &[][..]));
    let made = file.made.iter().filter_map(|(path, made)| match made.from.as_slice() {
        [from] => Some((path.as_str(), from.as_str(), made.with.as_slice())),
        _ => None,
    });
    plain.chain(made)
}
