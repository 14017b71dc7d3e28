//! Trees of where a number came from and where it goes, and the first NaN: against the hand calculation, and against
//! numbers moved by a little.

use std::collections::HashSet;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Instant;

use tui_transformer::debug::nan::{self, Bad, From};
use tui_transformer::debug::tree::{Branch, Extent, Way, What, branches, origin, tree};
use tui_transformer::explain::Explainer;
use tui_transformer::program::{Op, Reduction, Unary};
use tui_transformer::session::{Options, Session, open};
use tui_transformer::trace::derive::{Arithmetic, Cell};
use tui_transformer::trace::{AnyTrace, Edit};

fn opened(name: &str) -> Session {
    let loaded = tui_transformer::scenario::load(Path::new(name)).expect("embedded");
    open(loaded.scenario, None, Options::default()).expect("opens")
}

fn water() -> &'static Session {
    static WATER: OnceLock<Session> = OnceLock::new();
    WATER.get_or_init(|| opened("water_class"))
}

fn cell(s: &Session, run: usize, path: &str, index: &[usize]) -> Cell {
    let program = &s.runs[run].program;
    let node = program.find(path).unwrap_or_else(|| panic!("{path}"));
    let flat = program.node(node).shape.flat(index);
    Cell { node, flat }
}

fn path(trace: &AnyTrace, c: Cell) -> String {
    trace.program().node(c.node).path.to_string()
}

#[test]
fn the_terms_of_a_product_are_those_of_the_hand_calculation() {
    let trace = water().trace(0).expect("runs");
    let x = Explainer::new(trace);
    // Q1[0][0] = 0.5×-0.3 + 0.7×0.9 + 0.8×0.5 + 1.1×0.2 = 1.1
    let q = cell(water(), 0, "encoder.0.self_attn.q", &[0, 0, 0, 0]);
    let found = branches(&x, q, Way::Up, 0);
    let terms: Vec<f64> = found.list.iter().map(|b| b.term).collect();
    let wanted = [0.7 * 0.9, 0.8 * 0.5, 1.1 * 0.2, 0.5 * -0.3];
    assert_eq!(terms.len(), wanted.len());
    for (t, w) in terms.iter().zip(wanted) {
        assert!((t - w).abs() < 1e-12, "{terms:?}");
    }
    // What is computed is the branch, the weight its factor.
    for b in &found.list {
        assert_eq!(path(trace, origin(&x, b.cell)), "embed.source.out");
        let weight = b.partner.expect("a factor");
        assert_eq!(x.arithmetic(origin(&x, weight)), Arithmetic::Given);
    }
    let two = branches(&x, q, Way::Up, 2);
    assert_eq!(two.list, found.list[..2]);
    assert_eq!(two.others, 2);
    assert!((two.others_weight - (1.1 * 0.2 + 0.5 * 0.3)).abs() < 1e-12);
    assert!((two.weight - found.weight).abs() < 1e-12 && found.others == 0);
}

#[test]
fn a_score_has_both_factors_and_a_norm_is_seen_through() {
    let trace = water().trace(0).expect("runs");
    let x = Explainer::new(trace);
    let raw = cell(water(), 0, "encoder.0.self_attn.scores_raw", &[0, 0, 0, 1]);
    let found = branches(&x, raw, Way::Up, 0);
    let paths: HashSet<String> = found.list.iter().map(|b| path(trace, b.cell)).collect();
    assert_eq!(found.list.len(), 4);
    assert!(paths.iter().any(|p| p.contains(".q")) && paths.iter().any(|p| p.contains(".k")));
    let sum: f64 = found.list.iter().map(|b| b.term).sum();
    assert!((sum / 2.0 - x.value(raw)).abs() < 1e-12, "each product stands twice");
    let norm = cell(water(), 0, "encoder.0.norm1.out", &[0, 0, 0]);
    let found = branches(&x, norm, Way::Up, 0);
    let mut paths: Vec<String> = found.list.iter().map(|b| path(trace, b.cell)).collect();
    paths.sort();
    for wanted in ["encoder.0.norm1.mean", "encoder.0.norm1.var", "encoder.0.residual1"] {
        assert!(paths.iter().any(|p| p == wanted), "{paths:?}");
    }
}

/// How `y` moves where `of` is moved and the other operands are held, relative to how far `of` was moved.
fn moved(trace: &AnyTrace, x: &Explainer<'_>, y: Cell, of: Cell, held: &[Cell]) -> f64 {
    let at = x.value(of);
    let h = (at.abs() * 1e-5).max(1e-7);
    let value = |to: f64| {
        let mut edits: Vec<Edit> =
            held.iter().filter(|c| **c != of).map(|c| Edit { cell: *c, value: x.value(*c) }).collect();
        edits.push(Edit { cell: of, value: to });
        trace.what_if(&edits).value(y.node).get(y.flat)
    };
    at * (value(at + h) - value(at - h)) / (2.0 * h)
}

/// Whether a kink makes the slope another one a little further.
fn smooth(trace: &AnyTrace, x: &Explainer<'_>, y: Cell) -> bool {
    match trace.program().node(y.node).op {
        Op::Unary(Unary::Relu | Unary::Step | Unary::SoftmaxShift | Unary::Abs) => x.value(y).abs() > 1e-3,
        Op::Reduce { kind, .. } => kind != Reduction::Max,
        Op::ArgMax | Op::ArgSort | Op::Sample | Op::Gather(_) => false,
        _ => true,
    }
}

#[test]
fn weights_upstream_are_how_far_the_result_moves() {
    let trace = water().trace(0).expect("runs");
    let x = Explainer::new(trace);
    let mut compared = 0;
    for step in water().steps_of(0).list() {
        for view in &step.views {
            let shape = view.shape();
            for flat in [0, shape.len() / 2] {
                let y = view.cell(&shape.unflat(flat)[..shape.rank()]);
                let program = trace.program();
                if program.node(y.node).dtype != tui_transformer::tensor::DType::Float
                    || !smooth(trace, &x, origin(&x, y))
                {
                    continue;
                }
                let found = branches(&x, y, Way::Up, 0);
                let mut held: Vec<Cell> = found.list.iter().map(|b| b.cell).collect();
                held.extend(found.list.iter().filter_map(|b| b.partner));
                for b in found.list.iter().take(6) {
                    let by_moving = moved(trace, &x, y, b.cell, &held);
                    let close = (b.term - by_moving).abs() <= 1e-5 * (1.0 + b.weight());
                    assert!(close, "{} of {}: {} for {by_moving}", path(trace, b.cell), path(trace, y), b.term);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn weights_downstream_are_those_upstream_seen_from_the_other_end() {
    let trace = water().trace(0).expect("runs");
    let x = Explainer::new(trace);
    let mut compared = 0;
    for (p, index) in [
        ("embed.source.out", &[0, 1, 2][..]),
        ("encoder.0.self_attn.v", &[0, 1, 2, 0]),
        ("encoder.0.self_attn.weights", &[0, 0, 1, 1]),
        ("encoder.0.residual1", &[0, 0, 3]),
        ("encoder.0.norm1.var", &[0, 1, 0]),
        ("encoder.1.norm2.out", &[0, 2, 1]),
        ("encoder.0.ffn.w1.weight", &[3, 1]),
        ("output.logits", &[0, 1, 4]),
        ("embed.weight", &[1, 2]),
    ] {
        let c = cell(water(), 0, p, index);
        let found = branches(&x, c, Way::Down, 0);
        assert!(!found.list.is_empty(), "{p}");
        for b in &found.list {
            let back = branches(&x, b.cell, Way::Up, 0);
            // Moves are looked through both ways. A weight is the factor of what it weighs, not a branch of its own.
            let is = |o: &Cell| origin(&x, *o) == origin(&x, c);
            let branch = back.list.iter().filter(|o| is(&o.cell));
            let factor = back.list.iter().filter(|o| o.partner.as_ref().is_some_and(is));
            let mut own: Vec<f64> = branch.map(|o| o.term).collect();
            if own.is_empty() {
                own = factor.map(|o| o.term).collect();
            }
            let own: f64 = own.iter().sum();
            assert!(
                (own - b.term).abs() < 1e-9 * (1.0 + b.weight()),
                "{p} in {}: {} for {own}",
                path(trace, b.cell),
                b.term
            );
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared}");
}

fn label(trace: &AnyTrace, b: &Branch) -> String {
    format!("{}[{}]", path(trace, b.cell), b.cell.flat)
}

#[test]
fn a_tree_goes_so_deep_and_tells_the_rest() {
    let trace = water().trace(0).expect("runs");
    let x = Explainer::new(trace);
    let top = cell(water(), 0, "encoder.0.ffn.out", &[0, 0, 0]);
    let extent = Extent { depth: 3, most: 2, rows: 1000 };
    let rows = tree(&x, top, Way::Up, extent);
    assert!(rows.iter().any(|r| r.depth == 3) && rows.iter().all(|r| r.depth <= 3));
    let first: Vec<_> = rows.iter().filter(|r| r.depth == 1).collect();
    // Of eight products of the hidden layer, two and the rest.
    let [a, b, rest] = first[..] else {
        panic!("{first:?}");
    };
    let (What::Branch { share: Some(a), .. }, What::Branch { share: Some(b), .. }) = (&a.what, &b.what) else {
        panic!("{first:?}");
    };
    let What::Others { count, share: Some(rest), .. } = &rest.what else {
        panic!("{first:?}");
    };
    assert_eq!(*count, 6);
    assert!(a >= b && (a + b + rest - 1.0).abs() < 1e-12);
    // No cell is gone into twice.
    let mut open = HashSet::new();
    for row in &rows {
        if let What::Branch { branch, again, .. } = &row.what
            && row.depth < 3
        {
            let fresh = open.insert(origin(&x, branch.cell));
            assert_eq!(fresh, !again, "{}", label(trace, branch));
        }
    }
    let short = tree(&x, top, Way::Up, Extent { rows: 4, ..extent });
    assert_eq!(short[..], rows[..4]);
    let given = cell(water(), 0, "embed.weight", &[0, 0]);
    assert!(tree(&x, given, Way::Up, extent).is_empty());
    let last = cell(water(), 0, "loss.mean", &[]);
    assert!(tree(&x, last, Way::Down, extent).is_empty());
}

#[test]
fn three_thousand_operands_are_one_pass() {
    let session = opened("bert_block");
    let run = session.run_named("encode").expect("there is one");
    let trace = session.trace(run).expect("runs");
    let x = Explainer::new(trace);
    let out = cell(&session, run, "encoder.0.ffn.out", &[0, 3, 5]);
    let start = Instant::now();
    let found = branches(&x, out, Way::Up, 8);
    // The product of 3072 and a bias.
    assert_eq!(found.list.len() + found.others, 3073);
    let wide = cell(&session, run, "encoder.0.norm2.out", &[0, 3, 5]);
    let down = branches(&x, wide, Way::Down, 8);
    assert_eq!(down.list.len() + down.others, 3072);
    let deep = tree(&x, out, Way::Up, Extent { depth: 4, most: 4, rows: 200 });
    assert!(deep.len() > 50);
    // Milliseconds; the limit is for a machine that is busy with other things.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

fn edit(trace: &AnyTrace, cell: Cell, value: f64) -> AnyTrace {
    trace.what_if(&[Edit { cell, value }])
}

#[test]
fn a_sound_run_has_no_nan_and_only_masks_are_infinite() {
    for name in ["water_class", "gpt_block", "encoder_decoder"] {
        let s = opened(name);
        for run in 0..s.runs.len() {
            let trace = s.trace(run).expect("runs");
            assert_eq!(nan::first(trace, Bad::Nan), None, "{name}");
            assert_eq!(nan::first(trace, Bad::Inf), None, "{name}");
        }
    }
    // `gpt_block` masks with −∞.
    let s = opened("gpt_block");
    let trace = s.trace(0).expect("runs");
    let infinite = |t: &AnyTrace| {
        t.program().nodes().any(|(id, _)| {
            let v = t.value(id);
            (0..v.shape().len()).any(|i| v.get(i) == f64::NEG_INFINITY)
        })
    };
    assert!(infinite(trace));
}

/// Cells that are NaN, in all float tensors.
fn count(trace: &AnyTrace, bad: impl Fn(f64) -> bool) -> usize {
    let nodes = trace.program().nodes();
    let of = |(id, _)| {
        let v = trace.value(id);
        (0..v.shape().len()).filter(|i| bad(v.get(*i))).count()
    };
    nodes.map(of).sum()
}

#[test]
fn nan_in_a_weight_is_told_from_what_carries_it() {
    let s = water();
    let weight = cell(s, 0, "encoder.1.ffn.w1.weight", &[2, 1]);
    let trace = edit(s.trace(0).expect("runs"), weight, f64::NAN);
    let found = nan::first(&trace, Bad::Nan).expect("there is NaN");
    assert_eq!((found.producer, found.from), (weight, From::Parameter));
    assert_eq!(found.producers, 1);
    assert_eq!(found.carriers + 1, count(&trace, f64::is_nan));
    assert!(found.carriers > 100 && found.nodes > 10);
}

#[test]
fn nan_made_of_infinities_has_these_as_operands() {
    let s = water();
    let sum = cell(s, 0, "encoder.0.residual1", &[0, 1, 2]);
    let trace = edit(s.trace(0).expect("runs"), sum, f64::INFINITY);
    let inf = nan::first(&trace, Bad::Inf).expect("there is an infinity");
    assert_eq!((inf.producer, inf.from), (sum, From::Computed));
    assert!(inf.operands.iter().all(|(_, x)| x.is_finite()));
    assert!(inf.carriers > 0);
    // ∞ − ∞ in the norm that follows.
    let found = nan::first(&trace, Bad::Nan).expect("there is NaN");
    assert_eq!(found.from, From::Computed);
    assert!(path(&trace, found.producer).starts_with("encoder.0.norm1."));
    assert!(found.operands.iter().any(|(_, x)| x.is_infinite()));
    assert!(found.operands.iter().all(|(_, x)| !x.is_nan()));
}

#[test]
fn two_producers_are_both_counted() {
    let s = water();
    let first = cell(s, 0, "encoder.0.ffn.w1.weight", &[2, 1]);
    let second = cell(s, 0, "output.weight", &[0, 0]);
    let edits = [first, second].map(|cell| Edit { cell, value: f64::NAN });
    let trace = s.trace(0).expect("runs").what_if(&edits);
    let found = nan::first(&trace, Bad::Nan).expect("there is NaN");
    assert_eq!((found.producer, found.producers), (first, 2));
    let inf = nan::first(&edit(s.trace(0).expect("runs"), second, f64::INFINITY), Bad::Inf);
    assert_eq!(inf.expect("there is one").from, From::Parameter);
}
