//! An optimiser's update as numbered steps, one a parameter: the gradient, the optimiser's memory, the bias
//! correction, and the new weight beside the old.

use super::backward::{Mirror, Start, symbols};
use super::plan::symbol_of;
use super::{LocalizedText, Role, Step, View};
use crate::program::{Gradients, NodeId, Program};
use crate::tensor::slice::Slice;
use crate::text::Msg;

/// What an update has of each parameter, in reading order: name of the node, how it is written, whether it is a
/// result.
const PARTS: &[(&str, &str, bool)] = &[
    ("clipped", "clip(∂L/∂{})", false),
    ("decay", "decay({})", false),
    ("decayed_gradient", "g({})", false),
    ("decayed", "decayed({})", false),
    ("velocity_before", "u₀({})", false),
    ("velocity", "u({})", true),
    ("m_before", "m₀({})", false),
    ("m", "m({})", true),
    ("v_before", "v₀({})", false),
    ("v", "v({})", true),
    ("m_hat", "m̂({})", true),
    ("v_hat", "v̂({})", true),
    ("step", "Δ({})", true),
    ("new", "{}′", true),
];

/// Steps for the update in `program`, whose run is `run`. `forward` are the steps of the forward run, whose nodes
/// `program` begins with.
pub fn update_plan(program: &Program, run: usize, loss: &str, forward: &[Step], start: Start) -> Vec<Step> {
    let Some(gradients) = Gradients::find(program, loss) else {
        return Vec::new();
    };
    let mirror = Mirror::new(program, &gradients, forward);
    let mut steps: Vec<Step> = Vec::new();
    let mut push = |views: Vec<View>, title: Msg, note: &'static str| {
        if views.is_empty() {
            return;
        }
        let n = steps.len() as u32;
        let mut step = Step {
            number: vec![start.number + n],
            section: format!("{}.{}", start.section, n + 1),
            phase: "update".to_owned(),
            run,
            title: LocalizedText::Empty,
            note: LocalizedText::Message(Msg::new(note)),
            formula: String::new(),
            views,
        };
        step.title = LocalizedText::Message(title.arg("symbols", symbols(&step)));
        steps.push(step);
    };
    let view = |id: NodeId, symbol: String, slice: &Slice, role: Role| {
        let mut view = View::new(program, run, id, symbol, slice.clone()).ok()?;
        view.role = role;
        Some(view)
    };
    // What all parameters share.
    let shared = [
        ("learning_rate", "lr"),
        ("bias_correction1", "1-β₁ᵗ"),
        ("bias_correction2", "1-β₂ᵗ"),
        ("decay_rate", "lr·λ"),
        ("gradient_norm", "‖∂L‖"),
        ("clip", "clip"),
    ];
    let views = shared.iter().filter_map(|(name, symbol)| {
        let id = program.find(&format!("update.{name}"))?;
        view(id, (*symbol).to_owned(), &Slice::all(), Role::Result)
    });
    push(views.collect(), Msg::new("update.title.shared"), "update.note.shared");
    for (parameter, gradient) in gradients.parameters(program) {
        let path = &program.node(parameter).path;
        let named = mirror.views.get(&parameter).map_or(&[][..], Vec::as_slice);
        let mut seen: Vec<(String, Slice)> = named.iter().map(|(_, v)| (v.symbol.clone(), v.slice.clone())).collect();
        if !mirror.covers(parameter, named) {
            seen.push((symbol_of(path, &Slice::all()), Slice::all()));
        }
        let mut views = Vec::new();
        for (symbol, slice) in &seen {
            views.extend(view(parameter, symbol.clone(), slice, Role::Auxiliary));
            views.extend(view(gradient, format!("∂L/∂{symbol}"), slice, Role::Auxiliary));
            for (name, how, result) in PARTS {
                let role = if *result { Role::Result } else { Role::Auxiliary };
                if let Some(id) = program.find(&format!("update.{path}.{name}")) {
                    views.extend(view(id, how.replace("{}", symbol), slice, role));
                }
            }
        }
        let adam = program.find(&format!("update.{path}.m")).is_some();
        let momentum = program.find(&format!("update.{path}.velocity")).is_some();
        let note = if adam {
            "update.note.adam"
        } else if momentum {
            "update.note.momentum"
        } else {
            "update.note.sgd"
        };
        push(views, Msg::new("update.title.parameter").arg("path", path), note);
    }
    steps
}
