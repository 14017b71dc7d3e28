//! Gradients against central differences: every primitive, and random small programs.

use crate::common;

use std::sync::Arc;

use crate::common::finite::{Check, agree};
use proptest::prelude::*;
use tui_transformer::program::composite::{self, Places, Shift};
use tui_transformer::program::{
    Affine, Binary, BuildError, Builder, Constant, NodeId, Op, Pick, Random, RandomKind, Reduction, Unary, backward,
};
use tui_transformer::tensor::{DType, Shape};

type Build<'a> = &'a dyn Fn(&mut Builder, NodeId) -> Result<NodeId, BuildError>;

/// A program of one primitive on parameters, checked against differences.
fn check(build: impl Fn(&mut Builder) -> Result<NodeId, BuildError>) -> Check {
    let mut b = Builder::new();
    let out = build(&mut b).unwrap();
    let loss = common::finite::weighted_sum(&mut b, out);
    agree(b, loss, 7, 1.0)
}

fn param(b: &mut Builder, name: &str, dims: &[usize]) -> NodeId {
    b.parameter(name, Shape::new(dims)).unwrap()
}

#[test]
fn every_unary() {
    let all = [
        Unary::Neg,
        Unary::Exp,
        Unary::Ln,
        Unary::Sqrt,
        Unary::Square,
        Unary::Abs,
        Unary::Tanh,
        Unary::Erf,
        Unary::Relu,
        Unary::Sigmoid,
        Unary::Sin,
        Unary::Cos,
    ];
    for f in all {
        let checked = check(|b| {
            let mut x = param(b, "x", &[3, 4]);
            if matches!(f, Unary::Ln | Unary::Sqrt) {
                let square = b.unary("square", Unary::Square, x)?;
                x = b.affine("positive", Affine::Add(0.3), square)?;
            }
            b.unary("y", f, x)
        });
        assert!(checked.cells >= 10, "{f:?}: {checked:?}");
    }
}

#[test]
fn step_and_guards_pass_nothing_back() {
    for f in [Unary::Step, Unary::SoftmaxShift, Unary::MaskedSoftmaxShift] {
        let mut b = Builder::new();
        let x = param(&mut b, "x", &[3]);
        let flat = b.unary("flat", f, x).unwrap();
        let y = b.binary("y", Binary::Mul, flat, x).unwrap();
        let loss = b.reduce_last("loss", Reduction::Sum, y).unwrap();
        let g = backward(&mut b, loss).unwrap();
        assert_eq!(g.of(flat), None);
        let program = b.finish();
        assert!(program.find("grad.x").is_some());
        assert!(program.find("grad.flat").is_none());
    }
}

#[test]
fn every_binary_with_every_broadcast() {
    let shapes: [(&[usize], &[usize]); 7] = [
        (&[2, 3], &[2, 3]),
        (&[2, 3], &[1, 3]),
        (&[2, 1], &[2, 3]),
        (&[2, 3, 4], &[4]),
        (&[2, 3, 4], &[2, 1, 1]),
        (&[1, 3, 1], &[2, 1, 4]),
        (&[2, 1, 3, 2], &[1, 1, 1, 2]),
    ];
    for f in [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::DivOrZero, Binary::MulOrZero, Binary::Max] {
        for (a, c) in shapes {
            let checked = check(|b| {
                let x = param(b, "x", a);
                let mut y = param(b, "y", c);
                if matches!(f, Binary::Div | Binary::DivOrZero) {
                    let square = b.unary("square", Unary::Square, y)?;
                    y = b.affine("positive", Affine::Add(0.5), square)?;
                }
                b.binary("z", f, x, y)
            });
            assert!(checked.cells >= 5, "{f:?} {a:?} {c:?}: {checked:?}");
        }
    }
}

#[test]
fn a_number_divided_by_nothing_passes_nothing_back() {
    let mut b = Builder::new();
    let x = param(&mut b, "x", &[1, 2]);
    let zero = b.constant("zero", Shape::new(&[1, 1]), Constant::Filled(0.0)).unwrap();
    let y = b.binary("y", Binary::DivOrZero, x, zero).unwrap();
    let loss = common::finite::weighted_sum(&mut b, y);
    backward(&mut b, loss).unwrap();
    assert_eq!(common::finite::run(b, 1).1("grad.x"), [0.0, 0.0]);
}

#[test]
fn every_product() {
    for (ta, tb) in [(false, false), (false, true), (true, false), (true, true)] {
        for (lead_a, lead_b) in [
            (&[][..], &[][..]),
            (&[2], &[2]),
            (&[2, 3], &[]),
            (&[2, 3], &[1, 1]),
            (&[2, 1], &[1, 3]),
            (&[1, 3], &[2, 3]),
            (&[2, 2, 2], &[2, 1, 2]),
        ] {
            let (m, k, n) = (3, 4, 2);
            let dims = |lead: &[usize], r: usize, c: usize, t: bool| {
                let mut d = lead.to_vec();
                d.extend(if t { [c, r] } else { [r, c] });
                d
            };
            let checked = check(|b| {
                let x = param(b, "x", &dims(lead_a, m, k, ta));
                let y = param(b, "y", &dims(lead_b, k, n, tb));
                let op = Op::MatMul { transpose_a: ta, transpose_b: tb };
                b.apply("z", op, &[x, y])
            });
            assert_eq!(checked.skipped, 0, "{ta} {tb} {lead_a:?} {lead_b:?}");
        }
    }
}

#[test]
fn a_product_with_itself() {
    let checked = check(|b| {
        let x = param(b, "x", &[3, 3]);
        b.matmul_bt("z", x, x)
    });
    assert_eq!(checked.cells, 9);
}

#[test]
fn every_reduction_along_every_axis() {
    for kind in [Reduction::Sum, Reduction::Mean, Reduction::Max] {
        for axis in 0..3 {
            let checked = check(|b| {
                let x = param(b, "x", &[2, 3, 4]);
                b.reduce("y", kind, axis, x)
            });
            assert_eq!(checked.cells, 24, "{kind:?} {axis}");
        }
    }
}

#[test]
fn the_largest_passes_back_to_the_first_of_equals() {
    let mut b = Builder::new();
    let x = param(&mut b, "x", &[4]);
    let zeros = b.affine("zeros", Affine::Mul(0.0), x).unwrap();
    let max = b.reduce_last("max", Reduction::Max, zeros).unwrap();
    let g = backward(&mut b, max).unwrap();
    assert!(g.of(zeros).is_some());
    assert_eq!(common::finite::run(b, 1).1("grad.zeros"), [1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn everything_that_moves_elements() {
    let ids =
        |b: &mut Builder, dims: &[usize], ids: &[i64]| b.constant("ids", Shape::new(dims), Constant::Int(ids.into()));
    let cases: [(&str, Build); 15] = [
        ("affine", &|b, x| {
            let y = b.affine("a", Affine::Mul(-1.7), x)?;
            let y = b.affine("b", Affine::Add(3.0), y)?;
            b.affine("c", Affine::Div(0.3), y)
        }),
        ("cumsum", &|b, x| b.apply("y", Op::CumSum, &[x])),
        ("reshape", &|b, x| b.reshape("y", x, Shape::new(&[4, 6]))),
        ("permute", &|b, x| b.permute("y", x, &[2, 0, 1])),
        ("slice", &|b, x| b.slice("y", x, 2, 1, 2)),
        ("slice from the start", &|b, x| b.slice("y", x, 0, 0, 1)),
        ("slice of all", &|b, x| b.slice("y", x, 1, 0, 3)),
        ("concat", &|b, x| {
            let y = b.unary("other", Unary::Square, x)?;
            b.concat("y", 1, &[y, x, y])
        }),
        ("rows", &|b, x| {
            let ids = ids(b, &[2, 2], &[1, 0, 1, 1])?;
            b.gather("y", Pick::Rows, x, ids)
        }),
        ("along", &|b, x| {
            let ids = ids(b, &[2, 3, 2], &[1, 0, 3, 3, 2, 0, 0, 1, 2, 1, 1, 3])?;
            b.gather("y", Pick::Along, x, ids)
        }),
        ("scatter rows", &|b, x| {
            let base = param(b, "base", &[4, 3, 4]);
            let ids = ids(b, &[2], &[3, 3])?;
            b.scatter_add("y", Pick::Rows, base, ids, x)
        }),
        ("scatter along", &|b, x| {
            let source = param(b, "source", &[2, 3, 1]);
            let ids = ids(b, &[2, 3, 1], &[0, 1, 2, 3, 3, 0])?;
            b.scatter_add("y", Pick::Along, x, ids, source)
        }),
        ("mask", &|b, x| {
            let mask = b.mask("mask", Shape::new(&[1, 3, 4]), vec![0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 4])?;
            b.mask_fill("y", x, mask, -2.5)
        }),
        ("dropout", &|b, x| composite::dropout(b, "y", x, 0.4, 3, 1)),
        ("softmax of a masked row", &|b, x| {
            let mask = b.mask("mask", Shape::new(&[1, 3, 4]), vec![0, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 4])?;
            let scores = b.mask_fill("scores", x, mask, f64::NEG_INFINITY)?;
            composite::softmax(b, "weights", scores, Shift::WhenNeeded, true)
        }),
    ];
    for (name, build) in cases {
        let checked = check(|b| {
            let x = param(b, "x", &[2, 3, 4]);
            build(b, x)
        });
        assert_eq!(checked.skipped, 0, "{name}");
        assert!(checked.cells >= 24, "{name}");
    }
}

#[test]
fn every_composite() {
    let norm = |b: &mut Builder, inside_root: bool, unbiased: bool| composite::Norm {
        eps: 1e-3,
        inside_root,
        unbiased,
        gamma: Some(param(b, "gamma", &[6])),
        beta: Some(param(b, "beta", &[6])),
        unit_offset: false,
    };
    let cases: [(&str, Build); 20] = [
        ("relu squared", &|b, x| composite::relu_squared(b, "y", x)),
        ("quick gelu", &|b, x| composite::quick_gelu(b, "y", x)),
        ("soft cap", &|b, x| composite::softcap(b, "y", x, 0.75)),
        ("at most", &|b, x| composite::at_most(b, "y", x, 0.4)),
        ("clamp", &|b, x| composite::clamp(b, "y", x, 0.4)),
        ("rms norm by 1 + gamma", &|b, x| {
            let n = composite::Norm { unit_offset: true, beta: None, ..norm(b, true, false) };
            composite::rms_norm(b, "y", x, &n)
        }),
        ("softmax", &|b, x| composite::softmax(b, "y", x, Shift::WhenNeeded, false)),
        ("softmax shifted", &|b, x| composite::softmax(b, "y", x, Shift::Always, false)),
        ("softmax unshifted", &|b, x| composite::softmax(b, "y", x, Shift::Never, true)),
        ("layer norm", &|b, x| {
            let n = norm(b, true, false);
            composite::layer_norm(b, "y", x, &n)
        }),
        ("layer norm beside sigma", &|b, x| {
            let n = norm(b, false, true);
            composite::layer_norm(b, "y", x, &n)
        }),
        ("rms norm", &|b, x| {
            let n = norm(b, true, false);
            composite::rms_norm(b, "y", x, &n)
        }),
        ("gelu", &|b, x| composite::gelu(b, "y", x)),
        ("gelu tanh", &|b, x| composite::gelu_tanh(b, "y", x)),
        ("silu", &|b, x| composite::silu(b, "y", x)),
        ("elu plus one", &|b, x| composite::elu_plus_one(b, "y", x)),
        ("linear", &|b, x| {
            let (w, c) = (param(b, "w", &[4, 6]), param(b, "c", &[4]));
            composite::linear(b, "y", x, w, Some(c), tui_transformer::tensor::Axis::DK)
        }),
        ("rotary in halves", &|b, x| {
            let x = b.reshape("heads", x, Shape::new(&[1, 2, 3, 6]))?;
            let waves = b.scope("waves", tui_transformer::program::ScopeKind::Group, |b| {
                composite::waves(b, Places::From { first: 1, tokens: 3 }, 4, 100.0)
            })?;
            composite::rotary(b, "y", x, waves, 4, false)
        }),
        ("rotary interleaved", &|b, x| {
            let x = b.reshape("heads", x, Shape::new(&[1, 2, 3, 6]))?;
            let waves = b.scope("waves", tui_transformer::program::ScopeKind::Group, |b| {
                composite::waves(b, Places::From { first: 1, tokens: 3 }, 6, 100.0)
            })?;
            composite::rotary(b, "y", x, waves, 6, true)
        }),
        ("cross-entropy", &|b, x| {
            let probs = composite::softmax(b, "probs", x, Shift::WhenNeeded, false)?;
            composite::cross_entropy(b, "loss", x, probs, &[0, 3, -1, 5, 2, 2])
        }),
    ];
    for (name, build) in cases {
        let checked = check(|b| {
            let x = param(b, "x", &[2, 3, 6]);
            build(b, x)
        });
        assert!(checked.cells >= 32, "{name}: {checked:?}");
    }
}

#[test]
fn cross_entropy_of_other_probabilities_goes_through_its_primitives() {
    let checked = check(|b| {
        let x = param(b, "x", &[1, 2, 3]);
        let hot = b.affine("hot", Affine::Div(0.7), x)?;
        let probs = composite::softmax(b, "probs", hot, Shift::WhenNeeded, false)?;
        composite::cross_entropy(b, "loss", x, probs, &[0, 2])
    });
    assert_eq!(checked.cells, 6);
}

#[test]
fn a_loss_beyond_the_smallest_probability_is_finite_and_so_are_its_gradients() {
    // Below the smallest normal number a probability has lost digits.
    assert_eq!(Binary::LnOr.eval(1e-40_f32, -92.0), -92.0);
    assert_eq!(Binary::LnOr.eval(1e-40_f64, -92.0), libm::log(1e-40));
    // The second label is ignored: its probability underflows too, and nothing comes of it.
    let far = [0.0, 0.0, -900.0, -900.0, 1.0, 0.0];
    for through in [false, true] {
        let mut b = Builder::new();
        let x = b.constant("x", Shape::new(&[1, 2, 3]), Constant::Float(far.into())).unwrap();
        let offset = param(&mut b, "offset", &[1, 2, 3]);
        let x = b.binary("logits", Binary::Add, x, offset).unwrap();
        let copy = b.affine("copy", Affine::Add(0.0), x).unwrap();
        let probs = composite::softmax(&mut b, "probs", copy, Shift::WhenNeeded, false).unwrap();
        let logits = if through { x } else { copy };
        let loss = composite::cross_entropy(&mut b, "loss", logits, probs, &[2, -1]).unwrap();
        backward(&mut b, loss).unwrap();
        let (_, at) = common::finite::run(b, 1);
        let (l, p) = (at("logits"), at("probs"));
        assert_eq!((p[2], p[3]), (0.0, 0.0));
        let expected = (l[0].exp() + l[1].exp()).ln() - l[2];
        assert!((at("loss.mean")[0] - expected).abs() < 1e-9);
        assert_eq!(at("loss.per_position")[1], 0.0);
        let expected = [p[0], p[1], -1.0, 0.0, 0.0, 0.0];
        for (g, e) in at("grad.offset").iter().zip(expected) {
            assert!((g - e).abs() < 1e-12, "{through}: {g} {e}");
        }
    }
}

#[test]
fn a_row_that_sees_nothing_is_0_with_every_shift() {
    for shift in [Shift::WhenNeeded, Shift::Always, Shift::Never] {
        let mut b = Builder::new();
        let x = param(&mut b, "x", &[2, 3]);
        let hidden = b.mask("mask", Shape::new(&[2, 3]), vec![1, 1, 1, 0, 1, 0]).unwrap();
        let x = b.mask_fill("masked", x, hidden, f64::NEG_INFINITY).unwrap();
        let y = composite::softmax(&mut b, "y", x, shift, true).unwrap();
        let loss = common::finite::weighted_sum(&mut b, y);
        backward(&mut b, loss).unwrap();
        let (_, at) = common::finite::run(b, 1);
        assert_eq!(at("y")[..3], [0.0; 3], "{shift:?}");
        assert!(at("y")[3] + at("y")[5] > 0.999, "{shift:?}");
        assert!(at("grad.x").iter().all(|g| g.is_finite()), "{shift:?}");
    }
}

#[test]
fn the_loss_as_the_end_of_the_program() {
    let mut b = Builder::new();
    let x = param(&mut b, "x", &[1, 4, 5]);
    let probs = composite::softmax(&mut b, "probs", x, Shift::WhenNeeded, false).unwrap();
    let loss = composite::cross_entropy(&mut b, "loss", x, probs, &[1, -1, 4, 0]).unwrap();
    let checked = agree(b, loss, 3, 1.0);
    assert_eq!(checked.cells, 20);
}

#[test]
fn only_one_number_has_a_gradient() {
    let mut b = Builder::new();
    let x = param(&mut b, "x", &[2]);
    let err = backward(&mut b, x).unwrap_err();
    assert_eq!(err.path, "grad.x");
}

#[test]
fn partial_gradients_are_named_after_their_readers_and_summed_in_their_order() {
    let mut b = Builder::new();
    let x = param(&mut b, "x", &[2]);
    let y = b.unary("y", Unary::Square, x).unwrap();
    let z = b.affine("z", Affine::Mul(3.0), x).unwrap();
    let w = b.binary("w", Binary::Mul, y, z).unwrap();
    let loss = b.reduce_last("loss", Reduction::Sum, w).unwrap();
    let g = backward(&mut b, loss).unwrap();
    let program = b.finish();
    let sum = program.node(g.of(x).unwrap());
    let from: Vec<&str> = sum.inputs.iter().map(|&i| &*program.node(i).path).collect();
    assert_eq!(from, ["grad.x.from.y", "grad.x.from.z"]);
    // In reverse order of the forward nodes.
    let order: Vec<usize> = [loss, w, z, y, x].iter().map(|&id| g.of(id).unwrap().index()).collect();
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(g.iter().count(), 5);
    assert_eq!(g.parameters(&program).count(), 1);
}

/// One step of a random program: which primitive on which earlier nodes.
#[derive(Clone, Debug)]
struct Draw {
    kind: u8,
    a: usize,
    b: usize,
    c: usize,
}

/// Applies a draw; a draw that does not fit is left out.
fn apply(b: &mut Builder, i: usize, draw: &Draw, nodes: &[NodeId]) -> Option<NodeId> {
    let name = format!("n{i}");
    let x = nodes[draw.a % nodes.len()];
    let y = nodes[draw.b % nodes.len()];
    let shape = b.shape(x);
    let rank = shape.rank();
    let axis = draw.c % rank.max(1);
    let unary = [Unary::Neg, Unary::Tanh, Unary::Erf, Unary::Relu, Unary::Sigmoid, Unary::Sin, Unary::Cos, Unary::Abs];
    match draw.kind % 16 {
        0 | 1 => b.unary(&name, unary[draw.c % unary.len()], x),
        2 | 3 => {
            let f = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Max][draw.c % 4];
            b.binary(&name, f, x, y)
        }
        4 => {
            let square = b.unary(format!("{name}s"), Unary::Square, y).ok()?;
            let safe = b.affine(format!("{name}p"), Affine::Add(1.0), square).ok()?;
            b.binary(&name, Binary::Div, x, safe)
        }
        5 | 6 => {
            let op = Op::MatMul { transpose_a: draw.c.is_multiple_of(2), transpose_b: draw.c.is_multiple_of(3) };
            b.apply(&name, op, &[x, y])
        }
        7 => {
            let kind = [Reduction::Sum, Reduction::Mean, Reduction::Max][draw.b % 3];
            b.reduce(&name, kind, axis, x)
        }
        8 if rank > 0 => b.apply(&name, Op::CumSum, &[x]),
        9 => {
            let mut order: Vec<u8> = (0..rank as u8).collect();
            order.rotate_left(axis);
            b.permute(&name, x, &order)
        }
        10 if rank > 0 => {
            let n = shape.dims()[axis];
            let start = draw.b % n;
            b.slice(&name, x, axis, start, 1 + (draw.c / 7) % (n - start))
        }
        11 => b.concat(&name, axis, &[x, y, x]),
        12 if rank > 0 => {
            let n = shape.dims()[rank - 1];
            let ids: Arc<[i64]> = (0..shape.len()).map(|i| ((i * 7 + draw.c) % n) as i64).collect();
            let ids = b.constant(format!("{name}i"), shape, Constant::Int(ids)).ok()?;
            if draw.b.is_multiple_of(2) {
                b.gather(&name, Pick::Along, x, ids)
            } else {
                b.scatter_add(&name, Pick::Along, x, ids, x)
            }
        }
        13 if rank > 0 => {
            let reasons = (0..shape.len()).map(|i| u8::from((i + draw.c).is_multiple_of(3))).collect();
            let mask = b.mask(format!("{name}m"), shape, reasons).ok()?;
            b.mask_fill(&name, x, mask, 0.5)
        }
        14 if rank > 0 => composite::softmax(b, &name, x, Shift::WhenNeeded, draw.b.is_multiple_of(2)),
        15 => {
            let random = Random { seed: draw.c as u64, stream: 1, kind: RandomKind::Dropout { rate: 0.25 } };
            let mask = b.random(format!("{name}r"), shape, random).ok()?;
            b.binary(&name, Binary::Mul, x, mask)
        }
        _ => b.reshape(&name, x, Shape::new(&[shape.len()])),
    }
    .ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn random_programs(
        draws in prop::collection::vec(
            (any::<u8>(), any::<usize>(), any::<usize>(), any::<usize>()), 3..14),
        seed in 0u64..1000,
    ) {
        let mut b = Builder::new();
        let mut nodes = vec![
            param(&mut b, "p", &[2, 3]),
            param(&mut b, "q", &[3, 3]),
            param(&mut b, "r", &[2, 1, 3]),
            b.input("s", DType::Float, Shape::new(&[1, 3])).unwrap(),
        ];
        for (i, (kind, a, c, d)) in draws.into_iter().enumerate() {
            let draw = Draw { kind, a: a % 97, b: c % 89, c: d % 83 };
            // The newest nodes are read more often, so that chains become deep.
            let from = nodes.len().saturating_sub(5);
            // Auxiliary nodes of a draw that does not fit have names of their own.
            let i = i + 100 * nodes.len();
            if let Some(id) = apply(&mut b, i, &draw, &nodes[from..])
                && b.shape(id).len() <= 256
            {
                nodes.push(id);
            }
        }
        let mut loss: Option<NodeId> = None;
        for (i, &id) in nodes.iter().rev().take(3).enumerate() {
            let part = common::finite::weighted_sum_named(&mut b, &format!("loss{i}"), id);
            loss = Some(match loss {
                None => part,
                Some(sum) => b.binary(format!("total{i}"), Binary::Add, sum, part).unwrap(),
            });
        }
        let checked = agree(b, loss.unwrap(), seed, 1.0);
        prop_assert!(checked.skipped * 2 <= checked.cells + checked.skipped, "{checked:?}");
    }
}
