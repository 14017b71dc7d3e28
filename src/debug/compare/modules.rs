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
use crate::tensor::Axis;

/// What the table is called in a report.
pub(super) const ABOUT: &str = "weights";

/// What activation functions of modules are called.
const ACTIVATIONS: [&str; 5] = ["act", "act_fn", "activation", "activation_fn", "activation_function"];

/// A node that a module's output stands for.
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
}

impl Modules {
    /// The modules of a scenario's weights, as far as the program has what they compute once.
    pub(super) fn of(scenario: &Scenario, program: &Program) -> Self {
        let mut modules = Self::default();
        for file in &scenario.weights.files {
            for (path, from, with) in tensors(file) {
                let parts = file.made.values().filter(|made| made.from == [from]).count();
                if let Some(id) = program.find(path) {
                    modules.of_parameter(program, id, from, part(with, parts));
                }
            }
        }
        modules
    }

    /// What a recorded tensor stands for. A recorder names a module from the model on that it was given, which may be
    /// within that of the checkpoint or around it.
    pub(super) fn resolve(&self, name: &str) -> &[Output] {
        if let Some(found) = self.by_name.get(name) {
            return found;
        }
        let inside = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|head| head.ends_with('.'));
        let mut near = self.by_name.iter().filter(|(known, _)| inside(known, name) || inside(name, known));
        match (near.next(), near.next()) {
            (Some((_, found)), None) => found,
            _ => &[],
        }
    }

    fn add(&mut self, name: String, node: NodeId, layout: Option<&str>) {
        self.add_read(name, node, layout, Reading::Whole);
    }

    fn add_read(&mut self, name: String, node: NodeId, layout: Option<&str>, reading: Reading) {
        let layout = layout.and_then(|l| Layout::parse(l).ok());
        let of = self.by_name.entry(name).or_default();
        if of.iter().all(|o| o.node != node) {
            of.push(Output { node, layout, reading });
        }
    }

    fn of_parameter(&mut self, program: &Program, id: NodeId, from: &str, part: Option<Part>) {
        let Some((module, "weight")) = from.rsplit_once('.') else { return };
        let users = program.users(id);
        let [user] = users else {
            // A table that is read back as the head too: what looks up is the module.
            let looks_up = |u: &&NodeId| matches!(program.node(**u).op, Op::Gather(Pick::Rows));
            if let Some(lookup) = users.iter().find(looks_up) {
                self.add(module.to_owned(), *lookup, None);
            }
            return;
        };
        match program.node(*user).op {
            Op::Gather(Pick::Rows) => {
                let batched = program.node(*user).shape.axes().contains(&Axis::Batch);
                self.add(module.to_owned(), *user, (!batched).then_some("0/* t d -> t d"));
            }
            Op::MatMul { .. } => self.linear(program, *user, module, part),
            _ => {
                let norm =
                    program.enclosing(*user, |k| matches!(k, ScopeKind::LayerNorm { .. } | ScopeKind::RmsNorm { .. }));
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

    fn linear(&mut self, program: &Program, product: NodeId, module: &str, part: Option<Part>) {
        let mut node = product;
        if let Some(scope) = program.enclosing(product, |k| *k == ScopeKind::Linear) {
            node = program.scope(scope).nodes.clone().next_back().map_or(node, NodeId);
        }
        // Heads are split by moving numbers.
        while let [user] = program.users(node)
            && matches!(program.node(*user).op, Op::Reshape | Op::Permute(_))
        {
            node = *user;
        }
        let Some(part) = part else { return };
        let heads = program.node(node).shape.rank() == 4;
        let layout = match (part, heads) {
            (Part::Whole, false) => None,
            (Part::Whole, true) => Some("b t (h d) -> b h t d".to_owned()),
            (Part::Slice(i, n), true) => Some(format!("b t ({i}/{n} h d) -> b h t d")),
            (Part::Slice(i, n), false) => Some(format!("b t ({i}/{n} d) -> b t d")),
            (Part::PerHead(i, n), true) => Some(format!("b t (h {i}/{n} d) -> b h t d")),
            (Part::PerHead(..), false) => return,
        };
        // Who generates computes the logits of the last position only.
        let head = program.node(node).name.site == Site::Output;
        let reading = if head { Reading::LastRows } else { Reading::Whole };
        self.add_read(module.to_owned(), node, layout.as_deref(), reading);
        self.around(program, node, module);
    }

    /// Modules without weights, around the one that computes `node`.
    fn around(&mut self, program: &Program, node: NodeId, module: &str) {
        let name = &program.node(node).name;
        let Site::Layer(stack, layer, block) = name.site else { return };
        let Some((parent, _)) = module.rsplit_once('.') else { return };
        let at = |site: Site, role: Role| {
            program.named(&Name { site, within: None, role, inner: name.inner.clone(), ..name.clone() })
        };
        let here = |role: Role| at(name.site, role);
        match (block, &name.role) {
            (Block::SelfAttention | Block::CrossAttention, Role::Query) => {
                let scores = here(Role::MaskedScores).or_else(|| here(Role::Scores));
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
                let outer = parent.rsplit_once('.').map(|p| p.0);
                let is_layer = |m: &&str| m.rsplit('.').next().is_some_and(|n| n.parse() == Ok(layer));
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

/// Parameters of a file with the one tensor each comes from, and what is done with it.
fn tensors(file: &WeightFile) -> impl Iterator<Item = (&str, &str, &[Rewrite])> {
    let plain = file.names.iter().map(|(path, from)| (path.as_str(), from.as_str(), &[][..]));
    let made = file.made.iter().filter_map(|(path, made)| match made.from.as_slice() {
        [from] => Some((path.as_str(), from.as_str(), made.with.as_slice())),
        _ => None,
    });
    plain.chain(made)
}

/// Which of a module's outputs are ours.
#[derive(Clone, Copy)]
enum Part {
    Whole,
    /// One of so many equal parts.
    Slice(usize, usize),
    /// One of so many equal parts of each head.
    PerHead(usize, usize),
}

/// What rewrites of the matrix make of the module's outputs, of which there are so many `parts`; `None` where that is no
/// part in the same order.
fn part(with: &[Rewrite], parts: usize) -> Option<Part> {
    let mut found = Part::Whole;
    for rewrite in with {
        found = match (rewrite, found) {
            (Rewrite::Transpose | Rewrite::Reshape(_), found) => found,
            (Rewrite::Parts { groups: 1, of, from, count: 1 }, Part::Whole) => Part::Slice(*from, *of),
            (Rewrite::Parts { of, from, count: 1, .. }, Part::Whole) => Part::PerHead(*from, *of),
            (Rewrite::Slice { from, to, step: 1, .. }, Part::Whole) if from.is_multiple_of(to - from) && parts > 1 => {
                Part::Slice(from / (to - from), parts)
            }
            _ => return None,
        };
    }
    Some(found)
}
