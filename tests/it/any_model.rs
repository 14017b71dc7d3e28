//! Any configuration: a valid one opens, runs in both number types and replays bit for bit; one with a mistake is
//! refused with a problem that names the field; nothing panics.

use std::sync::Arc;

use proptest::prelude::*;
use tui_transformer::debug::whatif::{Edit, WhatIf, saved};
use tui_transformer::model::config::{
    Activation, Algorithm, AttentionConfig, AttentionKind, ClassifierConfig, ClassifierInput, DropoutConfig,
    EmbeddingConfig, EpsAt, ExpertsConfig, FfnConfig, HeadTransform, LayerConfig, MaskBy, MaskFillConfig, ModelConfig,
    NormConfig, NormKind, NormPosition, OutputConfig, PairLayout, PoolerConfig, Positions, ProjectAt, QkNorm,
    RotaryScaling, RouterScores, Scale, SoftmaxShift, StackConfig,
};
use tui_transformer::model::own::NormOverrides;
use tui_transformer::model::params::cacheable;
use tui_transformer::scenario::schema::{
    Changes, Decode, Init, InitRule, Input, Labels, Loss, MaskInput, Optimiser, Prefix, Run, Vocabulary, Weights,
};
use tui_transformer::scenario::{Scenario, syntax, write};
use tui_transformer::session::{Options, open};
use tui_transformer::tensor::{DType, Precision, Shape};
use tui_transformer::trace::derive::replay_node;
use tui_transformer::with_any;

/// Choices drawn by proptest, used up one after the other; 0 is the simplest, so failures shrink.
struct Draw<'a> {
    left: &'a [u8],
}

impl Draw<'_> {
    fn below(&mut self, n: usize) -> usize {
        let (&first, rest) = self.left.split_first().unwrap_or((&0, &[]));
        self.left = rest;
        first as usize % n
    }

    fn yes(&mut self) -> bool {
        self.below(2) == 1
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

const WORDS: usize = 6;

fn norm(d: &mut Draw<'_>, d_model: usize, parallel: bool) -> NormConfig {
    let mut positions = vec![NormPosition::Post, NormPosition::Pre, NormPosition::Sandwich, NormPosition::Output];
    if parallel {
        positions.extend([NormPosition::Parallel, NormPosition::ParallelNorms]);
    }
    let position = d.of(&positions);
    let mut n = NormConfig {
        kind: d.of(&[NormKind::LayerNorm, NormKind::RmsNorm, NormKind::None]),
        position,
        eps: d.of(&[1e-5, 0.0, 1e-6, 0.1]),
        eps_at: d.of(&[EpsAt::InsideRoot, EpsAt::BesideSigma]),
        affine: d.yes(),
        unbiased: d_model > 1 && d.yes(),
        bias: d.yes(),
        unit_offset: d.yes(),
        on_attention: position != NormPosition::Pre || d.yes(),
    };
    // What a kind does not read is not written.
    let usual = NormConfig::default();
    if n.kind != NormKind::LayerNorm {
        n.unbiased = false;
    }
    if n.kind == NormKind::None {
        (n.eps, n.eps_at, n.affine) = (usual.eps, usual.eps_at, usual.affine);
    }
    n
}

/// The norm of a layer, without what its kind does not read.
fn own_norm(d: &mut Draw<'_>, d_model: usize, parallel: bool) -> NormOverrides {
    let n = norm(d, d_model, parallel);
    let kind = n.kind;
    let mut own = NormOverrides::from(n);
    if kind != NormKind::LayerNorm {
        own.unbiased = None;
    }
    if kind == NormKind::None {
        (own.eps, own.eps_at, own.affine) = (None, None, None);
    }
    own
}

fn attention(d: &mut Draw<'_>, may_lack_projection: bool, biased: bool) -> AttentionConfig {
    let out_projection = !(may_lack_projection && d.yes());
    // Positions of the model may be a bias, which linear attention has no place for.
    let kind = if biased {
        AttentionKind::Softmax
    } else {
        d.of(&[AttentionKind::Softmax, AttentionKind::Softmax, AttentionKind::Linear])
    };
    let plain = kind == AttentionKind::Softmax;
    AttentionConfig {
        kind,
        scale: d.of(&[Scale::SqrtDk, Scale::SqrtDModel, Scale::None, Scale::By(-0.5), Scale::By(0.0)]),
        qkv_bias: d.yes(),
        q_bias: d.of(&[None, None, Some(true)]),
        k_bias: d.of(&[None, None, Some(false)]),
        v_bias: d.of(&[None, Some(true), Some(false)]),
        clip_qkv: d.of(&[None, None, Some(0.5)]),
        out_bias: out_projection && d.yes(),
        out_projection,
        projections: true,
        window: d.of(&[None, Some(1), Some(2), Some(100)]),
        causal: d.of(&[None, Some(true), Some(false)]),
        fill: d.of(&[
            MaskFillConfig::NegInfinity,
            MaskFillConfig::TypeMinimum,
            MaskFillConfig::Value(-1e9),
            MaskFillConfig::Value(-2.0),
        ]),
        mask_by: d.of(&[MaskBy::Replacing, MaskBy::Adding]),
        softmax: d.of(&[SoftmaxShift::WhenNeeded, SoftmaxShift::Always, SoftmaxShift::Never]),
        positions: d
            .of(&[None, None, Some(Positions::None), Some(Positions::Alibi { scaled: false })])
            .filter(|_| plain),
        qk_norm: if plain {
            d.of(&[QkNorm::None, QkNorm::PerHead, QkNorm::PerHeadOwn, QkNorm::Full])
        } else {
            QkNorm::None
        },
        qk_norm_bias: d.of(&[None, None, Some(false)]),
        softcap: d.of(&[None, Some(1.5)]).filter(|_| plain),
        sinks: plain && d.yes(),
        latent: None,
        algorithm: Algorithm::Plain,
    }
}

fn scaling(d: &mut Draw<'_>) -> RotaryScaling {
    let original = d.of(&[2, 4]);
    d.of(&[
        RotaryScaling::None,
        RotaryScaling::Linear { factor: 2.0 },
        RotaryScaling::Dynamic { factor: 2.0, original },
        RotaryScaling::Llama3 { factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original },
    ])
}

fn experts(d: &mut Draw<'_>) -> ExpertsConfig {
    let groups = d.of(&[1, 2]);
    ExpertsConfig {
        count: 4,
        top_k: d.of(&[1, 2]),
        d_ff: d.of(&[None, Some(2)]),
        scores: d.of(&[RouterScores::SoftmaxThenTopK, RouterScores::TopKThenSoftmax, RouterScores::Sigmoid]),
        normalise: d.yes(),
        router_bias: d.yes(),
        correction_bias: d.yes(),
        groups,
        top_groups: 1,
        multiplier: d.of(&[1.0, 2.5]),
        shared_d_ff: Some(3),
        shared_gate: d.yes(),
    }
}

fn ffn(d: &mut Draw<'_>) -> FfnConfig {
    let gated = d.yes();
    FfnConfig {
        activation: d.of(&[
            Activation::Relu,
            Activation::Gelu,
            Activation::GeluTanh,
            Activation::Silu,
            Activation::Sigmoid,
            Activation::Tanh,
            Activation::ReluSquared,
            Activation::QuickGelu,
        ]),
        gated,
        bias: d.yes(),
        w1_bias: d.of(&[None, Some(true)]),
        v1_bias: d.of(&[None, Some(false)]),
        w2_bias: d.of(&[None, Some(true)]),
        clamp: if gated { d.of(&[None, None, Some(0.3)]) } else { None },
        linear_offset: if gated { d.of(&[0.0, 1.0]) } else { 0.0 },
        experts: d.of(&[false, false, true]).then(|| experts(d)),
    }
}

/// Heads and key/value heads, of which the second divides the first.
fn heads(d: &mut Draw<'_>) -> (usize, Option<usize>) {
    d.of(&[(1, None), (2, None), (2, Some(1)), (2, Some(2)), (4, Some(2)), (3, Some(1))])
}

fn layers(d: &mut Draw<'_>, decoder: bool, both: bool, d_model: usize, biased: bool) -> StackConfig {
    let groups = d.of(&[1, 1, 2, 0]);
    let layers = (0..groups).map(|_| {
        let own = d.yes();
        LayerConfig {
            repeat: d.of(&[1, 1, 2]),
            cross_attention: if decoder && both { d.of(&[None, Some(false), Some(true)]) } else { None },
            d_ff: if own { Some(1 + d.below(5)) } else { None },
            norm: own.then(|| own_norm(d, d_model, !(decoder && both))),
            attention: own.then(|| attention(d, false, biased).into()),
            ffn: own.then(|| ffn(d).into()),
            has_ffn: !d.of(&[false, false, true]),
            ..LayerConfig::default()
        }
    });
    let layers: Vec<LayerConfig> = layers.collect();
    let weight_groups = if layers.len() == 1 && layers[0].repeat == 2 { d.of(&[None, Some(1), Some(2)]) } else { None };
    StackConfig { layers, final_norm: d.yes(), weight_groups, weight_group_layers: None }
}

fn model(d: &mut Draw<'_>) -> ModelConfig {
    let (h, kv_heads) = heads(d);
    let d_model = h * d.of(&[2, 1, 4, 3]);
    let d_k = d.of(&[None, Some(2), Some(4), Some(3), Some(1)]);
    let width = d_k.unwrap_or(d_model / h);
    let d_v = d.of(&[None, Some(1), Some(3)]);
    let fits = h * d_v.unwrap_or(width) == d_model;
    let layout = d.of(&[PairLayout::Interleaved, PairLayout::Halves]);
    let base = d.of(&[10_000.0, 100.0, 1.0, 0.5]);
    let positions = match d.below(8) {
        0 => Positions::None,
        1 => Positions::Sinusoidal { layout, base },
        2 => Positions::Learned { max_len: 11, offset: d.of(&[0, 2]), skip_padding: false },
        5 => Positions::Learned { max_len: 11, offset: d.of(&[1, 2]), skip_padding: true },
        3 if width.is_multiple_of(2) => Positions::Rotary { layout, base, dim: None, scaling: scaling(d) },
        6 => Positions::Alibi { scaled: d.yes() },
        7 => Positions::Relative { buckets: 4, max_distance: 5, shared: d.yes() },
        _ if width >= 2 => Positions::Rotary { layout, base, dim: Some(2), scaling: scaling(d) },
        _ => Positions::None,
    };
    let biased = matches!(positions, Positions::Alibi { .. } | Positions::Relative { .. });
    let sides = d.below(3);
    let embedding_width = d.of(&[None, None, Some(1), Some(5)]);
    let activation = d.of(&[None, Some(Activation::Gelu)]);
    let transform = d.yes().then(|| HeadTransform { activation, norm: d.yes(), bias: d.yes() });
    let pools = d.yes();
    let rate = |d: &mut Draw<'_>| d.of(&[0.0, 0.0, 0.5, 0.9]);
    ModelConfig {
        d_model,
        heads: h,
        kv_heads,
        d_k,
        d_v,
        d_ff: 1 + d.below(6),
        embedding: EmbeddingConfig {
            shared: d.yes(),
            scale: d.yes(),
            token_types: d.of(&[0, 0, 2]),
            norm: d.yes(),
            multiplier: d.of(&[1.0, 1.0, -2.5]),
            width: embedding_width,
            project: d.of(&[ProjectAt::AfterNorm, ProjectAt::AfterLookup]),
            project_bias: embedding_width.is_some() && d.yes(),
        },
        positions,
        norm: norm(d, d_model, sides != 2),
        attention: attention(d, fits, biased),
        ffn: ffn(d),
        residual_multiplier: d.of(&[1.0, 1.0, 0.25]),
        output: OutputConfig {
            tied: (embedding_width.is_none() || transform.is_some()) && d.yes(),
            bias: d.yes(),
            none: false,
            hidden_multiplier: d.of(&[1.0, 0.5]),
            transform,
            multiplier: d.of(&[1.0, 0.5]),
            softcap: d.of(&[None, Some(2.0)]),
        },
        classifier: d.yes().then(|| ClassifierConfig {
            labels: 3,
            from: if pools { ClassifierInput::Pooled } else { d.of(&[ClassifierInput::Tokens, ClassifierInput::Last]) },
            bias: d.yes(),
        }),
        pooler: pools.then(PoolerConfig::default),
        dropout: DropoutConfig {
            embedding: rate(d),
            attention: rate(d),
            sublayer: rate(d),
            ffn: rate(d),
            seed: d.below(100) as u64,
        },
        encoder: (sides != 1).then(|| layers(d, false, sides == 2, d_model, biased)),
        decoder: (sides != 0).then(|| layers(d, true, sides == 2, d_model, biased)),
    }
}

fn input(d: &mut Draw<'_>, sentences: usize, types: bool) -> Input {
    let ids: Vec<Vec<i64>> =
        (0..sentences).map(|_| (0..=d.below(4)).map(|_| d.below(WORDS) as i64).collect()).collect();
    let longest = ids.iter().map(Vec::len).max().unwrap_or(0);
    let tokens = longest + d.of(&[0, 0, 1]);
    let mut flags = |rows: usize| -> Vec<Vec<Vec<bool>>> {
        let row = |d: &mut Draw<'_>| (0..tokens).map(|_| !d.of(&[false, false, true])).collect();
        (0..sentences).map(|_| (0..rows).map(|_| row(d)).collect()).collect()
    };
    let shape = |f: Vec<Vec<Vec<bool>>>| f.into_iter().map(|mut m| m.remove(0)).collect::<Vec<_>>();
    let (keys, row, square, real) = (flags(1), flags(1), flags(tokens), flags(1));
    let types = types.then(|| vec![(0..tokens).map(|i| (i % 2) as i64).collect(); sentences]);
    Input {
        ids,
        length: Some(tokens),
        pad: Some(0),
        real: d.of(&[None, Some(shape(real))]),
        mask: d.of(&[
            None,
            Some(MaskInput::Keys(shape(keys))),
            Some(MaskInput::Row(row)),
            Some(MaskInput::Square(square)),
        ]),
        types,
        ..Input::default()
    }
}

fn decode(d: &mut Draw<'_>) -> Decode {
    let from = Prefix::Ids((0..=d.below(3)).map(|i| i as i64).collect());
    let max_new = 1 + d.below(3);
    match d.below(4) {
        0 => Decode::Forced(vec![from, Prefix::Ids(vec![1, 2]), Prefix::Ids(vec![1, 2, 3])]),
        1 => Decode::Greedy { from, max_new },
        2 => Decode::Sample {
            from,
            max_new,
            temperature: d.of(&[1.0, 0.1, 10.0]),
            top_k: d.of(&[None, Some(1), Some(3), Some(1000)]),
            top_p: d.of(&[None, Some(0.5), Some(1.0), Some(1e-9)]),
            min_p: d.of(&[None, Some(0.1), Some(1.0)]),
            repetition_penalty: d.of(&[1.0, 1.2, 0.7]),
            seed: d.below(9) as u64,
        },
        _ => Decode::Beam { from, max_new, beams: 1 + d.below(8), length_penalty: [0.0, 0.6, 1.0, 2.0][d.below(4)] },
    }
}

/// A scenario that must open and run.
fn valid(d: &mut Draw<'_>) -> Scenario {
    let model = model(d);
    let (encodes, decodes) = (model.encoder.is_some(), model.decoder.is_some());
    let generates = decodes && d.yes();
    let sentences = if generates { 1 } else { 1 + d.below(3) };
    let typed = model.embedding.token_types > 0 && d.yes();
    let source = encodes.then(|| input(d, sentences, typed));
    let target = decodes.then(|| input(d, sentences, typed && !encodes));
    let spoken = target.as_ref().or(source.as_ref());
    let (rows, tokens) = spoken.map_or((0, 0), |i| (i.ids.len(), i.length.unwrap_or(0)));
    let labels = match d.below(3) {
        0 => Labels::None,
        1 => Labels::Ids(vec![vec![1; tokens]; rows]),
        // A token that is real is needed for these.
        _ if spoken.is_some_and(|i| i.real.is_none()) => Labels::Unshifted,
        _ => Labels::None,
    };
    let with = Box::<Changes>::default;
    let mut runs = vec![Run::Training {
        name: "training".into(),
        optimiser: Optimiser::default(),
        loss: Loss::default(),
        with: with(),
    }];
    if encodes {
        runs.push(Run::Encode { name: "encode".into(), with: with() });
    }
    if generates {
        runs.push(Run::Inference {
            name: "inference".into(),
            decode: decode(d),
            kv_cache: d.yes() && cacheable(&model),
            with: with(),
        });
    }
    let init = d.of(&[
        Init::Normal { mean: 0.0, std: 0.5 },
        Init::Uniform { low: -1.0, high: 1.0 },
        Init::Xavier,
        Init::Kaiming,
        Init::Constant(0.5),
        Init::Normal { mean: 0.0, std: 30.0 },
    ]);
    Scenario {
        digits: None,
        name: "drawn".into(),
        title: tui_transformer::scenario::schema::Text::default(),
        note: tui_transformer::scenario::schema::Text::default(),
        precision: Precision::F64,
        vocabulary: Vocabulary::Size(WORDS),
        target_vocabulary: None,
        model,
        weights: Weights {
            init: vec![InitRule { paths: "*".into(), with: init }],
            seed: d.below(50) as u64,
            ..Weights::default()
        },
        source,
        target,
        labels,
        runs,
        end: None,
        edits: Vec::new(),
        remarks: std::collections::BTreeMap::new(),
        symbols: std::collections::BTreeMap::new(),
        walkthrough: Vec::new(),
        expected: Vec::new(),
        allow: Vec::new(),
    }
}

/// Opens, runs everything, and replays every cell.
fn works(scenario: &Scenario, precision: Precision) -> Result<(), TestCaseError> {
    let options = Options { precision: Some(precision), ..Options::default() };
    let session = match open(scenario.clone(), None, options) {
        Ok(session) => session,
        Err(problems) => {
            return Err(TestCaseError::fail(format!("{problems:?}\n{scenario:?}")));
        }
    };
    for (i, run) in session.runs.iter().enumerate() {
        let trace = session.trace(i).map_err(|e| TestCaseError::fail(format!("{}: {e}\n{scenario:?}", run.name)))?;
        for (id, node) in run.program.nodes() {
            let replayed = with_any!(AnyTrace, trace, t => replay_node(t, id));
            prop_assert_eq!(replayed.different, 0, "{} {} {:?}\n{:?}", run.name, node.path, replayed, scenario);
        }
        prop_assert!(!session.plan_of(i).is_empty(), "{} has no steps", run.name);
    }
    Ok(())
}

/// Edits of every kind that the model has, one after another, give the bits of a scenario with these edits that is
/// written, read and opened afresh; and every derivation replays.
fn edits_hold(scenario: &Scenario) -> Result<(), TestCaseError> {
    use tui_transformer::scenario::edit::{Edit as Recorded, Side};
    let session = Arc::new(open(scenario.clone(), None, Options::default()).expect("opens"));
    session.trace(0).expect("runs");
    let program = Arc::clone(&session.runs[0].program);
    let mut edits = Vec::new();
    let middle = |path: &str, shape: &Shape| Recorded::Cell {
        path: path.to_owned(),
        at: shape.unflat(shape.len() / 2)[..shape.rank()].to_vec(),
        value: 0.375,
        run: None,
    };
    let spec = &session.specs[session.specs.len() / 2];
    edits.push(middle(&spec.path, &spec.shape));
    for (id, node) in program.nodes().filter(|n| n.0.index() % 37 == 5) {
        // A rotary table of zero pairs has no cell that could be edited.
        let cells = node.dtype == DType::Float && !node.shape.is_empty();
        if cells && session.can_be(0, id, 0.375).is_ok() {
            edits.push(middle(&node.path, &node.shape));
        }
    }
    for (_, node) in program.nodes().filter(|n| !n.1.path.starts_with('g')) {
        let (run, path) = (None, &*node.path);
        if let Some(attention) = path.strip_suffix(".context") {
            let attention = attention.to_owned();
            edits.push(Recorded::Head { attention, head: 0, run });
        } else if let Some(layer) = path.strip_suffix(".self_attn.out") {
            if layer == "encoder.0" {
                edits.push(Recorded::Position { side: Side::Source, at: 0, run: None });
            }
            let layer = layer.to_owned();
            edits.push(Recorded::Layer { layer, run });
        }
    }
    let mut w = WhatIf::new(session);
    for edit in edits {
        w.apply(Edit::Recorded(edit.clone()))
            .map_err(|p| TestCaseError::fail(format!("{edit:?}: {p:?}\n{scenario:?}")))?;
    }
    let eps = Edit::Setting { field: "model.norm.eps".to_owned(), value: "0.125".to_owned() };
    if scenario.model.norm.kind != NormKind::None {
        w.apply(eps).map_err(|p| TestCaseError::fail(format!("{p:?}\n{scenario:?}")))?;
    }
    let text = write(&saved(&w, std::path::Path::new(".")).expect("can be saved"));
    let back = syntax::read("", &text).map_err(|d| TestCaseError::fail(format!("{d:?}\n{text}")))?;
    let back = open(back, None, Options::default()).expect("opens");
    for (i, run) in back.runs.iter().enumerate() {
        let (a, b) = (w.session().trace(i).expect("runs"), back.trace(i).expect("runs"));
        for (id, node) in run.program.nodes() {
            let (x, y) = (a.value(id), b.value(id));
            let same = (0..node.shape.len()).all(|c| x.bits(c) == y.bits(c));
            prop_assert!(same, "{} {}\n{:?}", run.name, node.path, scenario);
            let replayed = with_any!(AnyTrace, a, t => replay_node(t, id));
            prop_assert_eq!(replayed.different, 0, "{} {}", run.name, node.path);
        }
    }
    Ok(())
}

/// One mistake, and the field that must be named.
fn mistake(s: &mut Scenario, which: usize) -> &'static str {
    let m = &mut s.model;
    // A layer without settings of its own: those of the model hold for something.
    if let Some(stack) = m.encoder.as_mut().or(m.decoder.as_mut()) {
        stack.weight_groups = None;
        stack.layers.push(LayerConfig::default());
    }
    match which {
        0 => (m.heads, m.d_k, m.kv_heads) = (5, None, None),
        1 => m.d_model = 0,
        2 => m.heads = 0,
        3 => m.kv_heads = Some(7),
        4 => m.attention.window = Some(0),
        5 => m.norm.eps = f64::NAN,
        6 => m.dropout.ffn = 1.0,
        7 => m.dropout.embedding = -0.1,
        8 => m.attention.scale = Scale::By(f64::INFINITY),
        9 => m.attention.fill = MaskFillConfig::Value(f64::NAN),
        10 => m.d_ff = usize::MAX,
        11 => m.positions = Positions::Sinusoidal { layout: PairLayout::Halves, base: -1.0 },
        12 => m.positions = Positions::Learned { max_len: 0, offset: 0, skip_padding: false },
        13 => (m.encoder, m.decoder) = (None, None),
        14 => s.vocabulary = Vocabulary::Size(1_000_000_000_000),
        15 => s.vocabulary = Vocabulary::Size(0),
        16 => s.weights.init.clear(),
        17 => s.weights.init[0].with = Init::Normal { mean: 0.0, std: -1.0 },
        18 => s.runs.clear(),
        19 => s.runs.push(s.runs[0].clone()),
        20 => (s.source, s.target) = (None, None),
        21 => m.embedding.token_types = usize::MAX,
        22 => {
            (m.d_k, m.positions) = (
                Some(3),
                Positions::Rotary {
                    layout: PairLayout::Halves,
                    base: 10.0,
                    dim: Some(3),
                    scaling: RotaryScaling::None,
                },
            );
        }
        _ => {
            let stack = m.encoder.as_mut().or(m.decoder.as_mut()).expect("a stack");
            stack.layers = vec![LayerConfig { repeat: 1_000_000, ..LayerConfig::default() }];
        }
    }
    [
        "model.heads",
        "model.d_model",
        "model.heads",
        "kv_heads",
        "model.attention.window",
        "model.norm.eps",
        "model.dropout.ffn",
        "model.dropout.embedding",
        "model.attention.scale",
        "model.attention.fill",
        "model.d_ff",
        "model.positions.base",
        "model.positions.max_len",
        "model",
        "vocabulary",
        "vocabulary",
        "weights",
        "weights.init[0].with",
        "runs",
        ".name",
        "runs[0]",
        "model.embedding.token_types",
        "model.positions.dim",
        ".layers",
    ][which.min(23)]
}

/// Numbers that make sense nowhere, or only sometimes.
fn wild(s: &mut Scenario, d: &mut Draw<'_>) {
    // What is large, but possible, is left out: it would be run.
    let sizes = [0, 1, 2, 3, 7, 1 << 40, usize::MAX - 1, usize::MAX];
    let reals = [0.0, -1.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-320, f64::MAX];
    for _ in 0..=d.below(4) {
        let (n, x) = (d.of(&sizes), d.of(&reals));
        let m = &mut s.model;
        match d.below(20) {
            0 => m.d_model = n,
            1 => m.heads = n,
            2 => m.kv_heads = Some(n),
            3 => m.d_k = Some(n),
            4 => m.d_v = Some(n),
            5 => m.d_ff = n,
            6 => m.positions = Positions::Learned { max_len: n, offset: 0, skip_padding: false },
            7 => {
                m.positions = Positions::Rotary {
                    layout: PairLayout::Halves,
                    base: x,
                    dim: Some(n),
                    scaling: RotaryScaling::None,
                }
            }
            8 => m.positions = Positions::Sinusoidal { layout: PairLayout::Halves, base: x },
            9 => m.norm.eps = x,
            10 => m.attention.scale = Scale::By(x),
            11 => m.attention.fill = MaskFillConfig::Value(x),
            12 => m.attention.window = Some(n),
            13 => m.dropout.attention = x,
            14 => m.embedding.token_types = n,
            15 => {
                s.source = s.source.take().map(|i| Input { length: Some(n), ..i });
            }
            16 => {
                s.target = s.target.take().map(|i| Input { ids: vec![vec![n as i64]], ..i });
            }
            17 => s.labels = Labels::Ids(vec![vec![n as i64]]),
            18 => s.weights.init[0].with = Init::Uniform { low: x, high: d.of(&reals) },
            _ => {
                s.runs = vec![Run::Inference {
                    name: "wild".into(),
                    decode: Decode::Sample {
                        from: Prefix::Ids(vec![n as i64]),
                        max_new: n,
                        temperature: x,
                        top_k: Some(n),
                        top_p: Some(x),
                        min_p: Some(x),
                        repetition_penalty: x,
                        seed: n as u64,
                    },
                    kv_cache: d.yes(),
                    with: Box::default(),
                }];
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(96), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_valid_configuration_runs_and_replays(bytes in prop::collection::vec(any::<u8>(), 160)) {
        let scenario = valid(&mut Draw { left: &bytes });
        works(&scenario, Precision::F64)?;
        works(&scenario, Precision::F32)?;
        edits_hold(&scenario)?;
    }

    #[test]
    fn any_mistake_is_a_problem_that_names_its_field(
        bytes in prop::collection::vec(any::<u8>(), 160),
        which in 0usize..24,
    ) {
        let mut scenario = valid(&mut Draw { left: &bytes });
        let field = mistake(&mut scenario, which);
        let reported = format!("{scenario:?}");
        match open(scenario, None, Options::default()) {
            Ok(_) => prop_assert!(false, "{which} {field} opened\n{reported}"),
            Err(problems) => prop_assert!(
                problems.iter().any(|p| p.at.contains(field) && p.help.is_some()),
                "{which} {field}: {problems:?}\n{reported}"
            ),
        }
    }

    #[test]
    fn nothing_panics_whatever_the_numbers(bytes in prop::collection::vec(any::<u8>(), 200)) {
        let mut draw = Draw { left: &bytes };
        let mut scenario = valid(&mut draw);
        wild(&mut scenario, &mut Draw { left: &bytes[170..] });
        // What opens also runs, or says why not.
        if let Ok(session) = open(scenario, None, Options::default()) {
            for i in 0..session.runs.len() {
                let _ = session.trace(i);
            }
        }
    }
}
