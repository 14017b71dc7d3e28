//! Every lint of attention, masks and labels against a fault put in on purpose: it names the place, and says nothing
//! else. Correct runs raise nothing.

use std::path::{Path, PathBuf};

use crate::common::lints::{Place, at, bare, edited, embedded, found, grave, looks_ahead, of, with_leaves};
use tui_transformer::debug::lints::Finding;
use tui_transformer::model::config::{MaskFillConfig, Scale};
use tui_transformer::program::{Leaf, Mask, reason};
use tui_transformer::scenario::lint::{Lint, Severity};
use tui_transformer::scenario::schema::Labels;
use tui_transformer::scenario::{EMBEDDED, load};
use tui_transformer::tensor::Precision;
use tui_transformer::text::Lang;

const BOTH: [Precision; 2] = [Precision::F64, Precision::F32];

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.map(|f| f.unwrap().path());
    files.filter(|p| p.extension().is_some_and(|e| e == "ron")).collect()
}

#[test]
fn correct_runs_raise_neither_error_nor_warning() {
    let mut seen = 0;
    let mut all: Vec<PathBuf> = EMBEDDED.iter().map(|e| e.0.into()).collect();
    all.extend(files("tests/data/good_scenarios"));
    all.extend(files("tests/data/reference"));
    for path in all {
        for precision in BOTH {
            let loaded = load(&path).unwrap_or_else(|d| panic!("{}", d.render(Lang::En)));
            let s = of(loaded.scenario, loaded.origin.as_deref(), Some(precision), |_| {});
            let found = found(&s);
            assert_eq!(grave(&found), [], "{} {precision:?}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 2 * (11 + 10 + 7));
}

#[test]
fn what_a_scenario_allows_is_a_remark() {
    let s = embedded("water_class", |_| {});
    let labels: Vec<Finding> = found(&s).into_iter().filter(|f| f.lint == Lint::LabelsUnshifted).collect();
    let [f] = &labels[..] else { panic!("{labels:?}") };
    assert!(f.allowed && f.severity == Severity::Info);
    assert_eq!(f.step(&s), Some(vec![89]));
    // In one run only.
    let mut allow = embedded("encoder_char", bare);
    assert_eq!(grave(&found(&allow)), []);
    allow.scenario.runs.swap(0, 1);
    allow.runs.swap(0, 1);
    allow.runs[0].name = "encode".into();
    allow.runs[1].name = "no_padding_mask".into();
    let leaks = grave(&found(&allow));
    assert!(leaks.iter().all(|l| l.0.starts_with("padding")) && !leaks.is_empty());
}

#[test]
fn labels() {
    for (labels, lint, word) in [
        (Labels::Unshifted, "labels_unshifted", "must predict once"),
        (Labels::Ids(vec![vec![3, 4, 5, 6, 3, -1, -1]]), "labels_shifted_twice", "must predict a"),
        (Labels::Ids(vec![vec![9, 9, 9, 1, 1, 1, 1]]), "labels_unrelated", "must predict could"),
    ] {
        let s = embedded("gpt_block", |s| {
            bare(s);
            // once upon a time there was a: 1 2 3 4 5 6 3
            s.target.as_mut().unwrap().text = vec!["once upon a time there was a".into()];
            s.labels = labels;
        });
        let found = found(&s);
        assert_eq!(grave(&found), [at(lint, "loss.labels", &[0, 0])]);
        let f = found.iter().find(|f| f.lint.id() == lint).unwrap();
        let msg = f.msg.render(Lang::En);
        assert!(msg.contains(word) && msg.contains("reads once"), "{msg}");
        let step = f.step(&s).unwrap();
        let steps = s.steps_of(0);
        let step = &steps.list()[steps.position(step[0]).unwrap()];
        assert!(step.views.iter().any(|v| Some(v.node) == f.node));
    }
}

#[test]
fn a_causal_mask_that_is_missing_or_off_by_one() {
    let s = embedded("gpt_block", |s| {
        bare(s);
        looks_ahead(s);
    });
    let missing = found(&s);
    assert_eq!(missing.iter().filter(|f| f.run == Some(0)).count(), 1);
    let f = &missing[0];
    assert_eq!((f.lint, f.count), (Lint::FutureAttention, 3 * 8 * 7 / 2));
    assert_eq!(f.path, "decoder.0.self_attn.weights");
    assert!(f.cell[3] > f.cell[2], "{:?}", f.cell);

    let s = embedded("gpt_block", bare);
    let tokens = 8;
    let off = |by: isize| {
        with_leaves(&s, 0, |leaf| match leaf {
            Leaf::Mask(_) => {
                let later = |i: usize| (i % tokens) as isize > (i / tokens) as isize + by;
                let reasons = (0..tokens * tokens).map(|i| u8::from(later(i))).collect();
                Some(Leaf::Mask(Mask { reasons }.into()))
            }
            _ => None,
        })
    };
    assert_eq!(grave(&off(0)), []);
    let late = off(1);
    let f = &late[0];
    assert_eq!((late.len(), f.lint), (1, Lint::FutureAttention));
    // Every query but the last sees one token too many, in each of three heads.
    assert_eq!(f.count, 3 * (tokens - 1));
    assert_eq!(f.cell[3], f.cell[2] + 1);
    let early = off(-1);
    let mask = "decoder.0.self_attn.mask";
    assert_eq!(
        grave(&early),
        [at("mask_too_strict", mask, &[0, 0]), at("fully_masked_row", "decoder.0.self_attn.weights", &[0, 0, 0, 0]),]
    );
}

#[test]
fn a_cell_of_a_mask_that_was_edited() {
    let s = embedded("gpt_block", bare);
    let mask = "decoder.0.self_attn.mask";
    let found = edited(&s, 0, &[(mask, &[3, 1], 1.0)]);
    assert_eq!(grave(&found), [at("mask_too_strict", mask, &[3, 1])]);
    let found = edited(&s, 0, &[(mask, &[3, 6], 0.0)]);
    let weights = "decoder.0.self_attn.weights";
    assert_eq!(found[0].count, 3);
    assert!(matches!(&found[0].cell[..], [0, _, 3, 6]));
    assert_eq!((found.len(), &*found[0].path), (1, weights));
}

#[test]
fn padding_masked_on_the_wrong_axis_or_not_at_all() {
    let s = embedded("encoder_char", bare);
    let shape = [2, 8, 8];
    let changed = |reasons: &dyn Fn(usize, usize, usize) -> u8| {
        with_leaves(&s, 0, |leaf| match leaf {
            Leaf::Mask(_) => {
                let place = |i: usize| (i / 64, i / 8 % 8, i % 8);
                let cells = (0..shape.iter().product()).map(place);
                let reasons = cells.map(|(b, q, k)| reasons(b, q, k)).collect();
                Some(Leaf::Mask(Mask { reasons }.into()))
            }
            _ => None,
        })
    };
    // <sos> 我 学 习 <eos> and three of padding, in the second sentence.
    let padded = |b: usize, i: usize| u8::from(b == 1 && i >= 5) * reason::PADDING;
    assert_eq!(grave(&changed(&|b, _, k| padded(b, k))), []);
    let on_queries = grave(&changed(&|b, q, _| padded(b, q)));
    for layer in 0..3 {
        let base = format!("encoder.{layer}.self_attn");
        // Real keys are hidden from padded queries, for no reason; real queries see padding.
        assert!(on_queries.contains(&at("mask_too_strict", &format!("{base}.mask"), &[1, 0, 5, 0])));
        let sees = |p: &&Place| p.0 == "padding_attention" && p.1 == format!("{base}.weights");
        let cell = &on_queries.iter().find(sees).unwrap().2;
        assert!(cell[0] == 1 && cell[2] < 5 && cell[3] >= 5, "{cell:?}");
    }
    let leaks: Vec<_> = on_queries.iter().filter(|p| p.0 == "padding_leak").collect();
    assert_eq!(leaks.len(), 1);
    assert!(leaks[0].1.starts_with("encoder.0.self_attn."));
    // The very first node in which a real row changes is reported.
    let missing = grave(&changed(&|_, _, _| 0));
    assert!(missing.contains(leaks[0]), "{missing:?}");
    assert!(missing.iter().all(|p| p.0.starts_with("padding_")));
}

#[test]
fn padding_of_the_source_in_cross_attention_and_of_the_target() {
    let s = embedded("encoder_decoder", bare);
    let none = |leaf: &Leaf| match leaf {
        // [2, 1, 6, 6] is self-attention of either side or cross-attention: padding is let through in all of them.
        Leaf::Mask(mask) => {
            let causal = |r: &u8| r & reason::CAUSAL;
            let reasons = mask.reasons.iter().map(causal).collect();
            Some(Leaf::Mask(Mask { reasons }.into()))
        }
        _ => None,
    };
    let found = grave(&with_leaves(&s, 0, none));
    for path in [
        "encoder.0.self_attn.weights",
        "encoder.1.self_attn.weights",
        "decoder.0.cross_attn.weights",
        "decoder.1.cross_attn.weights",
    ] {
        let of = |p: &&Place| p.0 == "padding_attention" && p.1 == path;
        let cell = &found.iter().find(of).unwrap_or_else(|| panic!("{path}")).2;
        // 她 睡 了 <eos> of the second sentence are real, what comes after is not.
        assert!(cell[0] == 1 && cell[3] >= 4, "{path} {cell:?}");
    }
    // Padding of the target follows all that is real there: the causal mask hides it as well.
    assert!(found.iter().all(|p| !p.1.contains("decoder.0.self_attn")));
    let leaks: Vec<_> = found.iter().filter(|p| p.0 == "padding_leak").collect();
    assert_eq!(leaks.len(), 1);
    assert!(leaks[0].1.starts_with("encoder.0.self_attn"));
}

#[test]
fn a_fill_that_leaves_something() {
    let s = embedded("gpt_block", |s| {
        bare(s);
        s.model.attention.fill = MaskFillConfig::Value(-8.0);
        s.model.attention.mask_by = ron::from_str("Adding").unwrap();
    });
    let found = found(&s);
    let f = &found[0];
    assert_eq!((f.lint, f.count), (Lint::MaskedWeight, 3 * 28));
    assert_eq!(f.path, "decoder.0.self_attn.weights");
    assert!(f.cell[3] > f.cell[2]);
    // Something of later tokens arrives: changing them shows it.
    let leak = found.iter().find(|f| f.lint == Lint::FutureLeak).unwrap();
    assert_eq!(leak.severity, Severity::Error);
    assert!(leak.path.starts_with("decoder.0.self_attn."), "{}", leak.path);
}

#[test]
fn scales() {
    for (scale, looks_like) in [
        (Scale::SqrtDModel, "multiplied by 1/√32;"),
        (Scale::None, "multiplied by 1;"),
        (Scale::By(0.125), "multiplied by 1/8;"),
        (Scale::By(0.3), "multiplied by 0.3;"),
    ] {
        let s = embedded("modern_decoder", |s| {
            bare(s);
            s.model.attention.scale = scale;
        });
        let found = found(&s);
        let scores = |l: usize| format!("decoder.{l}.self_attn.scores");
        let path = |l: usize| match scale {
            Scale::None => format!("decoder.{l}.self_attn.scores_raw"),
            _ => scores(l),
        };
        let wrong = |f: &&Finding| f.lint == Lint::AttentionScale && f.run == Some(0);
        let wrong: Vec<&Finding> = found.iter().filter(wrong).collect();
        assert_eq!(wrong.len(), 2, "{scale:?}");
        for (l, f) in wrong.iter().enumerate() {
            assert!(f.path.starts_with(&path(l)), "{}", f.path);
            let msg = f.msg.render(Lang::En);
            assert!(msg.contains(looks_like), "{msg}");
            assert!(msg.contains("8 wide, so 1/√8 = 0.353553"), "{msg}");
        }
        assert!(grave(&found).iter().all(|p| p.0 == "attention_scale"));
    }
}
