//! Two recordings, of a correct model and of one with a fault, name the step that comparing with the scenario names, or
//! an interval that encloses it: one kind of fault after another, each written into a scenario and recorded.

use rstest::rstest;
use tempfile::TempDir;
use tui_transformer::checkpoint::Given;
use tui_transformer::debug::compare::{Mode, Options, Reference, Report, compare};
use tui_transformer::export::recording::{Kind, write};
use tui_transformer::program::Op;
use tui_transformer::scenario::syntax;
use tui_transformer::session::{self, Session};
use tui_transformer::source::recording::Recording;
use tui_transformer::tensor::{DType, Precision};

/// Post-LN, learned positions from row 2 on, padding, biases everywhere, a norm of the embedding.
const ENCODER: &str = r#"(name: "encoder", vocabulary: Size(11), model: (
    d_model: 8, heads: 2, d_ff: 16, embedding: (norm: true), positions: Learned(max_len: 9, offset: 2),
    norm: (eps: 1e-5), attention: (qkv_bias: true, out_bias: true), ffn: (activation: Gelu, bias: true),
    output: (none: true), encoder: (layers: [(), (/*layer*/)], final_norm: false/*stack*/)/*model*/),
    weights: (seed: 7, init: [/*init*/(paths: "*.gamma", with: Uniform(low: 0.5, high: 1.5)),
        (paths: "embed.*", with: Normal(std: 0.4)), (with: Normal(std: 0.3))]),
    source: (ids: [[3, 7, 2, 9, 4], [5, 1, 8, 0, 0]], real: [[true, true, true, true, true], [true, true, true, false, false]]),
    runs: [Encode()]/*more*/)"#;

/// Pre-RMSNorm, rotary positions, two key/value heads for four, a gated network, a tied head, a capped score.
const DECODER: &str = r#"(name: "decoder", vocabulary: Size(11), model: (
    d_model: 16, heads: 4, kv_heads: 2, d_ff: 24, positions: Rotary(), norm: (kind: RmsNorm, position: Pre, eps: 1e-5),
    attention: (softcap: 5.0), ffn: (activation: Silu, gated: true), output: (tied: true, softcap: 9.0),
    decoder: (layers: [(), (/*layer*/)], final_norm: true/*stack*/)/*model*/),
    weights: (seed: 7, init: [/*init*/(paths: "*.gamma", with: Uniform(low: 0.5, high: 1.5)),
        (paths: "embed.*", with: Normal(std: 0.4)), (with: Normal(std: 0.3))]),
    target: (ids: [[3, 7, 2, 9, 4, 6], [5, 1, 8, 8, 10, 2]]), runs: [Training()]/*more*/)"#;

/// Experts, of which each token goes to two, and linear biases of the scores.
const EXPERTS: &str = r#"(name: "experts", vocabulary: Size(11), model: (
    d_model: 8, heads: 2, d_ff: 12, positions: Alibi(), norm: (position: Pre, eps: 1e-5),
    ffn: (activation: Silu, gated: true, experts: Some((count: 4, top_k: 2, normalise: true))),
    decoder: (layers: [(), (/*layer*/)], final_norm: true/*stack*/)/*model*/),
    weights: (seed: 7, init: [/*init*/(paths: "*.gamma", with: Uniform(low: 0.5, high: 1.5)),
        (paths: "embed.*", with: Normal(std: 0.4)), (with: Normal(std: 0.3))]),
    target: (ids: [[3, 7, 2, 9, 4, 6], [5, 1, 8, 8, 10, 2]]), runs: [Training()]/*more*/)"#;

/// Both stacks, distances in ranges, padding on both sides.
const BOTH: &str = r#"(name: "both", vocabulary: Size(11), model: (
    d_model: 8, heads: 2, d_ff: 16, positions: Relative(buckets: 8, max_distance: 16), norm: (position: Pre, eps: 1e-5),
    ffn: (activation: Relu, bias: true), encoder: (layers: [()], final_norm: true),
    decoder: (layers: [(), (/*layer*/)], final_norm: true/*stack*/)/*model*/),
    weights: (seed: 7, init: [/*init*/(paths: "*.gamma", with: Uniform(low: 0.5, high: 1.5)),
        (paths: "embed.*", with: Normal(std: 0.4)), (with: Normal(std: 0.3))]),
    source: (ids: [[3, 7, 2, 9, 6, 4, 10], [5, 1, 0, 0, 0, 0, 0]],
        real: [[true, true, true, true, true, true, true], [true, true, false, false, false, false, false]]),
    target: (ids: [[1, 7, 2, 9, 4], [1, 8, 8, 0, 0]], real: [[true, true, true, true, true], [true, true, true, false, false]]),
    runs: [Training()]/*more*/)"#;

const PRECISIONS: [Precision; 2] = [Precision::F64, Precision::F32];

fn open(text: &str, precision: Precision) -> Session {
    let scenario = syntax::read("model.ron", text).unwrap_or_else(|d| panic!("{d:?}\n{text}"));
    let options = session::Options { precision: Some(precision), ..session::Options::default() };
    session::open(scenario, None, options).unwrap_or_else(|p| panic!("{p:?}\n{text}"))
}

/// What a recorder of modules' outputs sees.
fn is_output(path: &str) -> bool {
    let seen = [".self_attn.out", ".cross_attn.out", ".ffn.out", ".norm1.out", ".norm2.out", ".norm3.out"];
    let also = [".final_norm.out", "embed.source.out", "embed.target.out", "output.logits"];
    seen.iter().chain(&also).any(|end| path.ends_with(end))
}

/// Records what the run computes: all of it, or what modules give.
fn record(dir: &TempDir, name: &str, session: &Session, all: bool) -> String {
    let trace = session.trace(0).expect("runs");
    let nodes = trace.program().nodes().filter(|(_, node)| {
        let activation = node.dtype == DType::Float && !matches!(node.op, Op::Leaf(_)) && !node.inline;
        activation && (all || is_output(&node.path))
    });
    let nodes: Vec<_> = nodes.map(|(id, _)| id).collect();
    let path = dir.path().join(name);
    let mut file = std::fs::File::create(&path).expect("a file");
    write(Kind::Safetensors, trace, &nodes, &mut file).expect("written");
    path.to_str().expect("a name").to_owned()
}

fn reference(file: &str) -> Reference {
    Reference::open(file.as_ref(), "", false, None, &Given::default()).expect("opens")
}

fn recordings(a: &str, b: &str) -> Report {
    let session = session::open_recording(Recording::open(a.as_ref()).expect("opens"), session::Options::default());
    compare(&session.expect("opens"), 0, &reference(b), &Options::default()).expect("compares")
}

/// `text` with `put` where the comment `/*at*/` is, or, of two words `from => to`, the one for the other.
fn with(text: &str, at: &str, put: &str) -> String {
    let changed = match put.split_once(" => ") {
        Some((from, to)) => text.replacen(from, to, 1),
        None => text.replacen(&format!("/*{at}*/"), put, 1),
    };
    assert_ne!(changed, text, "{at}: {put}");
    changed
}

// One fault a line: its name, where in the model it is written (or `words`: one for another), what, and the step that
// comparing with the scenario names.
const ENCODER_FAULTS: &str = r#"
eps | layer | norm: (eps: 1e-6) | encoder.1.norm1.out
eps_beside_sigma | layer | norm: (eps_at: BesideSigma) | encoder.1.norm1.out
variance_over_n_minus_1 | layer | norm: (unbiased: true) | encoder.1.norm1.var
rms_for_layer_norm | layer | norm: (kind: RmsNorm) | encoder.1.norm1.out
no_norm | layer | norm: (kind: None) | encoder.1.ffn.hidden
no_beta | layer | norm: (bias: false) | encoder.1.norm1.out
no_gamma_and_beta | layer | norm: (affine: false) | encoder.1.norm1.out
one_plus_gamma | layer | norm: (unit_offset: true) | encoder.1.norm1.out
norm_before | layer | norm: (position: Pre) | encoder.1.self_attn.q
norm_of_the_output | layer | norm: (position: Output) | encoder.1.residual1
root_of_d_model | layer | attention: (scale: SqrtDModel) | encoder.1.self_attn.masked_scores
scores_not_scaled | layer | attention: (scale: None) | encoder.1.self_attn.masked_scores
scores_scaled_twice | layer | attention: (scale: By(0.25)) | encoder.1.self_attn.masked_scores
no_bias_of_qkv | layer | attention: (qkv_bias: false) | encoder.1.self_attn.q
no_bias_of_q | layer | attention: (q_bias: false) | encoder.1.self_attn.q
no_bias_of_k | layer | attention: (k_bias: false) | encoder.1.self_attn.k
no_bias_of_v | layer | attention: (v_bias: false) | encoder.1.self_attn.v
no_bias_of_o | layer | attention: (out_bias: false) | encoder.1.self_attn.out
window | layer | attention: (window: 2) | encoder.1.self_attn.masked_scores
causal_encoder | layer | attention: (causal: true) | encoder.1.self_attn.masked_scores
weak_fill | layer | attention: (fill: Value(-10.0)) | encoder.1.self_attn.masked_scores
weak_fill_added | layer | attention: (fill: Value(-10.0), mask_by: Adding) | encoder.1.self_attn.masked_scores
softcap | layer | attention: (softcap: 1.0) | encoder.1.self_attn.masked_scores
clipped | layer | attention: (clip_qkv: 0.5) | encoder.1.self_attn.q
linear | layer | attention: (kind: Linear) | encoder.1.self_attn.scores_raw
sinks | layer | attention: (sinks: true) | encoder.1.self_attn.exp
qk_norm | layer | attention: (qk_norm: PerHead) | encoder.1.self_attn.scores_raw
rotary | layer | attention: (positions: Rotary()) | encoder.1.self_attn.scores_raw
no_projection | layer | attention: (out_projection: false, out_bias: false) | encoder.1.self_attn.out
other_heads | layer | heads: 4 | encoder.1.self_attn.q
gelu_tanh | layer | ffn: (activation: GeluTanh) | encoder.1.ffn.act
quick_gelu | layer | ffn: (activation: QuickGelu) | encoder.1.ffn.act
relu | layer | ffn: (activation: Relu) | encoder.1.ffn.act
silu | layer | ffn: (activation: Silu) | encoder.1.ffn.act
tanh | layer | ffn: (activation: Tanh) | encoder.1.ffn.act
no_bias_of_ffn | layer | ffn: (bias: false) | encoder.1.ffn.hidden
no_bias_of_w2 | layer | ffn: (w2_bias: false) | encoder.1.ffn.out
gated | layer | ffn: (gated: true) | encoder.1.ffn.act
no_residual | layer | residual: false | encoder.1.norm1.mean
no_ffn | words | layers: [() => layers: [(has_ffn: false) | encoder.1.self_attn.q
no_attention | layer | has_attention: false | encoder.1.residual1
embedding_scaled | words | embedding: (norm: true => embedding: (scale: true, norm: true | embed.source.summed
embedding_not_normed | words | embedding: (norm: true) => embedding: () | embed.source.out
positions_off_by_one | words | offset: 2 => offset: 1 | embed.source.positions
positions_skip_padding | words | offset: 2 => offset: 2, skip_padding: true | embed.source.positions
sinusoidal | words | Learned(max_len: 9, offset: 2) => Sinusoidal() | embed.source.positions
no_positions | words | Learned(max_len: 9, offset: 2) => None | embed.source.norm.mean
embedding_multiplied | words | embedding: (norm: true => embedding: (multiplier: 1.01, norm: true | embed.source.summed
residual_multiplied | model | , residual_multiplier: 0.9 | encoder.0.residual1
another_token | words | [3, 7, 2, 9, 4] => [3, 7, 2, 8, 4] | embed.source.lookup
tokens_exchanged | words | [3, 7, 2, 9, 4] => [3, 2, 7, 9, 4] | embed.source.lookup
no_padding_mask | words | [true, true, true, false, false] => [true, true, true, true, true] | encoder.0.self_attn.masked_scores
padding_mask_shifted | words | [true, true, true, false, false] => [true, true, true, true, false] | encoder.0.self_attn.masked_scores
padding_on_the_wrong_side | words | [true, true, true, false, false] => [false, false, true, true, true] | encoder.0.self_attn.masked_scores
weight_of_another_file | init | (paths: "encoder.1.ffn.w1.weight", with: Normal(std: 0.31)),  | encoder.1.ffn.hidden
weight_is_zero | init | (paths: "encoder.1.self_attn.o.weight", with: Constant(0.0)),  | encoder.1.self_attn.out
gamma_not_loaded | init | (paths: "encoder.1.norm1.gamma", with: Constant(1.0)),  | encoder.1.norm1.out
beta_not_loaded | init | (paths: "encoder.0.norm2.beta", with: Constant(0.0)),  | encoder.0.norm2.out
bias_not_loaded | init | (paths: "encoder.1.ffn.w2.bias", with: Constant(0.0)),  | encoder.1.ffn.out
one_weight | more | , edits: [Cell(path: "encoder.1.self_attn.v.weight", at: [3, 2], value: 0.5)] | encoder.1.self_attn.v
nan_in_a_weight | more | , edits: [Cell(path: "encoder.1.ffn.w1.weight", at: [3, 2], value: NaN)] | encoder.1.ffn.hidden
infinity_in_a_bias | more | , edits: [Cell(path: "encoder.1.ffn.w2.bias", at: [3], value: inf)] | encoder.1.ffn.out
one_activation | more | , edits: [Cell(path: "encoder.0.ffn.hidden", at: [1, 2, 3], value: 0.0)] | encoder.0.ffn.hidden
a_head_is_off | more | , edits: [Head(attention: "encoder.1.self_attn", head: 1)] | encoder.1.self_attn.context
a_layer_is_off | more | , edits: [Layer(layer: "encoder.1")] | encoder.1.self_attn.out
a_network_is_off | more | , edits: [Block(block: "encoder.1.ffn")] | encoder.1.ffn.out
a_norm_is_off | more | , edits: [Block(block: "encoder.0.norm2")] | encoder.0.norm2.mean
positions_forgotten | more | , edits: [Positions(side: Source)] | embed.source.positions
a_token_is_hidden | more | , edits: [Position(side: Source, at: 1)] | encoder.0.self_attn.masked_scores
shared_layers | stack | , weight_groups: 1 | encoder.1.self_attn.q"#;

const DECODER_FAULTS: &str = r"
a_layer_less | words | layers: [(), (/*layer*/)] => layers: [()] | decoder.final_norm.mean_square
interleaved_for_halves | words | Rotary() => Rotary(layout: Interleaved) | decoder.0.self_attn.q_rotated
another_base | words | Rotary() => Rotary(base: 500000.0) | decoder.rotary.sin
part_of_a_head_rotates | words | Rotary() => Rotary(dim: 2) | decoder.rotary.sin
stretched | words | Rotary() => Rotary(scaling: Linear(factor: 2.0)) | decoder.rotary.sin
one_kv_head | layer | kv_heads: 1 | decoder.1.self_attn.k
four_kv_heads | layer | kv_heads: 4 | decoder.1.self_attn.k
not_gated | layer | ffn: (gated: false) | decoder.1.ffn.act
gelu_for_silu | layer | ffn: (activation: Gelu) | decoder.1.ffn.activated
sigmoid_for_silu | layer | ffn: (activation: Sigmoid) | decoder.1.ffn.activated
linear_offset | layer | ffn: (linear_offset: 1.0) | decoder.1.ffn.act
ffn_clamped | layer | ffn: (clamp: 0.2) | decoder.1.ffn.activated.sigmoid
rms_eps | layer | norm: (eps: 1e-6) | decoder.1.norm1.out
rms_one_plus_gamma | layer | norm: (unit_offset: true) | decoder.1.norm1.out
layer_norm_for_rms | layer | norm: (kind: LayerNorm) | decoder.1.norm1.out
not_causal | layer | attention: (causal: false) | decoder.1.self_attn.max
another_window | layer | attention: (window: 3) | decoder.1.self_attn.masked_scores
no_softcap | layer | attention: (softcap: 50.0) | decoder.1.self_attn.masked_scores
full_qk_norm | layer | attention: (qk_norm: Full) | decoder.1.self_attn.q
sandwich | layer | norm: (position: Sandwich) | decoder.1.residual1
parallel | layer | norm: (position: Parallel) | decoder.1.residual1
post | layer | norm: (position: Post) | decoder.1.norm1.mean_square
head_not_tied | words | tied: true => tied: false | output.logits_raw
logits_not_capped | words | softcap: 9.0 => softcap: 30.0 | output.logits
logits_multiplied | words | softcap: 9.0 => softcap: 9.0, multiplier: 0.5 | output.logits
hidden_multiplied | words | softcap: 9.0 => softcap: 9.0, hidden_multiplier: 0.5 | output.logits_raw
bias_of_the_head | words | tied: true => tied: true, bias: true | output.logits_raw
no_final_norm | words | final_norm: true => final_norm: false | output.logits_raw
decoder_embedding_scaled | words | positions: Rotary() => embedding: (scale: true), positions: Rotary() | embed.target.out";

const EXPERTS_FAULTS: &str = r#"
one_expert_a_token | words | top_k: 2 => top_k: 1 | decoder.0.ffn.router.chosen_scores
gates_not_normalised | words | normalise: true => normalise: false | decoder.0.ffn.router.gates
gates_multiplied | words | normalise: true => normalise: true, multiplier: 2.5 | decoder.0.ffn.router.gates
router_bias | words | normalise: true => normalise: true, router_bias: true | decoder.0.ffn.router.logits
sigmoid_router | words | normalise: true => normalise: true, scores: Sigmoid | decoder.0.ffn.router.chosen_scores
a_shared_expert | words | normalise: true => normalise: true, shared_d_ff: Some(12) | decoder.0.ffn.out
alibi_scaled | words | Alibi() => Alibi(scaled: true) | decoder.0.self_attn.masked_scores
no_alibi | words | Alibi() => None | decoder.0.self_attn.masked_scores
experts_exchanged | more | , edits: [Cell(path: "decoder.1.ffn.router.weight", at: [1, 2], value: 2.0)] | decoder.1.ffn.router.logits"#;

const BOTH_FAULTS: &str = r#"
other_ranges | words | buckets: 8 => buckets: 4 | encoder.relative.bias
another_distance | words | max_distance: 16 => max_distance: 32 | encoder.relative.bias
a_table_a_layer | words | max_distance: 16 => max_distance: 16, shared: false | encoder.0.self_attn.masked_scores
no_cross_attention | layer | cross_attention: false | decoder.1.residual2
padding_of_the_source_is_seen | words | [true, true, false, false, false, => [true, true, true, true, true, | encoder.0.self_attn.masked_scores
no_norm_of_the_encoder | words | final_norm: true => final_norm: false | decoder.0.cross_attn.k
cross_head_off | more | , edits: [Head(attention: "decoder.0.cross_attn", head: 0)] | decoder.0.cross_attn.context
cross_attention_off | more | , edits: [Block(block: "decoder.1.cross_attn")] | decoder.1.cross_attn.out"#;

#[rstest]
fn a_fault_is_found_between_two_recordings(
    #[values((ENCODER, ENCODER_FAULTS), (DECODER, DECODER_FAULTS), (EXPERTS, EXPERTS_FAULTS), (BOTH, BOTH_FAULTS))]
    (model, faults): (&str, &str),
    #[values(0, 1, 2, 3)] quarter: usize,
) {
    let correct = PRECISIONS.map(|p| open(model, p));
    for line in faults.trim().lines().skip(quarter).step_by(4) {
        let [name, at, put, path] = line.split(" | ").collect::<Vec<_>>()[..] else { panic!("{line}") };
        found(model, &correct, name, (at, put), path);
    }
}

fn found(model: &str, correct: &[Session; 2], name: &str, (at, put): (&str, &str), path: &str) {
    let dir = TempDir::new().expect("a folder");
    let faulty = with(model, at, put);
    let faulty = PRECISIONS.map(|p| open(&faulty, p));
    let program = &correct[0].runs[0].program;
    for (a, b) in [(0, 0), (1, 1), (1, 0)] {
        for all in [true, false] {
            let file = |name: &str, session: &Session| record(&dir, &format!("{name}.safetensors"), session, all);
            let (ours, theirs) = (file("a", &correct[a]), file("b", &faulty[b]));
            // Next to the scenario, each step is computed from the operands of the recording.
            let options = Options { mode: Mode::Isolated, ..Options::default() };
            let beside = compare(&correct[a], 0, &reference(&theirs), &options).expect("compares");
            let report = recordings(&ours, &theirs);
            let Some(beside) = beside.verdict() else {
                // What no output of a module shows: a bias of the keys moves all scores of a row alike.
                assert!(!all && put == "attention: (k_bias: false)" && report.agrees(), "{name} {a} {b} {all}: {path}");
                continue;
            };
            let Some(verdict) = report.verdict() else {
                // Without operands, a difference below the rounding between the two number types is none.
                assert!(
                    a != b && put == "norm: (eps: 1e-6)" && model == DECODER,
                    "{name} {a} {b} {all}: no difference"
                );
                continue;
            };
            let of =
                |path: &str| program.find(path).unwrap_or_else(|| panic!("{path} is no step of the correct model"));
            assert!(!all || beside.place.path == path, "{name} {a} {b}: {beside:?}");
            let cause = of(&beside.place.path);
            let last = verdict.last_match.as_ref().map(|last| of(&last.path));
            assert!(
                last.is_none_or(|last| last < cause) && cause <= of(&verdict.place.path),
                "{name} {a} {b} {all}: {verdict:?}, not {path}"
            );
        }
    }
}

#[rstest]
fn correct_recordings_raise_no_difference(#[values(ENCODER, DECODER, EXPERTS, BOTH)] model: &str) {
    let dir = TempDir::new().expect("a folder");
    let [exact, single] = PRECISIONS.map(|p| open(model, p));
    for all in [true, false] {
        for (a, b) in [(&exact, &exact), (&single, &single), (&single, &exact), (&exact, &single)] {
            let [a, b] = [("a", a), ("b", b)].map(|(n, s)| record(&dir, &format!("{n}.safetensors"), s, all));
            let report = recordings(&a, &b);
            assert!(report.agrees(), "{all}: {:?}", report.verdict());
            assert_eq!((report.unmatched.len(), report.nodes.len()), (0, report.tensors));
        }
    }
}
