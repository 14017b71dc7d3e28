//! The numbered steps of a recording.

use std::sync::Arc;

use crate::program::{NodeId, Program};
use crate::source::recording::{modules, phase};
use crate::tensor::Slice;
use crate::text::Msg;
use crate::walkthrough::{LocalizedText, Step, View};

/// One step a node of a recorded run; `given` are names of what the model was given, `stored` names the number type of
/// a node in its file.
pub(super) fn recorded_steps(
    program: &Program,
    run: usize,
    given: &[String],
    stored: &dyn Fn(NodeId) -> String,
) -> Vec<Step> {
    let modules = modules(program.nodes().map(|(_, n)| &*n.path));
    let (mut last, mut section, mut part) = (None, 0, 0);
    let mut steps = Vec::with_capacity(program.len());
    for (id, node) in program.nodes() {
        let name = &node.path;
        let module = phase(name, given, &modules);
        if last.as_ref() == Some(&module) {
            part += 1;
        } else {
            (section, part) = (section + 1, 1);
            last = Some(module.clone());
        }
        let Ok(view) = View::new(program, run, id, &**name, Slice::all()) else {
            continue;
        };
        let note = Msg::new("recording.note").arg("shape", node.shape).arg("type", stored(id));
        steps.push(Step {
            number: vec![steps.len() as u32 + 1],
            section: format!("{section}.{part}"),
            phase: module,
            run,
            title: LocalizedText::Given { en: Arc::clone(name), zh: Arc::clone(name) },
            note: LocalizedText::Message(note),
            formula: String::new(),
            views: vec![view],
        });
    }
    steps
}
