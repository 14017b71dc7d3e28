//! An optimiser's update as numbered steps, one a parameter: the gradient, the optimiser's memory, the bias
//! correction, and the new weight next to the old.

use super::backward::{Mirror, Start, symbols};
use super::plan::symbol_of;
use super::{LocalizedText, Role, Step, View};
use crate::program::{Gradients, Name, NodeId, Program, Role as Quantity};
use crate::tensor::slice::Slice;
use crate::text::Msg;

/// What an update has of each parameter, in reading order: role of the node, how it is written, whether it is a
/// result.
const PARTS: &[(Quantity, &str, bool)] = &[
    (Quantity::Clipped, "clip(∂L/∂{})", false),
    (Quantity::Decay, "decay({})", false),
    (Quantity::DecayedGradient, "g({})", false),
    (Quantity::Decayed, "decayed({})", false),
    (Quantity::VelocityBefore, "u₀({})", false),
    (Quantity::Velocity, "u({})", true),
    (Quantity::FirstMomentBefore, "m₀({})", false),
    (Quantity::FirstMoment, "m({})", true),
    (Quantity::SecondMomentBefore, "v₀({})", false),
    (Quantity::SecondMoment, "v({})", true),
    (Quantity::FirstMomentHat, "m̂({})", true),
    (Quantity::SecondMomentHat, "v̂({})", true),
    (Quantity::UpdateStep, "Δ({})", true),
    (Quantity::New, "{}′", true),
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
        (Quantity::LearningRate, "lr"),
        (Quantity::BiasCorrection1, "1-β₁ᵗ"),
        (Quantity::BiasCorrection2, "1-β₂ᵗ"),
        (Quantity::DecayRate, "lr·λ"),
        (Quantity::GradientNorm, "‖∂L‖"),
        (Quantity::Clip, "clip"),
    ];
    let views = shared.into_iter().filter_map(|(role, symbol)| {
        let id = program.named(&Name::default().update().then(role))?;
        view(id, symbol.to_owned(), &Slice::all(), Role::Result)
    });
    push(views.collect(), Msg::new("update.title.shared"), "update.note.shared");
    for (parameter, gradient) in gradients.parameters(program) {
        let name = &program.node(parameter).name;
        let updated = name.update();
        let named = mirror.views.get(&parameter).map_or(&[][..], Vec::as_slice);
        let mut seen: Vec<(String, Slice)> = named.iter().map(|(_, v)| (v.symbol.clone(), v.slice.clone())).collect();
        if !mirror.covers(parameter, named) {
            seen.push((symbol_of(name, &Slice::all()), Slice::all()));
        }
        let mut views = Vec::new();
        for (symbol, slice) in &seen {
            views.extend(view(parameter, symbol.clone(), slice, Role::Auxiliary));
            views.extend(view(gradient, format!("∂L/∂{symbol}"), slice, Role::Auxiliary));
            for (part, how, result) in PARTS {
                let role = if *result { Role::Result } else { Role::Auxiliary };
                if let Some(id) = program.named(&updated.then(part.clone())) {
                    views.extend(view(id, how.replace("{}", symbol), slice, role));
                }
            }
        }
        let adam = program.named(&updated.then(Quantity::FirstMoment)).is_some();
        let momentum = program.named(&updated.then(Quantity::Velocity)).is_some();
        let note = if adam {
            "update.note.adam"
        } else if momentum {
            "update.note.momentum"
        } else {
            "update.note.sgd"
        };
        push(views, Msg::new("update.title.parameter").arg("path", name), note);
    }
    steps
}
