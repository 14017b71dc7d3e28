//! A recording opened: a session with one run, whose nodes are what another program computed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::open::new_run;
use super::recorded_plan::recorded_steps;
use super::{AnyBindings, Inputs, Options, RunKind, Session, Steps};
use crate::model::{Outputs, Sequences};
use crate::program::NodeId;
use crate::scenario::diagnostic::Problem;
use crate::scenario::tokenise::{Token, Vocab};
use crate::scenario::weights::Coverage;
use crate::scenario::{Scenario, syntax};
use crate::source::Tokenizer;
use crate::source::recording::{InputIds, Recording};
use crate::tensor::Precision;
use crate::text::{Msg, escape};
use crate::trace::{AnyTrace, Trace};

/// The name of the run of a recording.
pub const RECORDED_RUN: &str = "recorded";

/// Opens a recording: one numbered step a tensor, in recorded order, grouped by module. Nothing is read yet but the ids
/// that label tokens.
///
/// # Errors
/// Where two tensors have one name, or a shape is too large to have an address.
pub fn open_recording(recording: Recording, options: Options) -> Result<Session, Vec<Problem>> {
    let called = std::path::Path::new(&recording.name).file_name().map(|n| n.to_string_lossy().into_owned());
    let scenario = placeholder(called.as_deref().unwrap_or(&recording.name));
    let precision = options.precision.unwrap_or_else(|| recording.precision());
    let program = recording.program().map_err(|e| {
        let msg =
            Msg::new("weights.broken_file").arg("file", escape(&recording.name)).arg("why", escape(&e.to_string()));
        vec![Problem::new("", msg)]
    })?;
    let program = Arc::new(program);
    let inputs = Arc::new(inputs(&recording));
    let given: Vec<String> =
        recording.metadata.get("inputs").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let stored = |id: NodeId| format!("{:?}", recording.tensors[id.index()].stored);
    let steps = Steps::new(recorded_steps(&program, 0, &given, &stored));
    let recording = Arc::new(recording);
    let trace = match precision {
        Precision::F32 => AnyTrace::F32(Trace::stored(&program, Arc::clone(&recording) as _)),
        Precision::F64 => AnyTrace::F64(Trace::stored(&program, Arc::clone(&recording) as _)),
    };
    let run = new_run(RECORDED_RUN, RunKind::Recorded, program, Outputs::default(), &inputs);
    let _ = run.trace.set(Ok(trace));
    Ok(Session {
        scenario,
        origin: Some(recording.name.clone().into()),
        text: None,
        precision,
        rounding: None,
        source_words: Vocab::default(),
        target_words: Vocab::default(),
        inputs,
        specs: Vec::new(),
        params: match precision {
            Precision::F32 => AnyBindings::F32(HashMap::default()),
            Precision::F64 => AnyBindings::F64(HashMap::default()),
        },
        updates: 0,
        coverage: Coverage::default(),
        runs: vec![run],
        steps: Arc::new(steps),
        detail: options.detail,
        base: None,
        run_steps: Mutex::default(),
        budget: None,
        own: std::sync::OnceLock::new(),
        patient: std::sync::atomic::AtomicBool::default(),
        model_type: std::sync::OnceLock::new(),
    })
}

impl Session {
    /// Names the tokens of a recording by the tokenizer of its model.
    pub fn name_tokens(&mut self, tokenizer: Tokenizer) {
        let words = Vocab::of_tokenizer(tokenizer, None);
        let mut inputs = Inputs::clone(&self.inputs);
        for token in inputs.source_tokens.iter_mut().chain(&mut inputs.target_tokens).flatten() {
            token.text = words.word(token.id);
        }
        self.inputs = Arc::new(inputs);
        for run in &mut self.runs {
            run.inputs = Arc::clone(&self.inputs);
        }
        self.source_words = words.clone();
        self.target_words = words;
    }
}

/// The scenario of what has none: a name, and a model that nothing is computed with.
fn placeholder(name: &str) -> Scenario {
    let text = r#"(name: "", vocabulary: Size(1), model: (d_model: 1, heads: 1, d_ff: 1), runs: [])"#;
    let mut scenario = syntax::read("", text).expect("a scenario with every field that is needed");
    name.clone_into(&mut scenario.name);
    scenario
}

/// What labels the tokens: the ids that the model read.
fn inputs(recording: &Recording) -> Inputs {
    let tokens = |ids: &InputIds| -> Vec<Vec<Token>> {
        let token = |id: &i64| Token { text: id.to_string(), id: *id, unknown: false };
        ids.iter().map(|row| row.iter().map(token).collect()).collect()
    };
    let read = |names: &[&str]| names.iter().find_map(|name| recording.input_ids(name));
    let sequences = |ids: &InputIds| Sequences { ids: ids.concat(), batch: ids.len(), ..Sequences::default() };
    let source = read(&["input_ids", "ids", "tokens", "src", "source_ids"]);
    let target = read(&["decoder_input_ids", "tgt", "target_ids"]);
    Inputs {
        source_tokens: source.as_ref().map(tokens).unwrap_or_default(),
        target_tokens: target.as_ref().map(tokens).unwrap_or_default(),
        source: source.as_ref().map(sequences),
        target: target.as_ref().map(sequences),
        ..Inputs::default()
    }
}
