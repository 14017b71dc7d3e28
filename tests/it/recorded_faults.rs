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

#[rstest]
#[case::eps(ENCODER, "layer", "norm: (eps: 1e-6)", "encoder.1.norm1.out")]
#[case::eps_beside_sigma(ENCODER, "layer", "norm: (eps_at: BesideSigma)", "encoder.1.norm1.out")]
#[case::variance_over_n_minus_1(ENCODER, "layer", "norm: (unbiased: true)", "encoder.1.norm1.var")]
#[case::rms_for_layer_norm(ENCODER, "layer", "norm: (kind: RmsNorm)", "encoder.1.norm1.out")]
#[case::no_norm(ENCODER, "layer", "norm: (kind: None)", "encoder.1.ffn.hidden")]
#[case::no_beta(ENCODER, "layer", "norm: (bias: false)", "encoder.1.norm1.out")]
#[case::no_gamma_and_beta(ENCODER, "layer", "norm: (affine: false)", "encoder.1.norm1.out")]
#[case::one_plus_gamma(ENCODER, "layer", "norm: (unit_offset: true)", "encoder.1.norm1.out")]
#[case::norm_before(ENCODER, "layer", "norm: (position: Pre)", "encoder.1.self_attn.q")]
#[case::norm_of_the_output(ENCODER, "layer", "norm: (position: Output)", "encoder.1.residual1")]
#[case::root_of_d_model(ENCODER, "layer", "attention: (scale: SqrtDModel)", "encoder.1.self_attn.masked_scores")]
#[case::scores_not_scaled(ENCODER, "layer", "attention: (scale: None)", "encoder.1.self_attn.masked_scores")]
#[case::scores_scaled_twice(ENCODER, "layer", "attention: (scale: By(0.25))", "encoder.1.self_attn.masked_scores")]
#[case::no_bias_of_qkv(ENCODER, "layer", "attention: (qkv_bias: false)", "encoder.1.self_attn.q")]
#[case::no_bias_of_q(ENCODER, "layer", "attention: (q_bias: false)", "encoder.1.self_attn.q")]
#[case::no_bias_of_k(ENCODER, "layer", "attention: (k_bias: false)", "encoder.1.self_attn.k")]
#[case::no_bias_of_v(ENCODER, "layer", "attention: (v_bias: false)", "encoder.1.self_attn.v")]
#[case::no_bias_of_o(ENCODER, "layer", "attention: (out_bias: false)", "encoder.1.self_attn.out")]
#[case::window(ENCODER, "layer", "attention: (window: 2)", "encoder.1.self_attn.masked_scores")]
#[case::causal_encoder(ENCODER, "layer", "attention: (causal: true)", "encoder.1.self_attn.masked_scores")]
#[case::weak_fill(ENCODER, "layer", "attention: (fill: Value(-10.0))", "encoder.1.self_attn.masked_scores")]
#[case::weak_fill_added(
    ENCODER,
    "layer",
    "attention: (fill: Value(-10.0), mask_by: Adding)",
    "encoder.1.self_attn.masked_scores"
)]
#[case::softcap(ENCODER, "layer", "attention: (softcap: 1.0)", "encoder.1.self_attn.masked_scores")]
#[case::clipped(ENCODER, "layer", "attention: (clip_qkv: 0.5)", "encoder.1.self_attn.q")]
#[case::linear(ENCODER, "layer", "attention: (kind: Linear)", "encoder.1.self_attn.scores_raw")]
#[case::sinks(ENCODER, "layer", "attention: (sinks: true)", "encoder.1.self_attn.exp")]
#[case::qk_norm(ENCODER, "layer", "attention: (qk_norm: PerHead)", "encoder.1.self_attn.scores_raw")]
#[case::rotary(ENCODER, "layer", "attention: (positions: Rotary())", "encoder.1.self_attn.scores_raw")]
#[case::no_projection(
    ENCODER,
    "layer",
    "attention: (out_projection: false, out_bias: false)",
    "encoder.1.self_attn.out"
)]
#[case::other_heads(ENCODER, "layer", "heads: 4", "encoder.1.self_attn.q")]
#[case::gelu_tanh(ENCODER, "layer", "ffn: (activation: GeluTanh)", "encoder.1.ffn.act")]
#[case::quick_gelu(ENCODER, "layer", "ffn: (activation: QuickGelu)", "encoder.1.ffn.act")]
#[case::relu(ENCODER, "layer", "ffn: (activation: Relu)", "encoder.1.ffn.act")]
#[case::silu(ENCODER, "layer", "ffn: (activation: Silu)", "encoder.1.ffn.act")]
#[case::tanh(ENCODER, "layer", "ffn: (activation: Tanh)", "encoder.1.ffn.act")]
#[case::no_bias_of_ffn(ENCODER, "layer", "ffn: (bias: false)", "encoder.1.ffn.hidden")]
#[case::no_bias_of_w2(ENCODER, "layer", "ffn: (w2_bias: false)", "encoder.1.ffn.out")]
#[case::gated(ENCODER, "layer", "ffn: (gated: true)", "encoder.1.ffn.act")]
#[case::no_residual(ENCODER, "layer", "residual: false", "encoder.1.norm1.mean")]
#[case::no_ffn(ENCODER, "", "layers: [() => layers: [(has_ffn: false)", "encoder.1.self_attn.q")]
#[case::no_attention(ENCODER, "layer", "has_attention: false", "encoder.1.residual1")]
#[case::embedding_scaled(
    ENCODER,
    "",
    "embedding: (norm: true => embedding: (scale: true, norm: true",
    "embed.source.summed"
)]
#[case::embedding_not_normed(ENCODER, "", "embedding: (norm: true) => embedding: ()", "embed.source.out")]
#[case::positions_off_by_one(ENCODER, "", "offset: 2 => offset: 1", "embed.source.positions")]
#[case::positions_skip_padding(ENCODER, "", "offset: 2 => offset: 2, skip_padding: true", "embed.source.positions")]
#[case::sinusoidal(ENCODER, "", "Learned(max_len: 9, offset: 2) => Sinusoidal()", "embed.source.positions")]
#[case::no_positions(ENCODER, "", "Learned(max_len: 9, offset: 2) => None", "embed.source.norm.mean")]
#[case::embedding_multiplied(
    ENCODER,
    "",
    "embedding: (norm: true => embedding: (multiplier: 1.01, norm: true",
    "embed.source.summed"
)]
#[case::residual_multiplied(ENCODER, "model", ", residual_multiplier: 0.9", "encoder.0.residual1")]
#[case::another_token(ENCODER, "", "[3, 7, 2, 9, 4] => [3, 7, 2, 8, 4]", "embed.source.lookup")]
#[case::tokens_exchanged(ENCODER, "", "[3, 7, 2, 9, 4] => [3, 2, 7, 9, 4]", "embed.source.lookup")]
#[case::no_padding_mask(
    ENCODER,
    "",
    "[true, true, true, false, false] => [true, true, true, true, true]",
    "encoder.0.self_attn.masked_scores"
)]
#[case::padding_mask_shifted(
    ENCODER,
    "",
    "[true, true, true, false, false] => [true, true, true, true, false]",
    "encoder.0.self_attn.masked_scores"
)]
#[case::padding_on_the_wrong_side(
    ENCODER,
    "",
    "[true, true, true, false, false] => [false, false, true, true, true]",
    "encoder.0.self_attn.masked_scores"
)]
#[case::weight_of_another_file(
    ENCODER,
    "init",
    r#"(paths: "encoder.1.ffn.w1.weight", with: Normal(std: 0.31)), "#,
    "encoder.1.ffn.hidden"
)]
#[case::weight_is_zero(
    ENCODER,
    "init",
    r#"(paths: "encoder.1.self_attn.o.weight", with: Constant(0.0)), "#,
    "encoder.1.self_attn.out"
)]
#[case::gamma_not_loaded(
    ENCODER,
    "init",
    r#"(paths: "encoder.1.norm1.gamma", with: Constant(1.0)), "#,
    "encoder.1.norm1.out"
)]
#[case::beta_not_loaded(
    ENCODER,
    "init",
    r#"(paths: "encoder.0.norm2.beta", with: Constant(0.0)), "#,
    "encoder.0.norm2.out"
)]
#[case::bias_not_loaded(
    ENCODER,
    "init",
    r#"(paths: "encoder.1.ffn.w2.bias", with: Constant(0.0)), "#,
    "encoder.1.ffn.out"
)]
#[case::one_weight(
    ENCODER,
    "more",
    r#", edits: [Cell(path: "encoder.1.self_attn.v.weight", at: [3, 2], value: 0.5)]"#,
    "encoder.1.self_attn.v"
)]
#[case::nan_in_a_weight(
    ENCODER,
    "more",
    r#", edits: [Cell(path: "encoder.1.ffn.w1.weight", at: [3, 2], value: NaN)]"#,
    "encoder.1.ffn.hidden"
)]
#[case::infinity_in_a_bias(
    ENCODER,
    "more",
    r#", edits: [Cell(path: "encoder.1.ffn.w2.bias", at: [3], value: inf)]"#,
    "encoder.1.ffn.out"
)]
#[case::one_activation(
    ENCODER,
    "more",
    r#", edits: [Cell(path: "encoder.0.ffn.hidden", at: [1, 2, 3], value: 0.0)]"#,
    "encoder.0.ffn.hidden"
)]
#[case::a_head_is_off(
    ENCODER,
    "more",
    r#", edits: [Head(attention: "encoder.1.self_attn", head: 1)]"#,
    "encoder.1.self_attn.context"
)]
#[case::a_layer_is_off(ENCODER, "more", r#", edits: [Layer(layer: "encoder.1")]"#, "encoder.1.self_attn.out")]
#[case::a_network_is_off(ENCODER, "more", r#", edits: [Block(block: "encoder.1.ffn")]"#, "encoder.1.ffn.out")]
#[case::a_norm_is_off(ENCODER, "more", r#", edits: [Block(block: "encoder.0.norm2")]"#, "encoder.0.norm2.mean")]
#[case::positions_forgotten(ENCODER, "more", ", edits: [Positions(side: Source)]", "embed.source.positions")]
#[case::a_token_is_hidden(
    ENCODER,
    "more",
    ", edits: [Position(side: Source, at: 1)]",
    "encoder.0.self_attn.masked_scores"
)]
#[case::shared_layers(ENCODER, "stack", ", weight_groups: 1", "encoder.1.self_attn.q")]
#[case::a_layer_less(DECODER, "", "layers: [(), (/*layer*/)] => layers: [()]", "decoder.final_norm.mean_square")]
#[case::interleaved_for_halves(DECODER, "", "Rotary() => Rotary(layout: Interleaved)", "decoder.0.self_attn.q_rotated")]
#[case::another_base(DECODER, "", "Rotary() => Rotary(base: 500000.0)", "decoder.rotary.sin")]
#[case::part_of_a_head_rotates(DECODER, "", "Rotary() => Rotary(dim: 2)", "decoder.rotary.sin")]
#[case::stretched(DECODER, "", "Rotary() => Rotary(scaling: Linear(factor: 2.0))", "decoder.rotary.sin")]
#[case::one_kv_head(DECODER, "layer", "kv_heads: 1", "decoder.1.self_attn.k")]
#[case::four_kv_heads(DECODER, "layer", "kv_heads: 4", "decoder.1.self_attn.k")]
#[case::not_gated(DECODER, "layer", "ffn: (gated: false)", "decoder.1.ffn.act")]
#[case::gelu_for_silu(DECODER, "layer", "ffn: (activation: Gelu)", "decoder.1.ffn.activated")]
#[case::sigmoid_for_silu(DECODER, "layer", "ffn: (activation: Sigmoid)", "decoder.1.ffn.activated")]
#[case::linear_offset(DECODER, "layer", "ffn: (linear_offset: 1.0)", "decoder.1.ffn.act")]
#[case::ffn_clamped(DECODER, "layer", "ffn: (clamp: 0.2)", "decoder.1.ffn.activated.sigmoid")]
#[case::rms_eps(DECODER, "layer", "norm: (eps: 1e-6)", "decoder.1.norm1.out")]
#[case::rms_one_plus_gamma(DECODER, "layer", "norm: (unit_offset: true)", "decoder.1.norm1.out")]
#[case::layer_norm_for_rms(DECODER, "layer", "norm: (kind: LayerNorm)", "decoder.1.norm1.out")]
#[case::not_causal(DECODER, "layer", "attention: (causal: false)", "decoder.1.self_attn.max")]
#[case::another_window(DECODER, "layer", "attention: (window: 3)", "decoder.1.self_attn.masked_scores")]
#[case::no_softcap(DECODER, "layer", "attention: (softcap: 50.0)", "decoder.1.self_attn.masked_scores")]
#[case::full_qk_norm(DECODER, "layer", "attention: (qk_norm: Full)", "decoder.1.self_attn.q")]
#[case::sandwich(DECODER, "layer", "norm: (position: Sandwich)", "decoder.1.residual1")]
#[case::parallel(DECODER, "layer", "norm: (position: Parallel)", "decoder.1.residual1")]
#[case::post(DECODER, "layer", "norm: (position: Post)", "decoder.1.norm1.mean_square")]
#[case::head_not_tied(DECODER, "", "tied: true => tied: false", "output.logits_raw")]
#[case::logits_not_capped(DECODER, "", "softcap: 9.0 => softcap: 30.0", "output.logits")]
#[case::logits_multiplied(DECODER, "", "softcap: 9.0 => softcap: 9.0, multiplier: 0.5", "output.logits")]
#[case::hidden_multiplied(DECODER, "", "softcap: 9.0 => softcap: 9.0, hidden_multiplier: 0.5", "output.logits_raw")]
#[case::bias_of_the_head(DECODER, "", "tied: true => tied: true, bias: true", "output.logits_raw")]
#[case::no_final_norm(DECODER, "", "final_norm: true => final_norm: false", "output.logits_raw")]
#[case::decoder_embedding_scaled(
    DECODER,
    "",
    "positions: Rotary() => embedding: (scale: true), positions: Rotary()",
    "embed.target.out"
)]
#[case::one_expert_a_token(EXPERTS, "", "top_k: 2 => top_k: 1", "decoder.0.ffn.router.chosen_scores")]
#[case::gates_not_normalised(EXPERTS, "", "normalise: true => normalise: false", "decoder.0.ffn.router.gates")]
#[case::gates_multiplied(
    EXPERTS,
    "",
    "normalise: true => normalise: true, multiplier: 2.5",
    "decoder.0.ffn.router.gates"
)]
#[case::router_bias(
    EXPERTS,
    "",
    "normalise: true => normalise: true, router_bias: true",
    "decoder.0.ffn.router.logits"
)]
#[case::sigmoid_router(
    EXPERTS,
    "",
    "normalise: true => normalise: true, scores: Sigmoid",
    "decoder.0.ffn.router.chosen_scores"
)]
#[case::a_shared_expert(EXPERTS, "", "normalise: true => normalise: true, shared_d_ff: Some(12)", "decoder.0.ffn.out")]
#[case::alibi_scaled(EXPERTS, "", "Alibi() => Alibi(scaled: true)", "decoder.0.self_attn.masked_scores")]
#[case::no_alibi(EXPERTS, "", "Alibi() => None", "decoder.0.self_attn.masked_scores")]
#[case::experts_exchanged(
    EXPERTS,
    "more",
    r#", edits: [Cell(path: "decoder.1.ffn.router.weight", at: [1, 2], value: 2.0)]"#,
    "decoder.1.ffn.router.logits"
)]
#[case::other_ranges(BOTH, "", "buckets: 8 => buckets: 4", "encoder.relative.bias")]
#[case::another_distance(BOTH, "", "max_distance: 16 => max_distance: 32", "encoder.relative.bias")]
#[case::a_table_a_layer(
    BOTH,
    "",
    "max_distance: 16 => max_distance: 16, shared: false",
    "encoder.0.self_attn.masked_scores"
)]
#[case::no_cross_attention(BOTH, "layer", "cross_attention: false", "decoder.1.residual2")]
#[case::padding_of_the_source_is_seen(
    BOTH,
    "",
    "[true, true, false, false, false, => [true, true, true, true, true,",
    "encoder.0.self_attn.masked_scores"
)]
#[case::no_norm_of_the_encoder(BOTH, "", "final_norm: true => final_norm: false", "decoder.0.cross_attn.k")]
#[case::cross_head_off(
    BOTH,
    "more",
    r#", edits: [Head(attention: "decoder.0.cross_attn", head: 0)]"#,
    "decoder.0.cross_attn.context"
)]
#[case::cross_attention_off(
    BOTH,
    "more",
    r#", edits: [Block(block: "decoder.1.cross_attn")]"#,
    "decoder.1.cross_attn.out"
)]
fn a_fault_is_found_between_two_recordings(
    #[case] model: &str,
    #[case] at: &str,
    #[case] put: &str,
    #[case] path: &str,
) {
    let dir = TempDir::new().expect("a folder");
    let faulty = with(model, at, put);
    let [correct, faulty] = [model, &faulty].map(|text| PRECISIONS.map(|p| open(text, p)));
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
                assert!(!all && put == "attention: (k_bias: false)" && report.agrees(), "{a} {b} {all}: {path}");
                continue;
            };
            let Some(verdict) = report.verdict() else {
                // Without operands, a difference below the rounding between the two number types is none.
                assert!(a != b && put == "norm: (eps: 1e-6)" && model == DECODER, "{a} {b} {all}: no difference");
                continue;
            };
            let of =
                |path: &str| program.find(path).unwrap_or_else(|| panic!("{path} is no step of the correct model"));
            assert!(!all || beside.place.path == path, "{a} {b}: {beside:?}");
            let cause = of(&beside.place.path);
            let last = verdict.last_match.as_ref().map(|last| of(&last.path));
            assert!(
                last.is_none_or(|last| last < cause) && cause <= of(&verdict.place.path),
                "{a} {b} {all}: {verdict:?}, not {path}"
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
