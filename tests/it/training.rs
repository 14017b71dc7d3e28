//! The hand calculation's gradients and training runs, against float64 autograd.

use std::sync::Arc;

use crate::common::water_class::{config, flat, golden, ours, training, weights};
use tui_transformer::export::checkpoint;
use tui_transformer::model::params::VocabSizes;
use tui_transformer::model::{Forward, Sequences, forward};
use tui_transformer::program::optimiser::{Optimiser, OptimiserKind};
use tui_transformer::program::{BuildError, Leaf, Op, Program};
use tui_transformer::tensor::{Real, Tensor, Value};
use tui_transformer::trace::derive::replay_node;
use tui_transformer::trace::train::{Retention, State, Stopped, TrainStep, Trainer};
use tui_transformer::trace::{Bindings, gradcheck, run};

fn parameters<T: Real>(program: &Program) -> Bindings<T> {
    let weights = weights();
    program
        .nodes()
        .filter(|(_, n)| matches!(n.op, Op::Leaf(Leaf::Parameter)))
        .map(|(_, n)| {
            let data = weights[&*n.path].iter().map(|&x| T::from_f64(x)).collect::<Vec<_>>();
            (Arc::clone(&n.path), Value::Float(Tensor::new(n.shape, data)))
        })
        .collect()
}

fn train_step(optimiser: &Optimiser) -> Arc<TrainStep> {
    let (program, outputs) = training(&config());
    Arc::new(TrainStep::new(program, outputs.loss.unwrap(), optimiser).unwrap())
}

fn optimiser(kind: OptimiserKind, lr: f64, momentum: f64, weight_decay: f64) -> Optimiser {
    Optimiser { kind, lr, momentum, weight_decay, ..Optimiser::default() }
}

#[test]
fn every_gradient_equals_autograd() {
    let train_step = train_step(&Optimiser::default());
    let program = &train_step.program;
    let mut values = parameters::<f64>(program);
    values.insert("update.learning_rate".into(), Value::Float(Tensor::scalar(0.1)));
    let trace = run(program, &values).unwrap();
    let golden = golden("gradients.json");
    let loss = trace.at("loss.mean").unwrap().get(0);
    assert!((loss / golden["loss"].as_f64().unwrap() - 1.0).abs() < 1e-12);
    let check = |path: &str, start: usize, theirs: &[f64]| {
        let grad = trace.at(&format!("grad.{path}")).unwrap_or_else(|| panic!("grad.{path}"));
        let largest = theirs.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        for (i, x) in theirs.iter().enumerate() {
            let far = (grad.get(start + i) - x).abs() / largest;
            assert!(far < 1e-12, "grad.{path}[{i}] differs by {far:e}");
        }
        grad.shape().len()
    };
    let mut count = 0;
    for (name, theirs) in golden["weight_gradients"].as_object().unwrap() {
        let theirs = flat(theirs);
        let (block, matrix) = name.rsplit_once('.').unwrap_or(("", name));
        let (block, head) = match block.rsplit_once(".head") {
            Some((block, head)) => (block, head.parse::<usize>().unwrap() - 1),
            None => (block, 0),
        };
        let path = match matrix {
            "E" => "embed.weight".to_owned(),
            "W_out" => "output.weight".to_owned(),
            m => {
                let letter = match m {
                    "W_1" => "w1",
                    "W_2" => "w2",
                    "W_Q" => "q",
                    "W_K" => "k",
                    "W_V" => "v",
                    "W_O" => "o",
                    other => panic!("{other}"),
                };
                format!("{}.{letter}.weight", ours(block))
            }
        };
        check(&path, head * theirs.len(), &theirs);
        count += 1;
    }
    for (name, theirs) in golden["activation_gradients"].as_object().unwrap() {
        let theirs = flat(theirs);
        if name == "logits" {
            check("output.logits", 0, &theirs);
            count += 1;
            continue;
        }
        let (block, what) = name.rsplit_once('.').unwrap();
        let (block, head) = match block.rsplit_once(".head") {
            Some((block, head)) => (block, head.parse::<usize>().unwrap() - 1),
            None => (block, 0),
        };
        let what = match what {
            "score" => "scores",
            "A" => "weights",
            "norm1" => "norm1.out",
            "norm2" => "norm2.out",
            "norm3" => "norm3.out",
            other => other,
        };
        check(&format!("{}.{what}", ours(block)), head * theirs.len(), &theirs);
        count += 1;
    }
    assert_eq!(count, 45 + 35);
    for (id, node) in program.nodes() {
        assert_eq!(replay_node(&trace, id).different, 0, "{}", node.path);
    }
}

#[test]
fn differences_by_what_if_agree_for_parameters_and_activations() {
    let train_step = train_step(&Optimiser::default());
    let mut values = parameters::<f64>(&train_step.program);
    values.insert("update.learning_rate".into(), Value::Float(Tensor::scalar(0.1)));
    let trace = run(&train_step.program, &values).unwrap();
    let check = |path: &str, most: usize| {
        let node = train_step.program.find(path).unwrap();
        gradcheck::check(&trace, &trace, &train_step.gradients, node, 1e-5, most)
    };
    for (path, most, cells) in [
        ("embed.weight", 100, 32),
        ("decoder.1.cross_attn.k.weight", 5, 5),
        ("encoder.0.self_attn.scores", 8, 8),
        ("encoder.1.norm1.out", 16, 16),
        ("output.logits", 4, 4),
    ] {
        let checked = check(path, most).unwrap();
        assert_eq!(checked.cells.len(), cells);
        let (worst, error) = checked.worst(0.0).unwrap();
        assert!(error < 1e-6, "{path}: {worst:?}");
        assert!(checked.largest > 1e-4, "{path}");
    }
    assert!(check("embed.source.positions", 4).is_none());
}

/// The losses of 200 updates, with the last bit of one weight turned or not.
fn losses(optimiser: &Optimiser, turned: Option<usize>) -> Vec<f64> {
    let train_step = train_step(optimiser);
    let mut values = parameters::<f64>(&train_step.program);
    if let Some(which) = turned {
        let mut paths: Vec<_> = values.keys().cloned().collect();
        paths.sort();
        let old = values[&paths[which]].float().clone();
        let mut data = old.data().to_vec();
        data[0] = f64::from_bits(data[0].to_bits() ^ 1);
        values.insert(Arc::clone(&paths[which]), Value::Float(Tensor::new(*old.shape(), data)));
    }
    let mut trainer = Trainer::new(
        optimiser.clone(),
        |_| Ok(Arc::clone(&train_step)),
        State::new(values),
        vec![],
        Retention::default(),
    );
    for _ in 0..200 {
        trainer.step().unwrap();
    }
    trainer.losses().to_vec()
}

#[test]
fn the_four_training_runs() {
    let golden = golden("gradients.json");
    for (name, optimiser) in [
        ("sgd lr=0.1", optimiser(OptimiserKind::Sgd, 0.1, 0.0, 0.0)),
        ("sgd lr=0.1 momentum=0.9", optimiser(OptimiserKind::Sgd, 0.1, 0.9, 0.0)),
        ("adam lr=0.01", optimiser(OptimiserKind::Adam, 0.01, 0.0, 0.0)),
        ("adamw lr=0.01 weight_decay=0.01", optimiser(OptimiserKind::AdamW, 0.01, 0.0, 0.01)),
    ] {
        let ours = losses(&optimiser, None);
        let listed = golden["training_runs"][name]["loss_before_update"].as_object().unwrap();
        assert_eq!(listed.len(), 10);
        // Plain SGD at this rate overshoots from update 75 on (the loss jumps from 0.77 to above 2), and each
        // overshoot multiplies a difference: turning the last bit of a single weight moves the loss of update 99 by
        // 1e-5 and that of update 199 by 1e-3. What float64 leaves undecided there cannot be compared more finely,
        // so those two are held to that spread. AdamW passes a milder such place before update 99.
        let spread = |update: usize| {
            (0..12)
                .map(|which| (losses(&optimiser, Some(which))[update] / ours[update] - 1.0).abs())
                .fold(0.0, f64::max)
        };
        for (update, loss) in listed {
            let update: usize = update.parse().unwrap();
            let limit = match name {
                "sgd lr=0.1" if update >= 99 => {
                    let spread = spread(update);
                    assert!(spread > 1e-6, "update {update} is not chaotic: {spread:e}");
                    2.0 * spread
                }
                "adamw lr=0.01 weight_decay=0.01" if update >= 99 => 1e-6,
                _ => 1e-9,
            };
            let far = (ours[update] / loss.as_f64().unwrap() - 1.0).abs();
            assert!(far <= limit, "{name}, update {update}: {far:e} > {limit:e}");
        }
    }
}

fn sgd(
    train_step: &Arc<TrainStep>,
    retention: Retention,
) -> Trainer<f64, impl FnMut(u64) -> Result<Arc<TrainStep>, BuildError>> {
    let train_step = Arc::clone(train_step);
    Trainer::new(
        Optimiser::default(),
        move |_| Ok(Arc::clone(&train_step)),
        State::new(parameters::<f64>(&training(&config()).0)),
        vec![],
        retention,
    )
}

#[test]
fn any_update_opens_again_with_its_bits_and_memory_is_bounded() {
    let train_step = train_step(&Optimiser::default());
    let retention = Retention { every: 4, most: 6, ..Retention::default() };
    let mut trainer = sgd(&train_step, retention);
    let mut before = Vec::new();
    for _ in 0..100 {
        before.push(trainer.state().clone());
        trainer.step().unwrap();
        assert!(trainer.kept().len() <= 6);
    }
    assert!(trainer.kept().len() >= 3);
    assert_eq!(trainer.kept().next().unwrap().update, 0);
    for update in [0, 1, 37, 50, 99] {
        let (train_step, trace) = trainer.reopen(update).unwrap();
        let loss = trace.value(train_step.loss).get(0);
        assert_eq!(loss.to_bits(), trainer.losses()[update as usize].to_bits());
        for (path, value) in before[update as usize].parameters() {
            assert!(trace.at(path).unwrap().same_bits(value), "{update} {path}");
        }
        assert!(trace.at("grad.embed.weight").is_some());
    }
    let (train_step, trace) = trainer.reopen(100).unwrap();
    assert!(trace.value(train_step.loss).get(0) < trainer.losses()[0]);
    assert_eq!(trainer.state().update, 100);
    assert!(trainer.reopen(101).is_err());
}

#[test]
fn a_run_goes_on_from_its_state() {
    let optimiser = optimiser(OptimiserKind::AdamW, 0.01, 0.0, 0.1);
    let train_step = train_step(&optimiser);
    let trainer = |state, losses| {
        let train_step = Arc::clone(&train_step);
        let batches = move |_| Ok::<_, BuildError>(Arc::clone(&train_step));
        Trainer::new(optimiser.clone(), batches, state, losses, Retention::default())
    };
    let start = State::new(parameters::<f64>(&train_step.program));
    let mut whole = trainer(start.clone(), vec![]);
    let mut first = trainer(start, vec![]);
    for _ in 0..20 {
        whole.step().unwrap();
    }
    for _ in 0..7 {
        first.step().unwrap();
    }
    let mut second = trainer(first.state().clone(), first.losses().to_vec());
    for _ in 7..20 {
        second.step().unwrap();
    }
    assert_eq!(whole.losses(), second.losses());
}

#[test]
fn a_saved_run_goes_on_with_the_same_bits() {
    let optimiser = optimiser(OptimiserKind::Adam, 0.01, 0.0, 0.0);
    let train_step = train_step(&optimiser);
    let trainer = |state, losses| {
        let train_step = Arc::clone(&train_step);
        let batches = move |_| Ok::<_, BuildError>(Arc::clone(&train_step));
        Trainer::new(optimiser.clone(), batches, state, losses, Retention::default())
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.safetensors");
    let mut whole = trainer(State::new(parameters::<f64>(&train_step.program)), vec![]);
    for update in 0..12 {
        whole.step().unwrap();
        if update == 2 || update == 4 {
            checkpoint::save(&file, whole.state(), whole.losses()).unwrap();
        }
    }
    let (state, losses) = checkpoint::load::<f64>(&file).unwrap();
    assert_eq!(state.update, 5);
    let mut rest = trainer(state, losses);
    for _ in 5..12 {
        rest.step().unwrap();
    }
    assert_eq!(whole.losses(), rest.losses());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    // Weights without a training state, and no safetensors at all.
    let bare = folder.path().join("bare.safetensors");
    let none: [(&str, safetensors::tensor::TensorView); 0] = [];
    std::fs::write(&bare, safetensors::serialize(none, None).unwrap()).unwrap();
    assert_eq!(checkpoint::load::<f64>(&bare).unwrap_err().key, "train.checkpoint.not_ours");
    std::fs::write(&bare, b"\x09\0\0\0\0\0\0\0{broken").unwrap();
    assert_eq!(checkpoint::load::<f64>(&bare).unwrap_err().key, "train.checkpoint.read");
}

#[test]
fn a_nan_stops_training_at_the_node_that_made_it() {
    let train_step = train_step(&Optimiser::default());
    let stop = |path: &str, value: f64| {
        let mut values = parameters::<f64>(&train_step.program);
        let old = values[path].float().clone();
        let mut data = old.data().to_vec();
        data[0] = value;
        values.insert(path.into(), Value::Float(Tensor::new(*old.shape(), data)));
        let same = Arc::clone(&train_step);
        let mut trainer = Trainer::new(
            Optimiser::default(),
            move |_| Ok::<_, BuildError>(Arc::clone(&same)),
            State::new(values),
            vec![],
            Retention::default(),
        );
        let stopped = trainer.step().unwrap_err();
        assert_eq!(trainer.state().update, 0);
        assert!(trainer.losses().is_empty());
        match stopped {
            Stopped::NotFinite { path, given, nan, .. } => (path.to_string(), given, nan),
            other => panic!("{other}"),
        }
    };
    let nan = stop("encoder.1.ffn.w1.weight", f64::NAN);
    assert_eq!(nan, ("encoder.1.ffn.w1.weight".to_owned(), true, true));
    // The first word takes all of the probability somewhere: each loss there is finite, their sum is not.
    let large = stop("output.weight", 1e308);
    assert_eq!(large, ("loss.sum_row".to_owned(), false, false));
}

#[test]
fn a_rate_that_is_too_high_is_found_in_the_update() {
    let optimiser = optimiser(OptimiserKind::Sgd, f64::MAX, 0.0, 0.0);
    let train_step = train_step(&optimiser);
    let state = State::new(parameters::<f64>(&train_step.program));
    let batches = |_| Ok::<_, BuildError>(Arc::clone(&train_step));
    let mut trainer = Trainer::new(optimiser, batches, state, vec![], Retention::default());
    let mut stopped = None;
    for _ in 0..3 {
        if let Err(e) = trainer.step() {
            stopped = Some(e);
            break;
        }
    }
    assert!(matches!(stopped, Some(Stopped::NotFinite { given: false, .. })), "{stopped:?}");
}

#[test]
fn another_batch_of_the_same_shape_uses_the_program_again() {
    let config = config();
    let with = |labels: &[i64], ids: Vec<i64>| {
        forward(&Forward {
            loss: &tui_transformer::model::loss::Loss::MeanCrossEntropy,
            config: &config,
            vocab: VocabSizes { source: 8, target: 8 },
            source: Some(&Sequences::one(ids.clone())),
            target: Some(&Sequences::one(ids)),
            labels: Some(labels),
            training: true,
        })
        .unwrap()
    };
    let loss_and_grad = |train_step: &TrainStep| {
        let mut values = parameters::<f64>(&train_step.program);
        values.insert("update.learning_rate".into(), Value::Float(Tensor::scalar(0.1)));
        let trace = run(&train_step.program, &values).unwrap();
        (trace.value(train_step.loss), trace.at("grad.embed.weight").unwrap())
    };
    let optimiser = Optimiser::default();
    let (first, outputs) = with(&[1, 2, 3, 4], vec![0, 1, 2, 3]);
    let first = TrainStep::new(first, outputs.loss.unwrap(), &optimiser).unwrap();
    let (second, outputs) = with(&[7, 6, 5, 4], vec![3, 2, 2, 1]);
    let reused = first.for_batch(&second).unwrap();
    let built = TrainStep::new(second, outputs.loss.unwrap(), &optimiser).unwrap();
    let (a, b) = (loss_and_grad(&reused), loss_and_grad(&built));
    assert!(a.0.same_bits(&b.0) && a.1.same_bits(&b.1));
    assert!(!a.0.same_bits(&loss_and_grad(&first).0));
    // Another shape, or labels that do not all count, is another program.
    assert!(first.for_batch(&with(&[1, 2, 3], vec![0, 1, 2]).0).is_none());
    assert!(first.for_batch(&with(&[1, 2, -1, 3], vec![0, 1, 2, 3]).0).is_none());
}

#[test]
fn dropout_draws_other_numbers_in_each_update_and_the_same_when_reopened() {
    let mut config = config();
    config.dropout.sublayer = 0.3;
    config.dropout.seed = 5;
    let (program, outputs) = training(&config);
    let optimiser = Optimiser { lr: 0.0, ..Optimiser::default() };
    let train_step = Arc::new(TrainStep::new(program, outputs.loss.unwrap(), &optimiser).unwrap());
    let state = State::new(parameters::<f64>(&train_step.program));
    let batches = |_| Ok::<_, BuildError>(Arc::clone(&train_step));
    let mut trainer = Trainer::new(optimiser, batches, state, vec![], Retention::default());
    for _ in 0..5 {
        trainer.step().unwrap();
    }
    // The rate is 0: only the dropped elements differ.
    let losses = trainer.losses().to_vec();
    assert!(losses.windows(2).all(|w| w[0].to_bits() != w[1].to_bits()));
    let (train_step, trace) = trainer.reopen(3).unwrap();
    assert_eq!(trace.value(train_step.loss).get(0).to_bits(), losses[3].to_bits());
}
