//! What follows from one order of arithmetic, bit for bit: one thread = two threads; a value let go and recomputed =
//! the stored one; a what-if = a full rerun. On random small programs, in f32 and f64.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use tui_transformer::program::composite::{self, Norm, Shift};
use tui_transformer::program::{Affine, Binary, Builder, Leaf, NodeId, Op, Program, Reduction, Unary};
use tui_transformer::tensor::{DType, Real, Shape, Tensor, Value};
use tui_transformer::trace::derive::{Cell, replay_node};
use tui_transformer::trace::provenance::{read_by, reads};
use tui_transformer::trace::{Bindings, Edit, Flow, Keep, Pinned, PinnedSink, Settings, Trace, rerun, run, run_with};

/// One random step of a program over matrices `[n, n]`.
#[derive(Clone, Debug)]
enum Stage {
    MatMul(usize, usize, u8),
    Unary(Unary, usize),
    Binary(Binary, usize, usize),
    Affine(Affine, usize),
    Softmax(usize),
    LayerNorm(usize),
    Row(Reduction, usize),
    Halves(usize),
    Turn(usize),
}

fn stage() -> impl Strategy<Value = Stage> {
    let any = 0..64usize;
    prop_oneof![
        (any.clone(), any.clone(), 0..3u8).prop_map(|(a, b, t)| Stage::MatMul(a, b, t)),
        (prop_oneof![Just(Unary::Tanh), Just(Unary::Relu), Just(Unary::Sigmoid), Just(Unary::Erf)], any.clone())
            .prop_map(|(f, x)| Stage::Unary(f, x)),
        (prop_oneof![Just(Binary::Add), Just(Binary::Sub), Just(Binary::Mul)], any.clone(), any.clone())
            .prop_map(|(f, a, b)| Stage::Binary(f, a, b)),
        (-2.0..2.0f64, any.clone()).prop_map(|(c, x)| Stage::Affine(Affine::Mul(c), x)),
        any.clone().prop_map(Stage::Softmax),
        any.clone().prop_map(Stage::LayerNorm),
        (prop_oneof![Just(Reduction::Sum), Just(Reduction::Mean), Just(Reduction::Max)], any.clone())
            .prop_map(|(f, x)| Stage::Row(f, x)),
        any.clone().prop_map(Stage::Halves),
        any.prop_map(Stage::Turn),
    ]
}

/// A program over two inputs `[n, n]`; every stage reads earlier matrices and gives one.
fn build(n: usize, stages: &[Stage]) -> Program {
    let mut b = Builder::new();
    let square = Shape::new(&[n, n]);
    let mut made: Vec<NodeId> =
        vec![b.input("a", DType::Float, square).expect("a"), b.input("b", DType::Float, square).expect("b")];
    for (i, stage) in stages.iter().enumerate() {
        let pick = |x: &usize| made[x % made.len()];
        let name = format!("s{i}");
        let id = match stage {
            Stage::MatMul(x, y, 0) => b.matmul(&name, pick(x), pick(y)),
            Stage::MatMul(x, y, 1) => b.matmul_bt(&name, pick(x), pick(y)),
            Stage::MatMul(x, y, _) => b.matmul_at(&name, pick(x), pick(y)),
            Stage::Unary(f, x) => b.unary(&name, *f, pick(x)),
            Stage::Binary(f, x, y) => b.binary(&name, *f, pick(x), pick(y)),
            Stage::Affine(f, x) => b.affine(&name, *f, pick(x)),
            Stage::Softmax(x) => {
                let x = pick(x);
                b.scope(&name, tui_transformer::program::ScopeKind::Group, |b| {
                    composite::softmax(b, "weights", x, Shift::WhenNeeded, true)
                })
            }
            Stage::LayerNorm(x) => {
                let norm =
                    Norm { eps: 1e-5, inside_root: true, unbiased: false, gamma: None, beta: None, unit_offset: false };
                composite::layer_norm(&mut b, &name, pick(x), &norm)
            }
            Stage::Row(f, x) => {
                let x = pick(x);
                let row = b.reduce_last(format!("{name}.row"), *f, x).expect("a row");
                b.binary(&name, Binary::Add, x, row)
            }
            Stage::Halves(x) => {
                let (x, half) = (pick(x), n / 2);
                let left = b.slice(format!("{name}.left"), x, 1, 0, half).expect("left");
                let right = b.slice(format!("{name}.right"), x, 1, half, n - half).expect("right");
                b.concat(&name, 1, &[right, left])
            }
            Stage::Turn(x) => b.permute(&name, pick(x), &[1, 0]),
        };
        made.push(id.expect("fits"));
    }
    b.finish()
}

fn bindings<T: Real>(n: usize, seed: u64) -> Bindings<T> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        T::from_f64(((state >> 33) as f64 / f64::from(1u32 << 31) - 0.5) * 2.0)
    };
    let mut out = HashMap::new();
    for name in ["a", "b"] {
        let data: Vec<T> = (0..n * n).map(|_| next()).collect();
        out.insert(name.into(), Value::Float(Tensor::new(Shape::new(&[n, n]), data)));
    }
    out
}

fn same<T: Real>(left: &Trace<T>, right: &Trace<T>) -> Result<(), TestCaseError> {
    for (id, node) in left.program().nodes() {
        prop_assert!(left.value(id).same_bits(&right.value(id)), "{} differs", node.path);
    }
    Ok(())
}

fn holds<T: Real>(n: usize, stages: &[Stage], seed: u64, edited: usize) -> Result<(), TestCaseError> {
    let program = Arc::new(build(n, stages));
    let given = bindings::<T>(n, seed);
    let trace = run(&program, &given).expect("runs");
    for (id, node) in program.nodes() {
        let found = replay_node(&trace, id);
        prop_assert_eq!(found.different, 0, "{} replays to other bits", node.path);
    }
    // Threads.
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    same(&trace, &alone.install(|| run(&program, &given).expect("runs")))?;
    // Retention.
    let keep = Keep::only(&program, |id| id.index() % 5 == 0);
    let settings = Settings { keep, ..Settings::default() };
    let sparse = run_with(&program, &given, &settings, &mut ()).expect("runs");
    same(&trace, &sparse)?;
    // What-if, of an input and of an activation.
    let last = program.len() - 1;
    for node in [NodeId(0), NodeId((edited % last) as u32)] {
        let cell = Cell { node, flat: edited % trace.value(node).shape().len() };
        let (guess, changed) = trace.changed_nodes(&[Edit { cell, value: 0.25 }]);
        let mut sink = |_: &Program, id: NodeId, value: &Value<T>| {
            if id != node {
                return Flow::Go;
            }
            let mut data = value.float().data().to_vec();
            data[cell.flat] = T::from_f64(0.25);
            Flow::Replace(Value::Float(Tensor::new(*value.shape(), data)))
        };
        let full = run_with(&program, &given, &Settings::default(), &mut sink).expect("runs");
        same(&guess, &full)?;
        let (of_sparse, _) = sparse.changed_nodes(&[Edit { cell, value: 0.25 }]);
        same(&of_sparse, &full)?;
        // Nothing was touched that does not depend on the cell.
        for id in changed {
            prop_assert!(id >= node);
        }
        // A run that takes from others what it can: from the plain one, and back from the edited one.
        let mut held = Pinned::default();
        held.hold(Edit { cell, value: 0.25 });
        let held = Arc::new(held);
        let none = Arc::new(Pinned::default());
        let with = |held, donors: &[&Trace<T>]| {
            rerun(&program, &given, held, &Settings::default(), donors, &mut ()).expect("runs")
        };
        let edited = with(&held, &[&trace]);
        same(&edited, &full)?;
        same(&with(&held, &[]), &full)?;
        same(&with(&none, &[&edited]), &trace)?;
        same(&with(&held, &[&trace, &edited]), &full)?;
        let back = with(&none, &[&edited, &trace]);
        for (id, node) in program.nodes().filter(|(_, n)| !matches!(n.op, Op::Leaf(_))) {
            let shared = back.value(id).shares_memory_with(&trace.value(id));
            prop_assert!(shared, "{} was computed again", node.path);
        }
        for (id, node) in program.nodes() {
            let found = replay_node(&edited, id);
            prop_assert_eq!(found.different, 0, "{} replays to other bits", node.path);
        }
        let mut sink = PinnedSink(&held);
        let sunk = run_with(&program, &given, &Settings::default(), &mut sink).expect("runs");
        same(&sunk, &full)?;
    }
    // What a cell reads is read by it, and the other way round.
    for (id, node) in program.nodes().filter(|(_, n)| !matches!(n.op, Op::Leaf(_))) {
        let cell = Cell { node: id, flat: edited % node.shape.len() };
        for operand in reads(&trace, cell) {
            let index = node.shape.unflat(cell.flat);
            let back = read_by(&trace, operand);
            prop_assert!(
                back.iter().any(|r| r.node == id && r.contains(&index[..node.shape.rank()])),
                "{:?} does not know that {} reads it",
                operand,
                node.path
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_in_f64(n in 2..7usize, stages in prop::collection::vec(stage(), 1..14), seed: u64, edited in 0..1000usize) {
        holds::<f64>(n, &stages, seed, edited)?;
    }

    #[test]
    fn random_programs_in_f32(n in 2..7usize, stages in prop::collection::vec(stage(), 1..14), seed: u64, edited in 0..1000usize) {
        holds::<f32>(n, &stages, seed, edited)?;
    }
}

#[test]
fn large_products_do_not_depend_on_threads() {
    let program = Arc::new(build(301, &[Stage::MatMul(0, 1, 1), Stage::MatMul(2, 1, 0), Stage::Softmax(3)]));
    let given = bindings::<f32>(301, 7);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    let two = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("a pool");
    let left = one.install(|| run(&program, &given).expect("runs"));
    let right = two.install(|| run(&program, &given).expect("runs"));
    for (id, _) in program.nodes() {
        assert!(left.value(id).same_bits(&right.value(id)));
        assert_eq!(replay_node(&left, id).different, 0);
    }
}

#[test]
fn a_sink_stops_a_run_where_it_likes() {
    let program = Arc::new(build(3, &[Stage::Turn(0), Stage::Softmax(2), Stage::Turn(3)]));
    let stop = program.find("s1.exp").expect("there");
    let mut sink = |_: &Program, id: NodeId, _: &Value<f64>| if id == stop { Flow::Stop } else { Flow::Go };
    let trace = run_with(&program, &bindings(3, 1), &Settings::default(), &mut sink).expect("runs");
    assert_eq!(trace.stopped(), Some(stop));
    assert!(trace.get(stop).is_some() && trace.get(NodeId(stop.0 + 1)).is_none());
}

#[test]
fn what_is_missing_or_misshapen_is_named() {
    let program = Arc::new(build(3, &[Stage::Turn(0)]));
    let error = run::<f64>(&program, &HashMap::new()).expect_err("nothing is bound");
    assert!(error.to_string().contains('a'), "{error}");
    let error = run(&program, &bindings::<f64>(4, 1)).expect_err("another shape");
    assert!(error.to_string().contains("[4, 4]"), "{error}");
    assert!(matches!(program.node(NodeId(0)).op, Op::Leaf(Leaf::Input(DType::Float))));
}

#[test]
fn shapes_are_checked_while_building() {
    let mut b = Builder::new();
    let x = b.input("layer.x", DType::Float, Shape::new(&[2, 3])).expect("x");
    let w = b.input("layer.w", DType::Float, Shape::new(&[4, 5])).expect("w");
    let error = b.matmul("layer.y", x, w).expect_err("3 is not 4").to_string();
    for part in ["layer.y", "layer.x [2, 3]", "layer.w [4, 5]", "matmul"] {
        assert!(error.contains(part), "{error}");
    }
}
