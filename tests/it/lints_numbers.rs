//! Every lint of norms, positions, weights and numbers against a fault put in on purpose.

use std::path::Path;

use crate::common::lints::{Place, at, bare, edited, embedded, found, grave, of, with_leaves};
use tui_transformer::debug::lints::{self, Facts, Finding};
use tui_transformer::model::config::{EpsAt, NormKind, SoftmaxShift};
use tui_transformer::program::{Constant, Leaf};
use tui_transformer::scenario::lint::{Lint, Severity};
use tui_transformer::scenario::load;
use tui_transformer::scenario::schema::{Init, InitRule};
use tui_transformer::session::Session;
use tui_transformer::tensor::Precision;
use tui_transformer::text::Lang;

fn rule(paths: &str, with: Init) -> InitRule {
    InitRule { paths: paths.into(), with }
}

fn only(found: &[Finding], lint: Lint) -> &Finding {
    let mut of = found.iter().filter(|f| f.lint == lint);
    let one = of.next().unwrap_or_else(|| panic!("{lint:?}: {found:?}"));
    assert_eq!(of.count(), 0, "{lint:?}: {found:?}");
    one
}

/// The symbols of the step that a finding names.
fn symbols(s: &Session, mut f: Finding, run: usize) -> (u32, Vec<String>) {
    f.run = Some(run);
    let step = f.step(s).unwrap();
    let steps = s.steps_of(run);
    let step = &steps.list()[steps.position(step[0]).unwrap()];
    let symbols = step.views.iter().map(|v| v.symbol.clone());
    (step.number[0], symbols.collect())
}

#[test]
fn nan_in_one_weight_is_its_producer_and_the_rest_carry_it() {
    let s = embedded("water_class", |_| {});
    let weight = "decoder.0.self_attn.q.weight";
    let found = edited(&s, 0, &[(weight, &[2, 1], f64::NAN)]);
    let f = only(&found, Lint::NanProduced);
    assert_eq!(grave(&found), [at("nan_produced", weight, &[2, 1])]);
    assert_eq!(f.count, 1);
    // Row 2 of the matrix is of head 2: the step that shows its weights.
    let (_, symbols) = symbols(&s, f.clone(), 0);
    assert!(symbols.contains(&"WQd1b".to_owned()), "{symbols:?}");
    // Everything from the query on to the loss carries it on.
    let carriers = f.msg.args.iter().find(|a| a.0 == "carriers").unwrap();
    let program = &s.runs[0].program;
    let first = program.find("decoder.0.self_attn.q.product").unwrap();
    let after = program.nodes().skip(first.index()).count();
    let carriers: usize = carriers.1.parse().unwrap();
    assert!(carriers > after / 3 && carriers < after, "{carriers} {after}");
}

#[test]
fn nan_and_infinities_that_arithmetic_makes() {
    // exp without the row's maximum overflows, and ∞/∞ is not a number.
    let s = embedded("gpt_block", |s| {
        bare(s);
        s.model.attention.softmax = SoftmaxShift::Never;
        s.weights.init = vec![rule("*", Init::Normal { mean: 0.0, std: 9.0 })];
    });
    let found = found(&s);
    let of = |lint: Lint| -> Vec<&str> {
        let of = found.iter().filter(|f| f.lint == lint && f.run == Some(0));
        of.map(|f| f.path.as_str()).collect()
    };
    assert_eq!(of(Lint::InfinityProduced), ["decoder.0.self_attn.exp"]);
    assert_eq!(of(Lint::NanProduced), ["decoder.0.self_attn.weights"]);
    // It is part of a line of that step.
    let nan = found.iter().find(|f| f.lint == Lint::NanProduced).unwrap();
    let (_, symbols) = symbols(&s, nan.clone(), 0);
    assert!(symbols.contains(&"A".to_owned()), "{symbols:?}");
    // A probability that underflows has a finite loss, and one that does not count has none.
    let s = embedded("gpt_block", |s| {
        bare(s);
        s.weights.init.insert(0, rule("decoder.final_norm.gamma", Init::Constant(9e4)));
    });
    let found = edited(&s, 0, &[]);
    assert_eq!(grave(&found), []);
}

#[test]
fn numbers_beyond_half_precision_and_ties_of_bfloat16() {
    let s = embedded("gpt_block", |s| {
        bare(s);
        s.weights.init.insert(0, rule("decoder.final_norm.gamma", Init::Constant(7e4)));
    });
    let found = edited(&s, 0, &[]);
    let f = only(&found, Lint::BeyondF16);
    assert_eq!(f.severity, Severity::Info);
    assert!(f.value.unwrap() > 65504.0);
    // The first one is reported, not what grows from it.
    let f_first = "decoder.0.self_attn.q";
    let at_q = edited(&embedded("gpt_block", bare), 0, &[(f_first, &[0, 0, 0, 0], 1e5)]);
    let f = only(&at_q, Lint::BeyondF16);
    assert_eq!((&*f.path, f.value), (f_first, Some(1e5)));
    // −∞ and −1e9 of masks do not count.
    let fine = embedded("encoder_decoder", bare);
    let quiet = edited(&fine, 0, &[]);
    assert!(quiet.iter().all(|f| f.lint != Lint::BeyondF16));
    // 100 and 100.1 are one number in bfloat16, which has 100, 100.5, 101 there.
    let row = "output.logits";
    for (second, tie) in [(100.1, true), (101.0, false)] {
        let edits: [(&str, &[usize], f64); 2] = [(row, &[0, 2, 5], 100.0), (row, &[0, 2, 3], second)];
        let found = edited(&fine_gpt(), 0, &edits);
        let f = found.iter().find(|f| f.lint == Lint::Bf16Ties);
        assert_eq!(f.map(|f| f.cell.clone()), tie.then(|| vec![0, 2, 3]));
    }
}

fn fine_gpt() -> Session {
    embedded("gpt_block", bare)
}

#[test]
fn rows_that_do_not_sum_to_1() {
    let s = fine_gpt();
    let weights = "decoder.0.self_attn.weights";
    let old = s.trace(0).unwrap();
    let node = old.program().find(weights).unwrap();
    let cell = [0, 2, 5, 1];
    let value = old.value(node).get(old.program().node(node).shape.flat(&cell));
    for (by, wrong) in [(1e-3, true), (1e-9, true), (0.0, false)] {
        let found = edited(&s, 0, &[(weights, &cell, value + by)]);
        let expected = wrong.then(|| at("softmax_row_sum", weights, &[0, 2, 5, 0]));
        assert_eq!(grave(&found), Vec::from_iter(expected));
    }
    let found = edited(&s, 0, &[("output.probs", &[0, 3, 4], 0.5)]);
    assert_eq!(grave(&found), [at("softmax_row_sum", "output.probs", &[0, 3, 0])]);
}

#[test]
fn norms() {
    // Divided by n − 1.
    for precision in [Precision::F64, Precision::F32] {
        for name in ["encoder_decoder", "bert_block"] {
            let scenario = load(Path::new(name)).unwrap().scenario;
            let s = of(scenario, None, Some(precision), |s| {
                bare(s);
                s.model.norm.unbiased = true;
                s.runs.truncate(1);
            });
            let found = found(&s);
            let of = found.iter().filter(|f| f.run == Some(0));
            let wrong: Vec<&Finding> = of.filter(|f| f.severity > Severity::Info).collect();
            let norms = wrong.len();
            assert_eq!(norms, if name == "bert_block" { 4 } else { 2 * 2 + 2 * 3 });
            for f in wrong {
                assert_eq!(f.lint, Lint::VarianceUnbiased);
                assert!(f.path.rsplit('.').next() == Some("var") && f.cell == [0, 0, 0], "{f:?}");
            }
        }
    }
    // A mean and a variance that are not the row's.
    let s = fine_gpt();
    for part in ["mean", "var"] {
        let path = format!("decoder.0.norm2.{part}");
        let found = edited(&s, 0, &[(&path, &[0, 4, 0], 0.7)]);
        assert_eq!(grave(&found), [at("norm_statistics", &path, &[0, 4, 0])]);
    }
    // ε next to σ is reported, but is no fault.
    let s = embedded("gpt_block", |s| {
        bare(s);
        s.model.norm.eps_at = EpsAt::BesideSigma;
    });
    let found = found(&s);
    assert_eq!(grave(&found), []);
    let f = found.iter().find(|f| f.lint == Lint::EpsilonBesideSigma).unwrap();
    assert_eq!((&*f.path, f.count, f.value), ("decoder.0.norm1.root", 3, Some(1e-5)));
}

#[test]
fn epsilon_that_decides() {
    for (kind, path) in
        [(NormKind::LayerNorm, "decoder.0.norm1.var"), (NormKind::RmsNorm, "decoder.0.norm1.mean_square")]
    {
        for at_ in [EpsAt::InsideRoot, EpsAt::BesideSigma] {
            let s = embedded("gpt_block", |s| {
                bare(s);
                s.model.norm.kind = kind;
                s.model.norm.eps_at = at_;
                s.weights.init.insert(0, rule("embed.*", Init::Normal { mean: 0.0, std: 1e-6 }));
            });
            let found = edited(&s, 0, &[]);
            // What attention and the network add is of ordinary size again.
            assert_eq!(grave(&found), [at("epsilon_dominates", path, &[0, 0, 0])]);
            assert_eq!(only(&found, Lint::EpsilonDominates).count, 8);
        }
    }
}

#[test]
fn dead_columns() {
    let s = embedded("train_copy", |s| {
        bare(s);
        s.model.ffn.bias = true;
        s.weights.init.insert(0, rule("*.ffn.w1.bias", Init::Constant(-50.0)));
        s.weights.init.insert(1, rule("*.bias", Init::Constant(0.0)));
    });
    let found = edited(&s, 0, &[]);
    let act = "decoder.0.ffn.act";
    assert_eq!(grave(&found), [at("dead_relu", act, &[0, 0, 0])]);
    let f = only(&found, Lint::DeadRelu);
    assert_eq!((f.count, f.value), (32, Some(1.0)));
    let s = embedded("train_copy", bare);
    let program = &s.runs[0].program;
    let shape = program.node(program.find(act).unwrap()).shape;
    let d = shape.dims();
    // Five of 32 columns are closed for all tokens.
    let cells: Vec<[usize; 3]> =
        (0..d[0]).flat_map(|b| (0..d[1]).flat_map(move |t| (7..12).map(move |c| [b, t, c]))).collect();
    let edits: Vec<(&str, &[usize], f64)> = cells.iter().map(|c| (act, &c[..], 0.0)).collect();
    let found = edited(&s, 0, &edits);
    assert_eq!(grave(&found), []);
    let f = only(&found, Lint::DeadRelu);
    assert_eq!((f.count, &f.cell[..]), (5, &[0, 0, 7][..]));
    // For the few tokens of one sentence some columns are closed by chance.
    let found = edited(&embedded("water_class", bare), 0, &[]);
    assert!(found.iter().all(|f| f.lint != Lint::DeadRelu));
}

#[test]
fn softmax_that_has_collapsed() {
    let s = embedded("encoder_char", |s| {
        bare(s);
        let large = Init::Normal { mean: 0.0, std: 60.0 };
        s.weights.init.insert(0, rule("encoder.1.self_attn.q.weight", large));
        s.weights.init.insert(0, rule("encoder.1.self_attn.k.weight", large));
    });
    let found = edited(&s, 0, &[]);
    assert_eq!(grave(&found), [at("saturated_softmax", "encoder.1.self_attn.weights", &[0, 0, 0, 0])]);
}

#[test]
fn a_stream_that_grows() {
    let s = embedded("post_or_pre", |s| {
        bare(s);
        s.runs.truncate(1);
        s.model.norm.kind = NormKind::None;
        s.weights.init.insert(0, rule("*.ffn.*.weight", Init::Normal { mean: 0.0, std: 0.7 }));
    });
    let found = edited(&s, 0, &[]);
    let f = only(&found, Lint::NormGrowth);
    assert_eq!((f.severity, &*f.path), (Severity::Warning, "encoder.11.residual2"));
    // The root of the mean square of that row is reported.
    let trace = s.trace(0).unwrap();
    let value = trace.value(f.node.unwrap());
    let row = value.shape().flat(&f.cell);
    let squares: f64 = (row..row + 16).map(|i| value.get(i) * value.get(i)).sum();
    assert!((f.value.unwrap() - (squares / 16.0).sqrt()).abs() < 1e-9 * squares.sqrt());
}

#[test]
fn positions_one_too_far() {
    let s = fine_gpt();
    let further = |leaf: &Leaf| match leaf {
        Leaf::Constant(Constant::Int(ids)) if ids[..] == [0, 1, 2, 3, 4, 5, 6, 7] => {
            Some(Leaf::Constant(Constant::Int(ids.iter().map(|i| i + 1).collect())))
        }
        Leaf::Constant(Constant::Float(p)) if p[0] == 0.0 && p[1..].iter().all(|x| *x >= 1.0) => {
            Some(Leaf::Constant(Constant::Float(p.iter().map(|i| i + 1.0).collect())))
        }
        _ => None,
    };
    let found = with_leaves(&s, 0, further);
    let path = "embed.target.positions.ids";
    assert_eq!(grave(&found), [at("positions_offset", path, &[0])]);
    assert_eq!(only(&found, Lint::PositionsOffset).severity, Severity::Warning);
    // Sines and rotations.
    for (name, paths) in
        [("encoder_char", &["embed.source.positions.position"][..]), ("modern_decoder", &["decoder.rotary.position"])]
    {
        let s = embedded(name, bare);
        let found = with_leaves(&s, 0, further);
        let expected: Vec<Place> = paths.iter().map(|p| at("positions_offset", p, &[0, 0])).collect();
        assert_eq!(grave(&found), expected);
    }
    // A cached call that counts from 0 again.
    let run = s.run_named("sample").unwrap();
    let path = "gen.2.embed.target.positions.ids";
    let found = edited(&s, run, &[(path, &[0], 0.0)]);
    let f = only(&found, Lint::PositionsOffset);
    assert_eq!((&*f.path, f.severity), (path, Severity::Error));
    // And one that jumps.
    let found = edited(&s, 0, &[("embed.target.positions.ids", &[5], 9.0)]);
    let f = only(&found, Lint::PositionsOffset);
    assert_eq!((f.severity, &f.cell[..], f.count), (Severity::Error, &[5][..], 1));
}

#[test]
fn weights_of_files() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/reference/decoder_gpt2_like.ron");
    let reference = |change: &dyn Fn(&mut tui_transformer::scenario::Scenario)| {
        let loaded = load(&path).unwrap_or_else(|d| panic!("{}", d.render(Lang::En)));
        of(loaded.scenario, loaded.origin.as_deref(), None, change)
    };
    // The model lacks the biases of the feed-forward network that the file has.
    let s = reference(&|s| s.model.ffn.bias = false);
    let unused: Vec<Place> = (0..2)
        .flat_map(|l| [1, 2].map(|w| format!("weights.decoder.{l}.ffn.w{w}.bias")))
        .map(|name| at("weights_unused", &name, &[]))
        .collect();
    assert_eq!(grave(&found(&s)), unused);
    // The model has a head of its own that the file does not have, and a rule for everything makes it.
    let untied = |s: &mut tui_transformer::scenario::Scenario| s.model.output.tied = false;
    let s = reference(&|s| {
        untied(s);
        s.weights.init = vec![rule("*", Init::Xavier)];
    });
    let missing = found(&s);
    assert_eq!(grave(&missing), [at("weights_missing", "output.weight", &[])]);
    assert!(missing[0].step(&s).is_some());
    // A rule of its own is meant so.
    let s = reference(&|s| {
        untied(s);
        s.weights.init = vec![rule("output.weight", Init::Xavier)];
    });
    assert_eq!(grave(&found(&s)), []);
    // The file has the head under the name of the embedding: a copy, not tied.
    let s = reference(&|s| {
        untied(s);
        let names = &mut s.weights.files[0].names;
        names.insert("output.weight".into(), "weights.embed.target.weight".into());
    });
    assert_eq!(grave(&found(&s)), [at("head_not_tied", "output.weight", &[])]);
    // One that has drifted a little.
    let found = edited(&s, 0, &[("output.weight", &[3, 1], 0.05)]);
    assert_eq!(grave(&found), [at("head_not_tied", "output.weight", &[3, 1])]);
}

#[test]
fn dropout_that_acts_outside_training() {
    let s = embedded("pre_ln_encoder", bare);
    let trace = s.trace(0).unwrap();
    let facts = Facts::of(&s, 0);
    assert_eq!(grave(&lints::of_trace(trace, &facts)), []);
    let facts = Facts { training: false, ..facts };
    let found = lints::of_trace(trace, &facts);
    let paths: Vec<&str> =
        found.iter().filter(|f| f.lint == Lint::DropoutAtInference).map(|f| f.path.as_str()).collect();
    let layer = |l: usize| {
        [
            format!("encoder.{l}.self_attn.weights_dropped"),
            format!("encoder.{l}.sublayer1_dropped"),
            format!("encoder.{l}.ffn.act_dropped"),
            format!("encoder.{l}.sublayer2_dropped"),
        ]
    };
    let mut expected = vec!["embed.source.dropped".to_owned()];
    expected.extend(layer(0).into_iter().chain(layer(1)));
    assert_eq!(paths, expected);
}

#[test]
fn a_rule_for_parameters_that_are_not_there() {
    let s = embedded("gpt_block", |s| {
        bare(s);
        s.weights.init.insert(0, rule("encoder.*", Init::Constant(0.5)));
    });
    let found = found(&s);
    let f = only(&found, Lint::InitUnused);
    assert_eq!((&*f.path, f.severity), ("encoder.*", Severity::Warning));
}
