//! Each optimiser against its formula written out in plain numbers, its schedules and its limits.

use std::sync::Arc;

use tui_transformer::program::optimiser::{Fault, Optimiser, OptimiserKind, ParameterGroup, Schedule};
use tui_transformer::program::{Binary, BuildError, Builder, NodeId, Program, Reduction, Unary};
use tui_transformer::session::training::fault;
use tui_transformer::tensor::{Shape, Tensor, Value};
use tui_transformer::text::Lang;
use tui_transformer::trace::derive::replay_node;
use tui_transformer::trace::train::{Retention, State, TrainStep, Trainer};

const START: [f64; 3] = [1.5, -0.75, 0.3];
const UPDATES: u64 = 12;

/// Σ w⁴/4 + w₀·w₁: a loss whose gradient is w³, and the other of the first two.
fn forward() -> (Program, NodeId) {
    let mut b = Builder::new();
    let w = b.parameter("w", Shape::new(&[3])).unwrap();
    let square = b.unary("square", Unary::Square, w).unwrap();
    let fourth = b.unary("fourth", Unary::Square, square).unwrap();
    let sum = b.reduce("sum", Reduction::Sum, 0, fourth).unwrap();
    let quarter = b.affine("quarter", tui_transformer::program::Affine::Div(4.0), sum).unwrap();
    let first = b.slice("first", w, 0, 0, 1).unwrap();
    let second = b.slice("second", w, 0, 1, 1).unwrap();
    let product = b.binary("product", Binary::Mul, first, second).unwrap();
    let loss = b.binary("loss", Binary::Add, quarter, product).unwrap();
    (b.finish(), loss)
}

fn gradient(w: [f64; 3]) -> [f64; 3] {
    [w[0].powi(3) + w[1], w[1].powi(3) + w[0], w[2].powi(3)]
}

/// The weights after some updates.
fn trained(optimiser: &Optimiser) -> Vec<f64> {
    let (program, loss) = forward();
    let train_step = Arc::new(TrainStep::new(program, loss, optimiser).unwrap());
    let w = Value::Float(Tensor::new(Shape::new(&[3]), START.to_vec()));
    let state = State::new([("w".into(), w)].into());
    let batches = |_| Ok::<_, BuildError>(Arc::clone(&train_step));
    let mut trainer = Trainer::new(optimiser.clone(), batches, state, vec![], Retention::default());
    for _ in 0..UPDATES {
        trainer.step().unwrap();
    }
    let (_, trace) = trainer.reopen(UPDATES - 1).unwrap();
    for (id, node) in trace.program().nodes() {
        assert_eq!(replay_node(&trace, id).different, 0, "{}", node.path);
    }
    assert!(trace.at("update.w.new").unwrap().same_bits(&trainer.state().values["w"]));
    trainer.state().values["w"].float().data().to_vec()
}

/// The same with `rule(update, w, g) → w` in plain numbers.
fn by_hand(mut rule: impl FnMut(u64, usize, f64, f64) -> f64, clip: Option<f64>) -> [f64; 3] {
    let mut w = START;
    for update in 0..UPDATES {
        let mut g = gradient(w);
        if let Some(limit) = clip {
            let norm = g.iter().map(|g| g * g).sum::<f64>().sqrt();
            let factor = (limit / (norm + 1e-6)).min(1.0);
            g = g.map(|g| g * factor);
        }
        for i in 0..3 {
            w[i] = rule(update, i, w[i], g[i]);
        }
    }
    w
}

fn close(ours: &[f64], theirs: &[f64]) {
    for (a, b) in ours.iter().zip(theirs) {
        assert!((a - b).abs() < 1e-13, "{ours:?} {theirs:?}");
    }
}

#[test]
fn gradient_descent_with_decay_momentum_and_a_limit() {
    let (rate, mu, decay) = (0.05, 0.8, 0.02);
    let optimiser = Optimiser { momentum: mu, lr: rate, weight_decay: decay, clip: Some(0.7), ..Optimiser::default() };
    let mut velocity = [0.0; 3];
    let theirs = by_hand(
        |_, i, w, g| {
            velocity[i] = mu * velocity[i] + (g + decay * w);
            w - rate * velocity[i]
        },
        Some(0.7),
    );
    close(&trained(&optimiser), &theirs);
}

#[test]
fn a_limit_above_the_norm_changes_nothing() {
    let plain = Optimiser::default();
    let clipped = Optimiser { clip: Some(1e6), ..plain.clone() };
    assert_eq!(trained(&plain), trained(&clipped));
}

#[test]
fn adam_and_adamw() {
    let (rate, decay) = (0.03, 0.1);
    let (beta1, beta2, eps) = (0.85, 0.97, 1e-6);
    for decoupled in [false, true] {
        let kind = if decoupled { OptimiserKind::AdamW } else { OptimiserKind::Adam };
        let betas = (beta1, beta2);
        let optimiser = Optimiser { kind, betas, eps, lr: rate, weight_decay: decay, ..Optimiser::default() };
        let (mut m, mut v) = ([0.0; 3], [0.0; 3]);
        let theirs = by_hand(
            |update, i, w, g| {
                let g = if decoupled { g } else { g + decay * w };
                let w = if decoupled { w - rate * decay * w } else { w };
                m[i] = beta1 * m[i] + (1.0 - beta1) * g;
                v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
                let t = update as i32 + 1;
                let m_hat: f64 = m[i] / (1.0 - beta1.powi(t));
                let v_hat: f64 = v[i] / (1.0 - beta2.powi(t));
                w - rate * m_hat / (v_hat.sqrt() + eps)
            },
            None,
        );
        close(&trained(&optimiser), &theirs);
    }
}

#[test]
fn the_learning_rate_rises_and_falls() {
    let with = |warmup, schedule, steps| Optimiser { lr: 0.8, warmup, schedule, steps, ..Optimiser::default() };
    let rates = |o: &Optimiser, at: &[u64]| at.iter().map(|&u| o.rate(u)).collect::<Vec<_>>();
    let constant = with(4, Schedule::Constant, 10);
    close(&rates(&constant, &[0, 1, 3, 4, 1000]), &[0.2, 0.4, 0.8, 0.8, 0.8]);
    let linear = with(0, Schedule::Linear, 10);
    close(&rates(&linear, &[0, 5, 10, 99]), &[0.8, 0.4, 0.0, 0.0]);
    let cosine = Optimiser { floor: 0.25, ..with(2, Schedule::Cosine, 12) };
    close(&rates(&cosine, &[1, 2, 7, 12, 99]), &[0.8, 0.8, 0.5, 0.2, 0.2]);
    let root = with(4, Schedule::InverseSqrt, 10);
    close(&rates(&root, &[3, 15, 63]), &[0.8, 0.4, 0.2]);
    // A schedule acts: the rate of each update enters its program.
    let falling = with(0, Schedule::Linear, UPDATES);
    let falling = Optimiser { lr: 0.1, ..falling };
    let theirs = by_hand(|update, _, w, g| w - 0.1 * (1.0 - update as f64 / UPDATES as f64) * g, None);
    close(&trained(&falling), &theirs);
}

#[test]
fn settings_that_make_no_sense_are_named() {
    let bad = |change: &dyn Fn(&mut Optimiser)| {
        let mut o = Optimiser::default();
        change(&mut o);
        let [bad] = &o.faults()[..] else { panic!("{:?}", o.faults()) };
        let value = match bad.why {
            Fault::NotPositive(x) | Fault::Negative(x) | Fault::NotBelowOne(x) | Fault::NoShare(x) => x,
            Fault::Pattern { .. } => panic!("no glob is wrong"),
        };
        for lang in [Lang::En, Lang::Zh] {
            assert!(fault(&bad.why).render(lang).contains(&value.to_string()));
        }
        bad.field.clone()
    };
    assert_eq!(Optimiser::default().faults(), []);
    assert_eq!(bad(&|o| o.lr = f64::NAN), "lr");
    assert_eq!(bad(&|o| o.lr = 0.0), "lr");
    assert_eq!(bad(&|o| o.weight_decay = f64::INFINITY), "weight_decay");
    assert_eq!(bad(&|o| o.clip = Some(0.0)), "clip");
    assert_eq!(bad(&|o| o.momentum = 1.0), "momentum");
    assert_eq!(bad(&|o| o.betas.0 = 1.0), "betas[0]");
    assert_eq!(bad(&|o| o.betas.1 = -0.1), "betas[1]");
    assert_eq!(bad(&|o| o.accumulate = 0), "accumulate");
    let group = |rate| ParameterGroup { paths: "*".into(), rate, weight_decay: None };
    assert_eq!(bad(&|o| o.groups = vec![group(1.0), group(-1.0)]), "groups[1].rate");
    assert_eq!(bad(&|o| o.eps = 0.0), "eps");
    assert_eq!(bad(&|o| o.floor = 2.0), "floor");
}

// After twelve updates by torch 2 (`SGD(nesterov=True)`, `Adam(amsgrad=True)`, `AdamW` with a parameter group), and by the
// formula of BertAdam, in f64.
#[rustfmt::skip]
const NESTEROV: [f64; 3] = [0.9955064797923046, -0.9501305045265274, 0.23843255076915248];

#[rustfmt::skip]
const AMSGRAD: [f64; 3] = [1.0073390684350136, -0.9971965857616365, -0.032782822976628725];

#[rustfmt::skip]
const ADAMW_NO_DECAY: [f64; 3] = [0.9983853648962436, -1.1649959868151463, -0.06586821026653931];

#[rustfmt::skip]
const BERT_ADAM: [f64; 3] = [0.9454641945492996, -1.1870227537441387, -0.114920707849508];

#[test]
fn nesterov_amsgrad_groups_and_a_missing_correction() {
    let plain = Optimiser::default();
    let nesterov = Optimiser { momentum: 0.8, lr: 0.05, weight_decay: 0.02, nesterov: true, ..plain.clone() };
    close(&trained(&nesterov), &NESTEROV);
    let (kind, betas) = (OptimiserKind::Adam, (0.5, 0.6));
    let amsgrad = Optimiser { kind, betas, lr: 0.3, amsgrad: true, ..plain.clone() };
    close(&trained(&amsgrad), &AMSGRAD);
    let group = |paths: &str| ParameterGroup { paths: paths.into(), rate: 0.5, weight_decay: Some(0.0) };
    let grouped = Optimiser {
        kind: OptimiserKind::AdamW,
        lr: 0.1,
        weight_decay: 0.1,
        groups: vec![group("*.bias"), group("w")],
        ..plain.clone()
    };
    close(&trained(&grouped), &ADAMW_NO_DECAY);
    let bert = Optimiser {
        kind: OptimiserKind::AdamW,
        eps: 1e-6,
        lr: 0.01,
        weight_decay: 0.01,
        bias_correction: false,
        ..plain
    };
    close(&trained(&bert), &BERT_ADAM);
}

/// Three batches of one sentence each, accumulated, are one update over the three sentences; the sums are nodes that
/// replay, and the update can be opened again.
#[test]
fn accumulated_gradients_are_those_of_the_whole_batch() {
    let same = Optimiser { kind: OptimiserKind::Adam, lr: 0.05, ..Optimiser::default() };
    let accumulated = trained(&Optimiser { accumulate: 4, ..same.clone() });
    let plain = trained(&same);
    for (a, b) in accumulated.iter().zip(&plain) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }

    let loaded = tui_transformer::scenario::load(std::path::Path::new("norm_in_training")).expect("a lesson");
    let s = tui_transformer::session::open(loaded.scenario, None, tui_transformer::session::Options::default());
    let s = s.expect("opens");
    let run = s.run_named("pre_ln").expect("a run");
    let tui_transformer::session::AnyBindings::F64(start) = &s.params else { panic!("f64") };
    let after = |accumulate: u64, batch: Option<usize>| {
        let rule = Optimiser { accumulate, lr: 0.1, clip: Some(1.0), ..Optimiser::default() };
        let train_steps = tui_transformer::session::training::TrainSteps::new(&s, run, rule, batch, 3);
        let mut trainer = train_steps.trainer(State::new(start.clone()), vec![], Retention::default());
        for _ in 0..3 {
            trainer.step().expect("an update");
        }
        let (_, trace) = trainer.reopen(1).expect("it was made");
        let sum = trace.at("update.output.weight.gradient_sum").is_some();
        assert_eq!(sum, accumulate > 1);
        trainer.state().values["decoder.0.ffn.w1.weight"].float().data().to_vec()
    };
    let (whole, parts) = (after(1, None), after(3, Some(1)));
    assert!(whole.iter().zip(&parts).all(|(a, b)| (a - b).abs() < 1e-10));
    let before = start["decoder.0.ffn.w1.weight"].float().data().to_vec();
    assert!(whole.iter().zip(&before).any(|(a, b)| (a - b).abs() > 1e-4));
}
