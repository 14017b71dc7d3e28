//! The faults that people make in a Transformer, each made in a reference that plain loops compute (`common/tiny.rs`):
//! `compare` names the very step, and nothing else; of a correct reference it names none. Each in both number types and
//! both modes, with all activations in the reference and with those of sublayers only.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::common::tiny::{Fault, Recorded, Tiny};
use rstest::rstest;
use safetensors::{Dtype, View};
use tui_transformer::checkpoint::Given;
use tui_transformer::debug::compare::{Mode, Options, Reference, Report, State, compare};
use tui_transformer::scenario::syntax;
use tui_transformer::session::{self, AnyBindings, Session};
use tui_transformer::source::recording::Recording;

const WORDS: usize = 11;
const LAYERS: usize = 2;

const FAULTS: [Fault; 19] = [
    Fault::Eps(1e-5),
    Fault::EpsBeside,
    Fault::Unbiased,
    Fault::GeluTanh,
    Fault::ScaleByDModel,
    Fault::PositionsPlusOne,
    Fault::PadMaskOnQueries,
    Fault::NoMask,
    Fault::MaskAddedAfterSoftmax,
    Fault::MaskZeroedAfterSoftmax,
    Fault::CausalOffByOne,
    Fault::HeadsNotTransposed,
    Fault::RotaryInterleaved,
    Fault::TransposedWeight,
    Fault::DroppedBias,
    Fault::ResidualFromNormalised,
    Fault::DropoutAtInference,
    Fault::HeadNotTied,
    Fault::NanInAWeight,
];

/// How many of them change something, by model and layer.
const FAULTS_OF: [[usize; LAYERS]; 3] = [[15, 15], [16, 16], [17, 17]];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Post-LN, learned positions, padding.
    Encoder,
    /// The same with the norm before.
    PreEncoder,
    /// Pre-LN, rotary positions, causal, tied head.
    Decoder,
}

struct Model {
    session: Session,
    kind: Kind,
    eps: f64,
    ids: Vec<Vec<usize>>,
    real: Vec<Vec<bool>>,
    /// The layer that gets the faults.
    at: usize,
}

impl Model {
    fn new(kind: Kind, eps: f64) -> Self {
        let decoder = kind == Kind::Decoder;
        let position = if kind == Kind::Encoder { "Post" } else { "Pre" };
        let stack = format!("(layers: [(repeat: {LAYERS})], final_norm: {})", kind != Kind::Encoder);
        let (ids, real) = if decoder {
            (vec![vec![3, 7, 2, 9, 4], vec![5, 1, 8, 8, 10]], vec![vec![true; 5]; 2])
        } else {
            (vec![vec![3, 7, 2, 9, 4], vec![5, 1, 8, 0, 0]], vec![vec![true; 5], vec![true, true, true, false, false]])
        };
        let text = format!(
            r#"(name: "tiny", vocabulary: Size({WORDS}), model: (
                d_model: 8, heads: 2, d_ff: 16, positions: {}, norm: (position: {position}, eps: {eps:e}),
                attention: (qkv_bias: true, out_bias: true), ffn: (activation: Gelu, bias: true),
                output: (tied: {decoder}, none: {}), {}: {stack}),
                weights: (seed: 7, init: [(paths: "*.gamma", with: Uniform(low: 0.5, high: 1.5)),
                    (paths: "embed.*", with: Normal(std: 0.4)), (with: Normal(std: 0.3))]),
                {}: (ids: {ids:?}, real: {real:?}), runs: [{}])"#,
            if decoder { "Rotary()" } else { "Learned(max_len: 7)" },
            !decoder,
            if decoder { "decoder" } else { "encoder" },
            if decoder { "target" } else { "source" },
            if decoder { "Training()" } else { "Encode()" },
        );
        let scenario = syntax::read("tiny.ron", &text).expect("a scenario");
        let session = session::open(scenario, None, session::Options::default());
        Self { session: session.expect("opens"), kind, eps, ids, real, at: LAYERS - 1 }
    }

    fn weight(&self, path: &str) -> Vec<f64> {
        let AnyBindings::F64(params) = &self.session.params else {
            panic!("a scenario of f64");
        };
        params[path].float().data().to_vec()
    }

    /// What a program with this fault in one layer computes.
    fn reference(&self, fault: Fault) -> Recorded {
        self.reference_in(fault, |x| x)
    }

    /// As [`Model::reference`], where the kernels of the program return what `store` makes of their numbers.
    fn reference_in(&self, fault: Fault, store: fn(f64) -> f64) -> Recorded {
        let decoder = self.kind == Kind::Decoder;
        Tiny {
            stack: if decoder { "decoder" } else { "encoder" },
            layers: LAYERS,
            d: 8,
            heads: 2,
            ff: 16,
            vocab: WORDS,
            eps: self.eps,
            pre: self.kind != Kind::Encoder,
            rotary: decoder,
            tied_head: decoder,
            ids: &self.ids,
            real: &self.real,
            weight: &|path| self.weight(path),
            fault,
            at: self.at,
            store,
        }
        .run()
    }

    fn compare(&self, recorded: &Recorded, dtype: Dtype, mode: Mode) -> Report {
        let reference = Reference::from_file("ref.safetensors", &file(recorded, dtype));
        let options = Options { mode, ..Options::default() };
        compare(&self.session, 0, &reference.expect("a reference"), &options).expect("compares")
    }
}

struct Raw(Dtype, Vec<usize>, Vec<u8>);

impl View for Raw {
    fn dtype(&self) -> Dtype {
        self.0
    }
    fn shape(&self) -> &[usize] {
        &self.1
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.2)
    }
    fn data_len(&self) -> usize {
        self.2.len()
    }
}

fn file(recorded: &Recorded, dtype: Dtype) -> Vec<u8> {
    file_with(recorded, dtype, None)
}

fn file_with(recorded: &Recorded, dtype: Dtype, metadata: Option<HashMap<String, String>>) -> Vec<u8> {
    let tensors = recorded.iter().map(|(name, (shape, data))| {
        let bytes = match dtype {
            Dtype::BF16 => data.iter().flat_map(|x| half::bf16::from_f64(*x).to_le_bytes()).collect(),
            Dtype::F16 => data.iter().flat_map(|x| half::f16::from_f64(*x).to_le_bytes()).collect(),
            Dtype::F64 => data.iter().flat_map(|x| x.to_le_bytes()).collect(),
            _ => data.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect(),
        };
        (name, Raw(dtype, shape.clone(), bytes))
    });
    safetensors::serialize(tensors, metadata).expect("serialises")
}

/// Paths of all differences.
fn paths(report: &Report) -> Vec<&str> {
    report.differences.iter().map(|d| &*d.place.path).collect()
}

const EACH: [(Dtype, Mode); 4] = [
    (Dtype::F64, Mode::Isolated),
    (Dtype::F32, Mode::Isolated),
    (Dtype::F64, Mode::Cumulative),
    (Dtype::F32, Mode::Cumulative),
];

#[rstest]
fn a_correct_reference_raises_none(
    #[values(Kind::Encoder, Kind::PreEncoder, Kind::Decoder)] kind: Kind,
    #[values(1e-6, 1e-12)] eps: f64,
) {
    let model = Model::new(kind, eps);
    let recorded = model.reference(Fault::None);
    for (dtype, mode) in EACH {
        let report = model.compare(&recorded, dtype, mode);
        assert!(report.agrees(), "{dtype:?} {mode:?}: {:?}", report.verdict());
        assert_eq!((report.unmatched.len(), report.count(State::Drift)), (0, 0));
        assert_eq!(report.count(State::Match), recorded.len());
    }
    // Also where only the outputs of sublayers are known.
    let sparse = sublayers(&recorded);
    for (dtype, mode) in EACH {
        assert!(model.compare(&sparse, dtype, mode).agrees());
    }
}

/// What a recorder of modules' outputs sees.
fn sublayers(recorded: &Recorded) -> Recorded {
    let kept = ["self_attn.out", "ffn.out", "norm1.out", "norm2.out", "residual1", "residual2", "logits"];
    recorded
        .iter()
        .filter(|(name, _)| kept.iter().any(|k| name.ends_with(k)))
        .map(|(name, t)| (name.clone(), t.clone()))
        .collect()
}

/// `path` is the step that must be named; `also` is all else that a reference with the fault really computes
/// differently from its own operands.
#[rstest]
#[case::eps_1e_5_for_1e_6(Kind::Encoder, 1e-6, Fault::Eps(1e-5), "encoder.1.norm1.out", &[])]
#[case::eps_1e_5_for_1e_6_pre(Kind::PreEncoder, 1e-6, Fault::Eps(1e-5), "encoder.1.norm1.out", &[])]
#[case::eps_beside_sigma(Kind::Encoder, 1e-5, Fault::EpsBeside, "encoder.1.norm1.out", &[])]
#[case::variance_over_n_minus_1(Kind::Encoder, 1e-6, Fault::Unbiased, "encoder.1.norm1.var", &[])]
#[case::gelu_tanh_for_exact(Kind::Encoder, 1e-6, Fault::GeluTanh, "encoder.1.ffn.act", &[])]
#[case::one_over_root_d_model(Kind::Encoder, 1e-6, Fault::ScaleByDModel, "encoder.1.self_attn.scores", &[])]
#[case::positions_plus_1(Kind::Encoder, 1e-6, Fault::PositionsPlusOne, "embed.source.positions", &[])]
#[case::pad_mask_on_the_query_axis(Kind::Encoder, 1e-6, Fault::PadMaskOnQueries, "encoder.1.self_attn.masked_scores", &[])]
#[case::mask_missing(Kind::Encoder, 1e-6, Fault::NoMask, "encoder.1.self_attn.masked_scores", &[])]
#[case::mask_missing_causal(Kind::Decoder, 1e-6, Fault::NoMask, "decoder.1.self_attn.masked_scores", &[])]
#[case::mask_added_after_softmax(Kind::Decoder, 1e-6, Fault::MaskAddedAfterSoftmax, "decoder.1.self_attn.weights", &[])]
#[case::mask_multiplied_after_softmax(Kind::Decoder, 1e-6, Fault::MaskZeroedAfterSoftmax, "decoder.1.self_attn.weights", &[])]
#[case::causal_off_by_one(Kind::Decoder, 1e-6, Fault::CausalOffByOne, "decoder.1.self_attn.masked_scores", &[])]
#[case::heads_merged_without_transpose(Kind::Decoder, 1e-6, Fault::HeadsNotTransposed, "decoder.1.self_attn.concat", &[])]
#[case::rotary_interleaved_for_halves(Kind::Decoder, 1e-6, Fault::RotaryInterleaved, "decoder.1.self_attn.q_rotated", &["decoder.1.self_attn.k_rotated"])]
#[case::transposed_square_weight(Kind::Encoder, 1e-6, Fault::TransposedWeight, "encoder.1.self_attn.q", &[])]
#[case::dropped_bias(Kind::Encoder, 1e-6, Fault::DroppedBias, "encoder.1.ffn.hidden", &[])]
#[case::residual_from_the_normalised_input(Kind::PreEncoder, 1e-6, Fault::ResidualFromNormalised, "encoder.1.residual1", &[])]
#[case::dropout_at_inference(Kind::Decoder, 1e-6, Fault::DropoutAtInference, "decoder.1.residual1", &[])]
#[case::output_head_not_tied(Kind::Decoder, 1e-6, Fault::HeadNotTied, "output.logits", &[])]
#[case::nan_in_one_weight(Kind::Encoder, 1e-6, Fault::NanInAWeight, "encoder.1.ffn.hidden", &[])]
fn the_step_with_the_fault_is_named(
    #[case] kind: Kind,
    #[case] eps: f64,
    #[case] fault: Fault,
    #[case] path: &str,
    #[case] also: &[&str],
) {
    let model = Model::new(kind, eps);
    let recorded = model.reference(fault);
    for (dtype, mode) in EACH {
        let at = format!("{dtype:?} {mode:?}");
        let report = model.compare(&recorded, dtype, mode);
        let verdict = report.verdict().unwrap_or_else(|| panic!("{at}: no difference"));
        assert_eq!(verdict.place.path, path, "{at}");
        assert!(!verdict.carried, "{at}");
        if mode == Mode::Isolated {
            // Nothing but the cause differs, however far the fault reaches.
            assert_eq!(paths(&report), [&[path], also].concat(), "{at}");
        } else {
            // One that does not come from it, of the other operand of a product, is no carrier.
            let own = report.differences.iter().filter(|d| !d.carried);
            assert!(own.clone().all(|d| d.place.path == path || also.contains(&&*d.place.path)), "{at}");
        }
        // The step is one that shows it, and the last match one before.
        let steps = model.session.steps_of(0);
        let step = verdict.place.step.as_ref().expect("a step");
        let shown = &steps.list()[step.position];
        let program = &model.session.runs[0].program;
        let shows = |id| shown.views.iter().any(|v| v.node == id);
        // One that is written in the line of another belongs to that one's step.
        let node = verdict.place.node;
        let inline = program.node(node).inline;
        let reader = program.users(node).iter().any(|id| shows(*id));
        assert!(shows(node) || inline && reader, "{at}: step {}", step.label);
        if let Some(last) = &verdict.last_match {
            let before = last.step.as_ref().expect("a step");
            assert!(before.position <= step.position, "{at}");
        }
        assert_eq!(verdict.last_match.is_none(), fault == Fault::PositionsPlusOne, "{at}");
    }
    recordings_name_it(&model, &recorded, path, also);
    // With the outputs of sublayers alone, the step lies in the interval that is named.
    let sparse = sublayers(&recorded);
    for (dtype, mode) in EACH {
        let report = model.compare(&sparse, dtype, mode);
        let verdict = report.verdict().expect("a difference");
        let within = verdict.between.iter().chain([&verdict.place]);
        let within: Vec<&str> = within.map(|p| &*p.path).collect();
        // One that is written in the line of another is there with that one.
        let program = &model.session.runs[0].program;
        let cause = program.find(path).expect("a node");
        let line = if program.node(cause).inline { program.users(cause)[0] } else { cause };
        assert!(within.contains(&&*program.node(line).path), "{path} not in {within:?}");
        let last = verdict.last_match.as_ref();
        let last = last.is_none_or(|l| sparse.contains_key(&l.path));
        assert!(last && sparse.contains_key(&verdict.place.path));
    }
}

/// Two recordings, of the correct program and of that with the fault: without a program next to them, the first step
/// that differs is the same.
fn recordings_name_it(model: &Model, faulty: &Recorded, path: &str, also: &[&str]) {
    let dir = tempfile::TempDir::new().expect("a folder");
    let correct = model.reference(Fault::None);
    for (a, b) in [(Dtype::F64, Dtype::F64), (Dtype::F32, Dtype::F32), (Dtype::F32, Dtype::F64)] {
        let at = format!("{a:?} {b:?}");
        let report = two_recordings(&dir, model, (&correct, a), (faulty, b));
        let verdict = report.verdict().unwrap_or_else(|| panic!("{at}: no difference"));
        let named = &*verdict.place.path;
        // A mask that is recorded differs before the scores that it hides.
        assert!(named == path || also.contains(&named), "{at}: {named}, not {path}");
        let none = two_recordings(&dir, model, (&correct, a), (&correct, b));
        assert!(none.agrees(), "{at}: {:?}", none.verdict());
        // Where only the outputs of sublayers were recorded, it lies after the last that agreed, and not after the first
        // that differs.
        let [correct, faulty] = [&correct, faulty].map(sublayers);
        recordings_enclose_it(&dir, model, (&correct, a), (&faulty, b), path);
        let none = two_recordings(&dir, model, (&correct, a), (&correct, b));
        assert!(none.agrees(), "{at}: {:?}", none.verdict());
    }
}

/// Every kind of fault, in every model and layer where it changes something: two recordings name the step that the
/// scenario names, and of the sublayers' outputs alone, an interval that holds it.
#[rstest]
fn recordings_find_what_the_scenario_finds(
    #[values(Kind::Encoder, Kind::PreEncoder, Kind::Decoder)] kind: Kind,
    #[values(0, 1)] layer: usize,
) {
    // What ε is added to is seen in f32 where ε is not too small.
    let models = [1e-6, 1e-5].map(|eps| Model { at: layer, ..Model::new(kind, eps) });
    let correct = models.each_ref().map(|model| model.reference(Fault::None));
    let dir = tempfile::TempDir::new().expect("a folder");
    let mut found = 0;
    for fault in FAULTS {
        let which = usize::from(fault == Fault::EpsBeside);
        let (model, correct) = (&models[which], &correct[which]);
        let faulty = &model.reference(fault);
        if faulty == correct {
            continue;
        }
        let with = model.compare(faulty, Dtype::F64, Mode::Isolated);
        let with = with.verdict().unwrap_or_else(|| panic!("{fault:?}: no difference")).place.path.clone();
        for (a, b) in [(Dtype::F64, Dtype::F64), (Dtype::F32, Dtype::F32), (Dtype::F32, Dtype::F64)] {
            let report = two_recordings(&dir, model, (correct, a), (faulty, b));
            let verdict = report.verdict().unwrap_or_else(|| panic!("{fault:?} {a:?} {b:?}: no difference"));
            assert_eq!(verdict.place.path, with, "{fault:?} {a:?} {b:?}");
            recordings_enclose_it(&dir, model, (&sublayers(correct), a), (&sublayers(faulty), b), &with);
        }
        found += 1;
    }
    assert_eq!(found, FAULTS_OF[kind as usize][layer], "kinds of fault that change something");
}

/// The fault lies between the last step that agreed and the first that differs.
fn recordings_enclose_it(
    dir: &tempfile::TempDir,
    model: &Model,
    a: (&Recorded, Dtype),
    b: (&Recorded, Dtype),
    path: &str,
) {
    let report = two_recordings(dir, model, a, b);
    let verdict = report.verdict().unwrap_or_else(|| panic!("{path} {:?} {:?}: no difference", a.1, b.1));
    let program = &model.session.runs[0].program;
    let at = |path: &str| program.find(path).expect("a node");
    let last = verdict.last_match.as_ref().map(|l| at(&l.path));
    let named = at(&verdict.place.path);
    assert!(last.is_none_or(|l| l < at(path)) && at(path) <= named, "{path}: {verdict:?}");
}

fn two_recordings(dir: &tempfile::TempDir, model: &Model, a: (&Recorded, Dtype), b: (&Recorded, Dtype)) -> Report {
    let program = &model.session.runs[0].program;
    let save = |name: &str, (recorded, dtype): (&Recorded, Dtype)| {
        let order: Vec<&str> = program.nodes().map(|(_, n)| &*n.path).filter(|p| recorded.contains_key(*p)).collect();
        let order = serde_json::to_string(&order).expect("json");
        let path = dir.path().join(name);
        let bytes = file_with(recorded, dtype, Some([("order".to_owned(), order)].into()));
        std::fs::write(&path, bytes).expect("written");
        path
    };
    let (a, b) = (save("a.safetensors", a), save("b.safetensors", b));
    let session = session::open_recording(Recording::open(&a).expect("opens"), session::Options::default());
    let reference = Reference::open(&b, "", false, None, &Given::default()).expect("opens");
    compare(&session.expect("opens"), 0, &reference, &Options::default()).expect("compares")
}

#[test]
fn a_reference_with_its_weights_names_the_weight() {
    let model = Model::new(Kind::Encoder, 1e-6);
    let name = "encoder.1.self_attn.q.weight";
    let mut recorded = model.reference(Fault::TransposedWeight);
    let weight = model.weight(name);
    let transposed = (0..64).map(|i| weight[i % 8 * 8 + i / 8]).collect();
    recorded.insert(name.to_owned(), (vec![8, 8], transposed));
    for (dtype, mode) in EACH {
        let report = model.compare(&recorded, dtype, mode);
        assert_eq!(report.verdict().expect("a difference").place.path, name);
        if mode == Mode::Isolated {
            // With the weight of the reference, the queries are those of the reference.
            assert_eq!(paths(&report), [name]);
        }
    }
    let mut recorded = model.reference(Fault::NanInAWeight);
    let name = "encoder.1.ffn.w1.weight";
    let mut weight = model.weight(name);
    weight[8 * 3 + 2] = f64::NAN;
    recorded.insert(name.to_owned(), (vec![16, 8], weight));
    for (dtype, mode) in EACH {
        let report = model.compare(&recorded, dtype, mode);
        let verdict = report.verdict().expect("a difference");
        assert_eq!(verdict.place.path, name);
        let cells = &report.of(verdict.place.node).expect("checked").against.as_ref().expect("compared").cells;
        assert_eq!((cells.len(), &cells[0].index[..]), (1, &[3, 2][..]));
        assert!(cells[0].theirs.is_nan() && !cells[0].ours.is_nan());
    }
}

#[test]
fn hidden_scores_are_equal_by_whatever_number() {
    for kind in [Kind::Encoder, Kind::Decoder] {
        let model = Model::new(kind, 1e-6);
        for fill in [-1e9, f64::from(f32::MIN), -1e4] {
            let mut recorded = model.reference(Fault::None);
            for (name, (_, data)) in &mut recorded {
                if name.ends_with("masked_scores") {
                    let hidden = data.iter_mut().filter(|x| **x == f64::NEG_INFINITY);
                    hidden.for_each(|x| *x = fill);
                }
            }
            for (dtype, mode) in EACH {
                let report = model.compare(&recorded, dtype, mode);
                assert!(report.agrees(), "{fill} {dtype:?} {mode:?}: {:?}", report.verdict());
            }
        }
    }
}

fn bf16(x: f64) -> f64 {
    half::bf16::from_f64(x).to_f64()
}

fn f16(x: f64) -> f64 {
    half::f16::from_f64(x).to_f64()
}

const HALVES: [(Dtype, fn(f64) -> f64); 2] = [(Dtype::BF16, bf16), (Dtype::F16, f16)];

/// What a recorder sees of kernels: nothing of what they compute inside.
fn of_kernels(recorded: &Recorded) -> Recorded {
    let inside = ["mean", "var", "exp", "sum"];
    let seen = recorded.iter().filter(|(name, _)| !inside.iter().any(|k| name.ends_with(&format!(".{k}"))));
    seen.map(|(name, t)| (name.clone(), t.clone())).collect()
}

/// In half precision a fault is no larger than one rounding of it; the other numbers' last digits tell it.
#[rstest]
#[case::eps_1e_1_for_1e_3(Kind::Encoder, 1e-3, Fault::Eps(1e-1), "encoder.1.norm1.out")]
#[case::variance_over_n_minus_1(Kind::Encoder, 1e-6, Fault::Unbiased, "encoder.1.norm1.out")]
#[case::gelu_tanh_for_exact(Kind::Encoder, 1e-6, Fault::GeluTanh, "encoder.1.ffn.act")]
#[case::one_over_root_d_model(Kind::Encoder, 1e-6, Fault::ScaleByDModel, "encoder.1.self_attn.scores")]
#[case::positions_plus_1(Kind::Encoder, 1e-6, Fault::PositionsPlusOne, "embed.source.positions")]
#[case::mask_missing(Kind::Encoder, 1e-6, Fault::NoMask, "encoder.1.self_attn.masked_scores")]
#[case::mask_multiplied_after_softmax(
    Kind::Decoder,
    1e-6,
    Fault::MaskZeroedAfterSoftmax,
    "decoder.1.self_attn.weights"
)]
#[case::heads_merged_without_transpose(Kind::Decoder, 1e-6, Fault::HeadsNotTransposed, "decoder.1.self_attn.concat")]
#[case::rotary_interleaved_for_halves(Kind::Decoder, 1e-6, Fault::RotaryInterleaved, "decoder.1.self_attn.q_rotated")]
#[case::transposed_square_weight(Kind::Encoder, 1e-6, Fault::TransposedWeight, "encoder.1.self_attn.q")]
#[case::dropped_bias(Kind::Encoder, 1e-6, Fault::DroppedBias, "encoder.1.ffn.hidden")]
#[case::dropout_at_inference(Kind::Decoder, 1e-6, Fault::DropoutAtInference, "decoder.1.residual1")]
#[case::output_head_not_tied(Kind::Decoder, 1e-6, Fault::HeadNotTied, "output.logits")]
fn the_step_with_the_fault_is_named_in_half_precision(
    #[case] kind: Kind,
    #[case] eps: f64,
    #[case] fault: Fault,
    #[case] path: &str,
) {
    let model = Model::new(kind, eps);
    for (dtype, store) in HALVES {
        let recorded = of_kernels(&model.reference_in(fault, store));
        let report = model.compare(&recorded, dtype, Mode::Isolated);
        let verdict = report.verdict().unwrap_or_else(|| panic!("{dtype:?}: no difference"));
        assert_eq!(verdict.place.path, path, "{dtype:?}");
        // Of two recordings, too, but for the one that is smaller than a rounding.
        let dir = tempfile::TempDir::new().expect("a folder");
        let correct = of_kernels(&model.reference_in(Fault::None, store));
        if fault == Fault::GeluTanh {
            // That one takes a program: two recordings of it are as near as two roundings.
            assert!(two_recordings(&dir, &model, (&correct, dtype), (&recorded, dtype)).agrees(), "{dtype:?}");
        } else {
            recordings_enclose_it(&dir, &model, (&correct, dtype), (&recorded, dtype), path);
        }
        assert!(two_recordings(&dir, &model, (&correct, dtype), (&correct, Dtype::F64)).agrees(), "{dtype:?}");
    }
}

#[rstest]
fn a_correct_reference_in_half_precision_raises_none(
    #[values(Kind::Encoder, Kind::PreEncoder, Kind::Decoder)] kind: Kind,
    #[values(Mode::Isolated, Mode::Cumulative)] mode: Mode,
) {
    let model = Model::new(kind, 1e-6);
    for (dtype, store) in HALVES {
        let recorded = of_kernels(&model.reference_in(Fault::None, store));
        let report = model.compare(&recorded, dtype, mode);
        assert!(report.agrees(), "{dtype:?} {mode:?}: {:?}", report.verdict());
        // Nor where only the outputs of sublayers are known, or where it was computed in binary64 and stored so.
        assert!(model.compare(&sublayers(&recorded), dtype, mode).agrees());
        let stored = of_kernels(&model.reference(Fault::None));
        let report = model.compare(&stored, dtype, mode);
        assert!(report.agrees(), "{dtype:?} {mode:?}: {:?}", report.verdict());
    }
}
