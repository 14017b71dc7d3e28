//! Central differences against recorded gradients.

use std::sync::Arc;

use tui_transformer::program::{
    Binary, Builder, Constant, Leaf, NodeId, Op, Program, Random, RandomKind, Reduction, backward,
};
use tui_transformer::tensor::{Shape, Tensor, Value};
use tui_transformer::trace::derive::replay_node;
use tui_transformer::trace::{self, Bindings};

/// How many cells were compared, and how many lie at a kink and were not.
#[derive(Debug, Default)]
pub struct Check {
    pub cells: usize,
    pub skipped: usize,
}

/// Σ wᵢ·xᵢ over all cells, with fixed uneven weights.
pub fn weighted_sum(b: &mut Builder, x: NodeId) -> NodeId {
    weighted_sum_named(b, "weighted", x)
}

pub fn weighted_sum_named(b: &mut Builder, name: &str, x: NodeId) -> NodeId {
    let n = b.shape(x).len();
    let flat = b.reshape(format!("{name}_flat"), x, Shape::new(&[n])).unwrap();
    let weights: Arc<[f64]> = (0..n).map(|i| 0.4 + 0.37 * ((i * i + 3 * i) % 7) as f64).collect();
    let weights = b.constant(format!("{name}_weights"), Shape::new(&[n]), Constant::Float(weights)).unwrap();
    let product = b.binary(format!("{name}_product"), Binary::Mul, flat, weights).unwrap();
    let sum = b.reduce(format!("{name}_sum"), Reduction::Sum, 0, product).unwrap();
    b.reshape(name, sum, Shape::SCALAR).unwrap()
}

/// Numbers for every parameter and input, in (−scale, scale).
pub fn bindings(program: &Program, seed: u64, scale: f64) -> Bindings<f64> {
    let mut all = Bindings::new();
    for (i, (_, node)) in program.nodes().enumerate() {
        if !matches!(node.op, Op::Leaf(Leaf::Parameter | Leaf::Input(_))) {
            continue;
        }
        let random = Random { seed, stream: i as u64, kind: RandomKind::Uniform };
        let values: Vec<f64> =
            (0..node.shape.len() as u64).map(|i| scale * (2.0 * random.eval::<f64>(i) - 1.0)).collect();
        all.insert(Arc::clone(&node.path), Value::Float(Tensor::new(node.shape, values)));
    }
    all
}

/// Runs what has been built; gives the trace and a reader of its values.
pub fn run(b: Builder, seed: u64) -> (Arc<Program>, impl Fn(&str) -> Vec<f64>) {
    let program = Arc::new(b.finish());
    let trace = trace::run(&program, &bindings(&program, seed, 1.0)).unwrap();
    (program, move |path: &str| trace.at(path).unwrap().float().data().to_vec())
}

/// Appends the backward pass and compares the gradient of every parameter and input with central differences.
/// Gradients of all nodes must have their shapes.
pub fn agree(mut b: Builder, loss: NodeId, seed: u64, scale: f64) -> Check {
    let gradients = backward(&mut b, loss).unwrap();
    let program = Arc::new(b.finish());
    for (id, grad) in gradients.iter() {
        let (x, g) = (program.node(id), program.node(grad));
        assert_eq!(x.shape, g.shape, "{}", g.path);
        assert_eq!(*g.path, format!("grad.{}", x.path));
    }
    let at = bindings(&program, seed, scale);
    let trace = trace::run(&program, &at).unwrap();
    for (id, node) in program.nodes() {
        assert_eq!(replay_node(&trace, id).different, 0, "{}", node.path);
    }
    let loss_at = |path: &Arc<str>, cell: usize, by: f64| {
        let mut moved = at.clone();
        let old = at[path].float();
        let mut data = old.data().to_vec();
        data[cell] += by;
        moved.insert(Arc::clone(path), Value::Float(Tensor::new(*old.shape(), data)));
        let mut stop = |_: &Program, id: NodeId, _: &Value<f64>| {
            if id == loss { trace::Flow::Stop } else { trace::Flow::Go }
        };
        let run = trace::run_with(&program, &moved, &trace::Settings::default(), &mut stop);
        run.unwrap().value(loss).float().data()[0]
    };
    let mut check = Check::default();
    for (id, node) in program.nodes() {
        if !at.contains_key(&node.path) {
            continue;
        }
        let grad = gradients.of(id).map(|g| trace.value(g));
        for cell in 0..node.shape.len() {
            let exact = grad.as_ref().map_or(0.0, |g| g.float().data()[cell]);
            let h = 1e-5;
            let slope = |h: f64| (loss_at(&node.path, cell, h) - loss_at(&node.path, cell, -h)) / (2.0 * h);
            let (wide, narrow) = (slope(h), slope(h / 3.0));
            let size = 1.0 + exact.abs().max(narrow.abs());
            let forward = (loss_at(&node.path, cell, h) - loss_at(&node.path, cell, 0.0)) / h;
            // A kink between the points: both one-sided slopes differ by more than curvature explains.
            if (wide - narrow).abs() > 1e-5 * size || (forward - wide).abs() > 1e-2 * size {
                check.skipped += 1;
                continue;
            }
            assert!(
                (exact - narrow).abs() <= 2e-5 * size,
                "grad.{}[{cell}] is {exact}, differences say {narrow}",
                node.path
            );
            check.cells += 1;
        }
    }
    check
}
