//! The automatic plan: numbered steps for any program, at a chosen level of detail.

use super::Location;
use super::{LocalizedText, Step, View, is_auxiliary};
use crate::program::{Leaf, NodeId, Op, Program, ScopeKind};
use crate::tensor::Axis;
use crate::tensor::slice::Slice;
use crate::text::Msg;
use crate::text::catalogue::find;

/// How finely the automatic plan cuts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    key: String,
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
                    let path = &program.node(id).path;
                    let fits = slice.is_all() || slice.resolve(&program.node(id).shape).is_ok();
                    let slice = if fits { slice.clone() } else { Slice::all() };
                    let symbol = symbols(path, &slice).unwrap_or_else(|| symbol_of(path, &slice));
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
            Op::Leaf(Leaf::Constant(_)) => listed_constant(&node.path),
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
        let aux = |id: &NodeId| is_auxiliary(&program.node(*id).path);
        stage.nodes.sort_by_key(|id| !aux(id));
    }
    stages
}

/// Constants worth a step: what a person would write down.
fn listed_constant(path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    matches!(last, "ids" | "labels" | "denominators" | "token_type_ids")
}

/// Neighbouring nodes with the same key share a step.
fn stage_key(program: &Program, id: NodeId, detail: Detail) -> String {
    let node = program.node(id);
    let path = &*node.path;
    if path.starts_with("grad.") {
        return path.to_owned();
    }
    let scope = program.scope(node.scope);
    let last = path.rsplit('.').next().unwrap_or(path);
    let owner = || path.strip_suffix(last).unwrap_or("").to_owned();
    match scope.kind {
        ScopeKind::Softmax { .. } => format!("{}softmax", owner()),
        ScopeKind::LayerNorm { .. }
        | ScopeKind::RmsNorm { .. }
        | ScopeKind::CrossEntropy { .. }
        | ScopeKind::Activation { .. } => scope.path.to_string(),
        _ => match last {
            "scores_raw" | "scores" | "mask" | "mask_bias" | "masked_scores" => {
                format!("{}scores", owner())
            }
            "q" | "k" | "v" if detail == Detail::Grouped => format!("{}qkv", owner()),
            "q_rotated" | "k_rotated" if detail == Detail::Grouped => format!("{}rotated", owner()),
            "sin" | "cos" if path.contains("rotary") => format!("{}waves", owner()),
            "concat" | "out" if path.contains("attn") => format!("{}out", owner()),
            "argmax" | "predicted_probs" => format!("{}prediction", owner()),
            "lookup" | "scaled" => format!("{}lookup", owner()),
            _ => path.to_owned(),
        },
    }
}

/// `encoder.0.…` is phase `encoder.1`, as a person counts.
pub(super) fn phase_of(program: &Program, id: NodeId) -> String {
    let path = &*program.node(id).path;
    let mut parts = path.split('.').peekable();
    let mut phase = String::new();
    while let Some(part) = parts.next() {
        match part {
            "gen" => {
                let call = parts.next().unwrap_or("0");
                phase = format!("gen.{call} ");
            }
            "grad" | "update" => phase.extend([part, " "]),
            "encoder" | "decoder" => {
                return match parts.next().and_then(|n| n.parse::<u32>().ok()) {
                    Some(layer) => format!("{phase}{part}.{}", layer + 1),
                    None => format!("{phase}{part}"),
                };
            }
            "embed" | "vocabulary" => return format!("{phase}input"),
            "output" | "loss" => return format!("{phase}output"),
            other => return format!("{phase}{other}"),
        }
    }
    phase.trim_end().to_owned()
}

/// A short name for a tensor without one: `Q1` for the first head of a query, else the path's last part.
pub(super) fn symbol_of(path: &str, slice: &Slice) -> String {
    if let Some(of) = path.strip_prefix("grad.") {
        return format!("∂L/∂{}", symbol_of(of, slice));
    }
    let parts: Vec<&str> = path.split('.').collect();
    let last = *parts.last().unwrap_or(&path);
    let before = parts.len().checked_sub(2).map_or("", |i| parts[i]);
    let stem = match (before, last) {
        (_, "q") => "Q",
        (_, "k") => "K",
        (_, "v") => "V",
        (_, "scores" | "masked_scores") => "score",
        (_, "weights") => "A",
        (_, "context") => "O",
        (_, "concat") => "Concat",
        ("self_attn", "out") => "AttnOut",
        ("cross_attn", "out") => "CrossOut",
        ("ffn", "hidden") => "H",
        ("ffn", "act") => "R",
        ("ffn", "out") => "F",
        ("output", "logits") => "Logits",
        ("output", "probs") => "P",
        ("embed", "weight") => "E",
        (norm, "out") if norm.contains("norm") => "LN",
        (_, "weight" | "bias" | "gamma" | "beta" | "ids" | "out") => "",
        _ => last,
    };
    if stem.is_empty() { numbered(&format!("{before}.{last}"), slice) } else { numbered(stem, slice) }
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

/// What a node is to a reader, the middle of a catalogue key: the end of its path, and of a beam search `beam_…`.
fn kind_of(program: &Program, path: &str) -> String {
    let beam = path.rsplit_once(".next.").filter(|(call, _)| {
        let beams = program.find(&format!("{call}.next.parents"));
        beams.is_some()
    });
    match beam {
        Some((_, last)) => format!("beam_{last}"),
        None => place_free(path),
    }
}

/// The part of a path that says what a node is, whatever its layer: `self_attn.q`.
fn place_free(path: &str) -> String {
    let parts: Vec<&str> = path.split('.').filter(|p| p.parse::<u32>().is_err() && *p != "gen").collect();
    let skip = usize::from(matches!(parts.first(), Some(&("encoder" | "decoder"))) && parts.len() > 1);
    let mut name = parts[skip..].join("_");
    for numbered in ["norm", "residual", "sublayer"] {
        for digit in ["1", "2", "3"] {
            name = name.replace(&format!("{numbered}{digit}"), numbered);
        }
    }
    name
}

/// The title of the step that computes `id`.
pub fn title_of(program: &Program, id: NodeId, slice: &Slice) -> LocalizedText {
    let path = &*program.node(id).path;
    let (of, gradient) = path.strip_prefix("grad.").map_or((path, false), |p| (p, true));
    let kind = kind_of(program, of);
    if gradient {
        return LocalizedText::Message(Msg::new("walk.gradient").arg("path", of));
    }
    match find(&format!("walk.title.{kind}")) {
        Some(key) => LocalizedText::At(Msg::new(key), Location::of(of, slice)),
        None => LocalizedText::Message(Msg::new("walk.other").arg("path", of)),
    }
}

fn note_of(program: &Program, id: NodeId) -> LocalizedText {
    let kind = kind_of(program, &program.node(id).path);
    find(&format!("walk.note.{kind}")).map_or(LocalizedText::Empty, |key| LocalizedText::Message(Msg::new(key)))
}
