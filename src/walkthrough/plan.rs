//! The automatic plan: numbered steps for any program, at a chosen level of detail.

use super::Location;
use super::{LocalizedText, Step, View, is_auxiliary};
use crate::program::{Block, Leaf, Name, NodeId, Op, Part, Pass, Program, Role, ScopeId, ScopeKind, Site};
use crate::tensor::Axis;
use crate::tensor::slice::Slice;
use crate::text::Msg;
use crate::text::catalogue::find;

/// How finely the automatic plan cuts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Detail {
    /// One step a stage of a layer: all heads, queries, keys and values together.
    #[default]
    Grouped,
    /// One step a head and a matrix, parameters included.
    Full,
}

/// Nodes that one step shows together.
struct Stage {
    nodes: Vec<NodeId>,
    /// Decides which neighbours join.
    key: StageKey,
}

/// Neighbouring nodes with the same key share a step.
#[derive(PartialEq)]
enum StageKey {
    /// A node alone.
    Node(NodeId),
    /// All of a composite.
    Scope(ScopeId),
    /// What belongs together in one place.
    Group(Name, Group),
}

#[derive(PartialEq)]
enum Group {
    Softmax,
    Scores,
    Projections,
    Rotated,
    Waves,
    Out,
    Prediction,
    Lookup,
}

/// Steps for the nodes of `program` that `take` accepts, numbered from 1. `symbols` gives a tensor's short name where
/// the scenario has one.
pub fn plan(
    program: &Program,
    run: usize,
    detail: Detail,
    symbols: &dyn Fn(&str, &Slice) -> Option<String>,
    take: &dyn Fn(NodeId) -> bool,
) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut phase, mut section, mut part) = (String::new(), 0u32, 0u32);
    for stage in stages(program, detail, take) {
        let Some(&main) = stage.nodes.last() else {
            continue;
        };
        let next = phase_of(program, main);
        if next != phase {
            (phase, section, part) = (next, section + 1, 0);
        }
        let heads = if detail == Detail::Full { head_axis(program, &stage.nodes) } else { None };
        let slices: Vec<Slice> = match heads {
            Some((axis, n)) => (0..n as i64).map(|h| Slice::at(axis, h)).collect(),
            None => vec![Slice::all()],
        };
        for slice in slices {
            part += 1;
            let views: Vec<View> = stage
                .nodes
                .iter()
                .filter_map(|&id| {
                    let node = program.node(id);
                    let fits = slice.is_all() || slice.resolve(&node.shape).is_ok();
                    let slice = if fits { slice.clone() } else { Slice::all() };
                    let symbol = symbols(&node.path, &slice).unwrap_or_else(|| symbol_of(&node.name, &slice));
                    View::new(program, run, id, symbol, slice).ok()
                })
                .collect();
            steps.push(Step {
                number: vec![steps.len() as u32 + 1],
                section: format!("{section}.{part}"),
                phase: phase.clone(),
                run,
                title: title_of(program, main, &slice),
                note: note_of(program, main),
                formula: String::new(),
                views,
            });
        }
    }
    steps
}

/// The axis of heads that all of a stage's nodes have.
fn head_axis(program: &Program, nodes: &[NodeId]) -> Option<(Axis, usize)> {
    let main = program.node(*nodes.last()?);
    main.shape.iter().find(|(a, n)| matches!(a, Axis::Head | Axis::KvHead) && *n > 1)
}

fn stages(program: &Program, detail: Detail, take: &dyn Fn(NodeId) -> bool) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for (id, node) in program.nodes() {
        let shown = match &node.op {
            Op::Leaf(Leaf::Parameter) => detail == Detail::Full,
            Op::Leaf(Leaf::Constant(_)) => listed_constant(&node.name),
            _ => true,
        };
        if !shown || node.inline || !take(id) {
            continue;
        }
        let key = stage_key(program, id, detail);
        match stages.last_mut() {
            Some(last) if last.key == key => last.nodes.push(id),
            _ => stages.push(Stage { nodes: vec![id], key }),
        }
    }
    for stage in &mut stages {
        // Auxiliaries are read before what they lead to; a result that came first would hide behind them.
        let aux = |id: &NodeId| is_auxiliary(&program.node(*id).name);
        stage.nodes.sort_by_key(|id| !aux(id));
    }
    stages
}

/// Constants worth a step: what one would write down by hand.
fn listed_constant(name: &Name) -> bool {
    matches!(name.last(), Role::Ids | Role::Labels | Role::Denominators | Role::TokenTypeIds)
}

fn stage_key(program: &Program, id: NodeId, detail: Detail) -> StageKey {
    let node = program.node(id);
    let name = &node.name;
    if name.is_gradient() {
        return StageKey::Node(id);
    }
    let group = |group: Group| StageKey::Group(name.outer().unwrap_or_default(), group);
    match program.scope(node.scope).kind {
        ScopeKind::Softmax { .. } => return group(Group::Softmax),
        ScopeKind::LayerNorm { .. }
        | ScopeKind::RmsNorm { .. }
        | ScopeKind::CrossEntropy { .. }
        | ScopeKind::Activation { .. } => return StageKey::Scope(node.scope),
        ScopeKind::Group
        | ScopeKind::Embedding
        | ScopeKind::Stack
        | ScopeKind::Layer
        | ScopeKind::Attention
        | ScopeKind::Tile
        | ScopeKind::FeedForward
        | ScopeKind::Linear
        | ScopeKind::Residual
        | ScopeKind::Output
        | ScopeKind::Generation
        | ScopeKind::Backward
        | ScopeKind::Update => {}
    }
    let grouped = detail == Detail::Grouped;
    match reading(name.last()).0 {
        Some(Group::Projections | Group::Rotated) if !grouped => StageKey::Node(id),
        Some(Group::Waves) if !matches!(name.site, Site::Rotary(_)) => StageKey::Node(id),
        Some(Group::Out) if !name.site.is_attention() => StageKey::Node(id),
        Some(of) => group(of),
        None => StageKey::Node(id),
    }
}

/// The stage that a role shares with its neighbours, and its symbol where it has one.
fn reading(role: &Role) -> (Option<Group>, Option<&'static str>) {
    match (role.part(), role) {
        (Part::Queries, Role::Query) => (Some(Group::Projections), Some("Q")),
        (Part::Keys, Role::Key) => (Some(Group::Projections), Some("K")),
        (Part::Keys, Role::Value) => (Some(Group::Projections), Some("V")),
        (Part::Queries, Role::QueryRotated) | (Part::Keys, Role::KeyRotated) => (Some(Group::Rotated), None),
        (Part::Scores, Role::ScoresRaw) | (Part::Mask, Role::Mask | Role::MaskBias) => (Some(Group::Scores), None),
        (Part::Scores, Role::Scores | Role::MaskedScores) => (Some(Group::Scores), Some("score")),
        (Part::Softmax, Role::Weights) => (None, Some("A")),
        (Part::Context, Role::Context) => (None, Some("O")),
        (Part::Position, Role::Sin | Role::Cos) => (Some(Group::Waves), None),
        (Part::Block, Role::Concat) => (Some(Group::Out), Some("Concat")),
        (Part::Block, Role::Out) => (Some(Group::Out), None),
        (Part::FeedForward, Role::Hidden) => (None, Some("H")),
        (Part::FeedForward, Role::Act) => (None, Some("R")),
        (Part::Output, Role::Logits) => (None, Some("Logits")),
        (Part::Output, Role::Probs) => (None, Some("P")),
        (Part::Output, Role::Argmax | Role::PredictedProbs) => (Some(Group::Prediction), None),
        (Part::Embedding, Role::Lookup) | (Part::Norm, Role::Scaled) => (Some(Group::Lookup), None),
        (
            Part::Block
            | Part::Parameter
            | Part::Queries
            | Part::Keys
            | Part::QueryNorm
            | Part::KeyNorm
            | Part::QueriesOfScores
            | Part::KeysOfScores
            | Part::Scores
            | Part::Mask
            | Part::Softmax
            | Part::Context
            | Part::Norm
            | Part::FeedForward
            | Part::Residual
            | Part::Embedding
            | Part::Position
            | Part::Output
            | Part::Decoding
            | Part::Optimiser
            | Part::Arithmetic
            | Part::Unlisted,
            _,
        ) => (None, None),
    }
}

/// The first layer of the encoder is phase `encoder.1`: phases count layers from 1.
pub(super) fn phase_of(program: &Program, id: NodeId) -> String {
    let name = &program.node(id).name;
    let pass = match (name.call, &name.pass) {
        (Some(call), _) => format!("gen.{call} "),
        (None, Pass::Gradient(_)) => "grad ".to_owned(),
        (None, Pass::Update) => "update ".to_owned(),
        (None, Pass::Forward) => String::new(),
    };
    let place = match name.site {
        Site::Layer(stack, layer, _) => format!("{}.{}", stack.as_str(), layer + 1),
        Site::Stack(stack) | Site::Rotary(stack) | Site::FinalNorm(stack) => stack.as_str().to_owned(),
        Site::Vocabulary | Site::Embedding(_) | Site::EmbeddingNorm(_) => "input".to_owned(),
        Site::Output | Site::Loss => "output".to_owned(),
        Site::Pooler => "pooler".to_owned(),
        Site::Classifier => "classifier".to_owned(),
        Site::Next => "next".to_owned(),
        Site::Beam => "beam".to_owned(),
        Site::Cache(_) => "cache".to_owned(),
        Site::Root => name.role.to_string(),
    };
    format!("{pass}{place}")
}

/// A short name for a tensor without one: `Q1` for the first head of a query, else the path's last part.
pub(super) fn symbol_of(name: &Name, slice: &Slice) -> String {
    if let Some(of) = name.gradient_of() {
        return format!("∂L/∂{}", symbol_of(&of, slice));
    }
    let place = if name.inner.is_empty() { name.site } else { Site::Root };
    let role = name.last();
    let in_ffn = matches!(place, Site::Layer(_, _, Block::FeedForward));
    let stem = match role {
        Role::Out => match place {
            Site::Layer(_, _, Block::SelfAttention) => "AttnOut",
            Site::Layer(_, _, Block::CrossAttention) => "CrossOut",
            Site::Layer(_, _, Block::FeedForward) => "F",
            site if site.is_norm() || name.role.is_norm() => "LN",
            _ => return numbered(&name.tail(2), slice),
        },
        Role::Weight if place == Site::Embedding(None) => "E",
        Role::Weight | Role::Bias | Role::Gamma | Role::Beta | Role::Ids => return numbered(&name.tail(2), slice),
        Role::Hidden | Role::Act if !in_ffn => return numbered(&name.tail(1), slice),
        Role::Logits | Role::Probs if place != Site::Output => return numbered(&name.tail(1), slice),
        role => match reading(role).1 {
            Some(symbol) => symbol,
            None => return numbered(&name.tail(1), slice),
        },
    };
    numbered(stem, slice)
}

/// A name with the number of the head that is looked at, counted from 1.
pub(super) fn numbered(name: &str, slice: &Slice) -> String {
    let mut name = name.to_owned();
    for (axis, pick) in slice.picks() {
        if let (Axis::Head | Axis::KvHead, crate::tensor::slice::Pick::At(h)) = (axis, pick) {
            name.push_str(&(h + 1).to_string());
        }
    }
    name
}

/// What a node is to a reader, the middle of a catalogue key: `self_attn_q`, and of a beam search `beam_…`.
fn kind_of(program: &Program, name: &Name) -> String {
    let beam = name.site == Site::Next
        && program.named(&Name { call: name.call, site: Site::Next, role: Role::Parents, ..Name::default() }).is_some();
    if beam { format!("beam_{}", name.last()) } else { name.kind() }
}

/// The title of the step that computes `id`.
pub fn title_of(program: &Program, id: NodeId, slice: &Slice) -> LocalizedText {
    let node = program.node(id);
    if let Some(of) = node.name.gradient_path() {
        return LocalizedText::Message(Msg::new("walk.gradient").arg("path", of));
    }
    match find(&format!("walk.title.{}", kind_of(program, &node.name))) {
        Some(key) => LocalizedText::At(Msg::new(key), Location::of(&node.name, slice)),
        None => LocalizedText::Message(Msg::new("walk.other").arg("path", &node.path)),
    }
}

fn note_of(program: &Program, id: NodeId) -> LocalizedText {
    let kind = kind_of(program, &program.node(id).name);
    find(&format!("walk.note.{kind}")).map_or(LocalizedText::Empty, |key| LocalizedText::Message(Msg::new(key)))
}
