//! What the map shows: the phases of the walkthrough as groups, the blocks of the program in each.

use crate::app::breakpoints::is_at;
use crate::app::navigator::Navigator;
use crate::app::what_if::Edits;
use crate::debug::breaks::Breaks;
use crate::program::{NodeId, Program, ScopeId, ScopeKind};
use crate::session::RunKind;
use crate::tensor::Shape;
use crate::text::{Lang, Msg, tr};
use crate::walkthrough::{Role, Step, View, phase_name};

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Ids to vectors, positions added.
    Embedding,
    /// The first attention of a layer.
    Attention,
    /// The second attention of a layer: over the encoder's output.
    CrossAttention,
    /// The feed-forward network.
    FeedForward,
    /// A norm.
    Norm,
    /// A residual sum.
    Residual,
    /// The output head.
    Output,
    /// The loss.
    Loss,
    /// Anything else.
    Other,
}

impl BlockKind {
    /// Catalogue key of its name.
    pub fn key(self) -> &'static str {
        match self {
            BlockKind::Embedding => "tui.map.embedding",
            BlockKind::Attention => "tui.map.attention",
            BlockKind::CrossAttention => "tui.map.cross",
            BlockKind::FeedForward => "tui.map.ffn",
            BlockKind::Norm => "tui.map.norm",
            BlockKind::Residual => "tui.map.residual",
            BlockKind::Output => "tui.map.output",
            BlockKind::Loss => "tui.map.loss",
            BlockKind::Other => "tui.map.other",
        }
    }
}

/// A block: some steps that follow each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// What it is.
    pub kind: BlockKind,
    /// Positions of its first and last step.
    pub steps: (usize, usize),
    /// Labels of these steps.
    pub labels: (String, String),
    /// Shape of its last result, batches of 1 left out.
    pub shape: String,
    /// The node of its last result: its run and node.
    pub result: Option<(usize, NodeId)>,
    /// Whether one is in it.
    pub here: bool,
    /// Whether edits change it.
    pub edited: bool,
    /// Whether a breakpoint is in it.
    pub breakpoint: bool,
}

/// A phase of the walkthrough.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub title: String,
    /// Its blocks, in order.
    pub blocks: Vec<Block>,
}

impl Group {
    /// Whether one is in it.
    pub fn here(&self) -> bool {
        self.blocks.iter().any(|b| b.here)
    }
}

/// The whole walkthrough.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    /// Its groups, in order.
    pub groups: Vec<Group>,
}

/// Most steps that a map is made of; a longer walkthrough is shown around the place one is at.
const STEPS: usize = 4096;

impl Map {
    /// The map of the steps that are listed.
    #[allow(clippy::single_match_else, reason = "a block goes on, or a new one begins")]
    pub fn of(nav: &Navigator, edits: &Edits, breaks: &Breaks, lang: Lang) -> Self {
        let list = nav.steps.list();
        let at = nav.position();
        let from = at.saturating_sub(STEPS / 2).min(list.len().saturating_sub(STEPS));
        let mut groups: Vec<Group> = Vec::new();
        let mut scope_before: Option<(usize, Option<ScopeId>)> = None;
        for (i, step) in list.iter().enumerate().skip(from).take(STEPS) {
            let title = phase_name(&step.phase, lang);
            let new_group = i == from || list[i - 1].phase != step.phase;
            if new_group {
                groups.push(Group { title, blocks: Vec::new() });
                scope_before = None;
            }
            let Some(group) = groups.last_mut() else { continue };
            let view = result(step);
            let scope = view.map(|v| (v.run, block_scope(&nav.session.runs[v.run].program, v.node)));
            let here = i == at;
            let (edited, breakpoint) = (edits.step_changed(nav, i), is_at(nav, breaks, i));
            let shape = view.map_or_else(String::new, |v| dims(&v.shape()));
            let result = view.map(|v| (v.run, v.node));
            match group.blocks.last_mut().filter(|_| scope.is_some() && scope == scope_before) {
                Some(block) => {
                    block.steps.1 = i;
                    block.labels.1 = step.label();
                    block.here |= here;
                    block.edited |= edited;
                    block.breakpoint |= breakpoint;
                    (block.shape, block.result) = (shape, result);
                }
                None => {
                    let attentions = group.blocks.iter().filter(|b| b.kind == BlockKind::Attention).count();
                    let kind = match (view, scope) {
                        (Some(v), Some((_, Some(id)))) => kind(&nav.session.runs[v.run].program.scope(id).kind),
                        _ => BlockKind::Other,
                    };
                    let kind =
                        if kind == BlockKind::Attention && attentions > 0 { BlockKind::CrossAttention } else { kind };
                    let labels = (step.label(), step.label());
                    group.blocks.push(Block { kind, steps: (i, i), labels, shape, result, here, edited, breakpoint });
                }
            }
            scope_before = scope;
        }
        Self { groups }
    }

    /// What the model is and what the run does, in one sentence.
    pub fn sentence(nav: &Navigator, lang: Lang) -> Msg {
        let m = &nav.session.scenario.model;
        let given = &nav.session.scenario.weights;
        let made =
            nav.session.runs.iter().all(|r| r.kind != RunKind::Recorded) && nav.update_opened().unwrap_or(0) == 0;
        let untrained = made && given.values.is_empty() && given.files.is_empty();
        let untrained = if untrained { tr(lang, "tui.map.untrained") } else { "" };
        let kind = match (&m.encoder, &m.decoder) {
            (Some(_), Some(_)) => "tui.map.both",
            (Some(_), None) => "tui.map.encoder",
            _ => "tui.map.decoder",
        };
        let layers = [&m.encoder, &m.decoder].into_iter().flatten();
        let layers = layers.map(|s| s.layers.iter().map(|l| l.repeat).sum::<usize>().to_string());
        let run = nav.step().map_or(0, |s| s.run);
        let runs: Vec<&str> = nav.session.runs.iter().map(|r| r.name.as_str()).collect();
        Msg::new(kind)
            .arg("layers", layers.collect::<Vec<_>>().join(" + "))
            .arg("d_model", m.d_model)
            .arg("heads", m.heads)
            .arg("untrained", untrained)
            .arg("run", &nav.session.runs[run].name)
            .arg("runs", runs.join(", "))
    }
}

fn result(step: &Step) -> Option<&View> {
    step.views.iter().rfind(|v| v.role == Role::Result).or(step.views.last())
}

/// `4×8`: the axes longer than 1, at least two of them where there are.
fn dims(shape: &Shape) -> String {
    let all = shape.dims();
    let skip = all.iter().take(all.len().saturating_sub(2)).take_while(|n| **n == 1).count();
    all[skip..].iter().map(usize::to_string).collect::<Vec<_>>().join("×")
}

/// The scope that is a block of the map.
fn block_scope(program: &Program, node: NodeId) -> Option<ScopeId> {
    let outer = |k: &ScopeKind| {
        matches!(
            k,
            ScopeKind::Embedding
                | ScopeKind::Attention
                | ScopeKind::FeedForward
                | ScopeKind::Output
                | ScopeKind::CrossEntropy { .. }
        )
    };
    let inner =
        |k: &ScopeKind| matches!(k, ScopeKind::LayerNorm { .. } | ScopeKind::RmsNorm { .. } | ScopeKind::Residual);
    program.enclosing(node, outer).or_else(|| program.enclosing(node, inner))
}

fn kind(scope: &ScopeKind) -> BlockKind {
    match scope {
        ScopeKind::Embedding => BlockKind::Embedding,
        ScopeKind::Attention => BlockKind::Attention,
        ScopeKind::FeedForward => BlockKind::FeedForward,
        ScopeKind::LayerNorm { .. } | ScopeKind::RmsNorm { .. } => BlockKind::Norm,
        ScopeKind::Residual => BlockKind::Residual,
        ScopeKind::Output => BlockKind::Output,
        ScopeKind::CrossEntropy { .. } => BlockKind::Loss,
        ScopeKind::Group
        | ScopeKind::Stack
        | ScopeKind::Layer
        | ScopeKind::Tile
        | ScopeKind::Linear
        | ScopeKind::Softmax { .. }
        | ScopeKind::Activation { .. }
        | ScopeKind::Generation
        | ScopeKind::Backward
        | ScopeKind::Update => BlockKind::Other,
    }
}

/// Where one is: phase, block, head, tensor.
pub fn crumbs(nav: &Navigator, lang: Lang) -> Vec<String> {
    let Some(step) = nav.step() else { return Vec::new() };
    let mut crumbs = vec![phase_name(&step.phase, lang)];
    let Some(view) = nav.view() else { return crumbs };
    let program = &nav.session.runs[view.run].program;
    if let Some(scope) = block_scope(program, view.node) {
        crumbs.push(tr(lang, kind(&program.scope(scope).kind).key()).to_owned());
    }
    let plane = crate::app::navigator::Plane::of_view(view, nav.index());
    if let Some(head) = plane.head() {
        crumbs.push(format!("{} {}", tr(lang, "tui.head"), head + 1));
    }
    crumbs.push(view.cell_name(nav.index()));
    crumbs
}
