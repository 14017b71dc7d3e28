//! Values worked out by hand, errors with their places, and text of all kinds.

use std::collections::HashMap;

use proptest::prelude::*;
use rstest::rstest;

use super::{Array, Expr, Fault, NameFault, Scope};
use crate::tensor::{Axis, Shape};
use crate::text::Lang;

#[derive(Default)]
struct Table {
    names: HashMap<&'static str, Array>,
    it: Option<Array>,
    before: Option<Array>,
}

impl Scope for Table {
    fn named(&self, name: &str) -> Result<Array, NameFault> {
        match self.names.get(name) {
            Some(x) => Ok(x.clone()),
            None if name == "later" => Err(NameFault::NotYet),
            None => Err(NameFault::Unknown(None)),
        }
    }
    fn it(&self) -> Option<Array> {
        self.it.clone()
    }
    fn before(&self) -> Option<Array> {
        self.before.clone()
    }
}

fn array(dims: &[(Axis, usize)], data: &[f64]) -> Array {
    Array::new(Shape::named(dims), data.to_vec())
}

fn table() -> Table {
    let m = array(&[(Axis::Query, 2), (Axis::Key, 3)], &[0.5, 0.5, 0.0, 0.25, 0.25, 0.5]);
    let heads = array(&[(Axis::Head, 2), (Axis::Token, 2), (Axis::DK, 2)], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    let names = [
        ("A1", m.clone()),
        ("encoder.0.self_attn.q", heads),
        ("v", array(&[(Axis::Other, 3)], &[3.0, -4.0, 0.0])),
        ("bad", array(&[(Axis::Other, 4)], &[f64::NAN, f64::INFINITY, 1.0, 0.0])),
        ("loss", Array::scalar(1.4325)),
        ("∂L/∂W", Array::scalar(2.0)),
        ("h'", Array::scalar(7.0)),
    ];
    let before = array(&[(Axis::Query, 2), (Axis::Key, 3)], &[0.5, 0.5, 0.0, 0.25, 0.25, 0.25]);
    Table { names: names.into(), it: Some(m), before: Some(before) }
}

fn eval(text: &str) -> Result<Array, super::ExprError> {
    Expr::parse(text)?.eval(&table())
}

#[rstest]
// Arithmetic and how tightly it binds.
#[case("1 + 2 * 3", 7.0)]
#[case("(1 + 2) * 3", 9.0)]
#[case("2 ^ 3 ^ 2", 512.0)]
#[case("-2 ^ 2", -4.0)]
#[case("2 ** -1", 0.5)]
#[case("7 - 2 - 1", 4.0)]
#[case("1e-6 * 1E6", 1.0)]
#[case(".5 + 1.", 1.5)]
#[case("6 × 2 − 2 / 4", 11.5)]
#[case("-inf", f64::NEG_INFINITY)]
// Places.
#[case("A1[0,1]", 0.5)]
#[case("A1[0][1]", 0.5)]
#[case("A1[-1, -1]", 0.5)]
#[case("A1[key=2, query=1]", 0.5)]
#[case("A1[1 - 1, argmax(A1[1,:])]", 0.0)]
#[case("encoder.0.self_attn.q[1,0,1]", 6.0)]
#[case("loss", 1.4325)]
#[case("\"∂L/∂W\" + h'", 9.0)]
// Functions, as such and as methods.
#[case("max(v)", 3.0)]
#[case("min(v)", -4.0)]
#[case("mean(v)", -1.0 / 3.0)]
#[case("sum(abs(v))", 7.0)]
#[case("norm(v)", 5.0)]
#[case("var(v[0..2])", 12.25)]
#[case("std(v[:2])", 3.5)]
#[case("argmax(v)", 0.0)]
#[case("zeros(A1)", 1.0 / 6.0)]
#[case("nan(bad)", 1.0)]
#[case("inf(bad)", 1.0)]
#[case("argmax(bad)", 0.0)]
#[case("count(A1)", 6.0)]
#[case("count(A1 > 0.2)", 5.0)]
#[case("count(A1 > 9)", 0.0)]
#[case("count(A1 = 0.25, axis=key)[1]", 2.0)]
#[case("A1[0,:].sum()", 1.0)]
#[case("A1[0,:].max()", 0.5)]
#[case("entropy(A1[0,:])", std::f64::consts::LN_2)]
#[case("entropy(A1)[1]", 1.5 * std::f64::consts::LN_2)]
#[case("row_sum(A1)[1]", 1.0)]
#[case("A1.T[2,1]", 0.5)]
#[case("A1.T.sum()", 2.0)]
#[case("(A1[1,:]).T.max()", 0.5)]
#[case("encoder.0.self_attn.q.sum()", 36.0)]
#[case("encoder.0.self_attn.q.T[0,1,0]", 2.0)]
#[case("shape(encoder.0.self_attn.q)[2]", 2.0)]
#[case("softmax(v)[2]", 0.047_384_713_149_342)]
#[case("exp(ln(2))", 2.0)]
#[case("sum(A1, axis=key)[1]", 1.0)]
#[case("A1.max(axis=0)[2]", 0.5)]
#[case("A1.max(axis=-2)[2]", 0.5)]
#[case("max(v, 0)[1]", 0.0)]
// Shapes put together.
#[case("sum(A1 - A1[0,:])", 0.0)]
#[case("sum(A1 * v)", 3.0 * 0.75 - 4.0 * 0.75)]
#[case("sum(v + encoder.0.self_attn.q[:, :, 0:1])", 3.0 * 16.0 - 4.0)]
#[case("(A1 @ v)[0]", -0.5)]
#[case("v @ v", 25.0)]
#[case("(A1 @ A1.T)[0,1]", 0.25)]
#[case("(encoder.0.self_attn.q @ encoder.0.self_attn.q.T)[1,1,0]", 83.0)]
#[case("(v[0:2] @ encoder.0.self_attn.q)[1,1]", 3.0 * 6.0 - 4.0 * 8.0)]
// True and false.
#[case("1 + 1 = 2", 1.0)]
#[case("0.1 + 0.2 == 0.3", 0.0)]
#[case("0.1 + 0.2 = 0.3 ± 1e-12", 1.0)]
#[case("0.1 + 0.2 = 0.3 +- 1e-12", 1.0)]
#[case("0.1 + 0.2 != 0.3 +/- 0.1", 0.0)]
#[case("-inf = -inf ± 1", 1.0)]
#[case("max(bad) != 1", 1.0)]
#[case("max(bad) > 1", 0.0)]
#[case("not 1 < 2 or 2 < 1 and 1 < 2", 0.0)]
#[case("!(1 > 2) && 3 ≥ 3", 1.0)]
#[case("any(A1 > 0.4)", 1.0)]
#[case("all(A1 > 0.4)", 0.0)]
// About `it`.
#[case("max", 0.5)]
#[case("zeros", 1.0 / 6.0)]
#[case("it.sum()", 2.0)]
#[case("any nan", 0.0)]
#[case("any inf or max < 1", 1.0)]
#[case("sum(it - before)", 0.25)]
#[case("any(changed)", 1.0)]
#[case("changed[1,2]", 1.0)]
#[case("changed[1,1]", 0.0)]
fn worked_out(#[case] text: &str, #[case] wanted: f64) {
    let found = eval(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let x = found.number().unwrap_or_else(|| panic!("{text}: {found:?}"));
    assert!((x - wanted).abs() < 1e-12 || x == wanted, "{text}: {x}");
}

#[test]
fn nan_is_not_a_number_but_the_largest() {
    assert!(eval("max(bad)").unwrap().number().unwrap().is_nan());
    assert!(eval("entropy(v)").unwrap().number().unwrap().is_nan());
    assert!(eval("0 / 0").unwrap().number().unwrap().is_nan());
    assert_eq!(eval("argmax(A1)").unwrap().to_vec(), [0.0, 0.0]);
    assert_eq!(eval("shape(A1)").unwrap().to_vec(), [2.0, 3.0]);
}

#[test]
fn slices_keep_their_axes_and_indices_drop_them() {
    let shape = |text: &str| eval(text).unwrap().shape().to_string();
    assert_eq!(shape("A1[0..1]"), "[query 1, key 3]");
    assert_eq!(shape("A1[:, 1]"), "[query 2]");
    assert_eq!(shape("A1[key=1..]"), "[query 2, key 2]");
    assert_eq!(shape("A1.T"), "[key 3, query 2]");
    assert_eq!(shape("A1 - v"), "[query 2, key 3]");
    assert_eq!(eval("encoder.0.self_attn.q[:,1,..]").unwrap().to_vec(), [3.0, 4.0, 7.0, 8.0]);
}

/// Where an error points, and what it says.
#[rstest]
#[case("A1[0,1", 6, Fault::Syntax, "ends too early")]
#[case("max(abs(v)", 10, Fault::Syntax, "ends too early")]
#[case("maks(v)", 0, Fault::Name, "no function `maks`")]
#[case("v.maks()", 2, Fault::Name, "no function `maks`")]
#[case("1 + B1", 4, Fault::Name, "nothing is called `B1`")]
#[case("1 + later", 4, Fault::NotYet, "not computed yet")]
#[case("v[3]", 2, Fault::Value, "outside the axis of length 3")]
#[case("v[-4]", 2, Fault::Value, "outside")]
#[case("v[0.5]", 2, Fault::Value, "whole number")]
#[case("v[2..1]", 2, Fault::Value, "takes nothing")]
#[case("v[0,0]", 4, Fault::Value, "more indices than axes")]
#[case("A1[haed=0]", 3, Fault::Syntax, "no axis called `haed`")]
#[case("A1[head=0]", 3, Fault::Value, "no axis `head`")]
#[case("A1[key=0,key=1]", 9, Fault::Value, "stands twice")]
#[case("A1 + v[0..2]", 0, Fault::Value, "do not fit cell by cell")]
#[case("v @ A1", 0, Fault::Value, "matrix product")]
#[case("1 @ v", 0, Fault::Value, "matrix product")]
#[case("0 < v < 1", 6, Fault::Syntax, "cannot be chained")]
#[case("v = nan", 4, Fault::Syntax, "nothing equals NaN")]
#[case("v > 1 ± 2", 2, Fault::Syntax, "= and !=")]
#[case("v = 1 ± -2", 8, Fault::Value, "tolerance")]
#[case("v and 1 = 1", 0, Fault::Syntax, "not something true or false")]
#[case("any(v)", 4, Fault::Value, "not something true or false")]
#[case("A1.shape", 0, Fault::Name, "nothing is called `A1.shape`")]
#[case("A1[0].shape", 6, Fault::Syntax, "no `.shape`")]
#[case("1x", 0, Fault::Syntax, "`1x` is not a number")]
#[case("v # 1", 2, Fault::Syntax, "`#` means nothing")]
#[case("\"v", 0, Fault::Syntax, "never closed")]
#[case("1 2", 2, Fault::Syntax, "left over")]
#[case("", 0, Fault::Syntax, "ends too early")]
#[case("sum(v, v)", 3, Fault::Syntax, "at most 1")]
#[case("abs(v, axis=0)", 7, Fault::Syntax, "takes no axis")]
#[case("sum(v, axis=1)", 12, Fault::Value, "no axis")]
fn errors_point_at_the_place(#[case] text: &str, #[case] at: usize, #[case] fault: Fault, #[case] says: &str) {
    let e = eval(text).expect_err(text);
    assert_eq!((e.at.start, e.fault), (at, fault), "{text}: {e}");
    assert!(e.to_string().contains(says), "{text}: {e}");
}

#[test]
fn carets_stand_under_wide_characters_and_help_names_the_nearest() {
    let text = "水 + meen(v)";
    let e = Expr::parse(text).unwrap_err();
    let lines = e.lines(text, Lang::En);
    assert_eq!(
        lines,
        ["column 5: there is no function `meen`", "  水 + meen(v)", "       ^^^^", "did you mean `mean`?"]
    );
    assert!(e.lines(text, Lang::Zh)[0].contains("第 5 列"));
}

#[test]
fn depth_and_size_have_limits() {
    let deep = format!("{}1{}", "(".repeat(3000), ")".repeat(1000));
    assert!(Expr::parse(&deep).is_err());
    for long in ["1+".repeat(2000) + "1", "-".repeat(4000) + "1", "not ".repeat(900) + "1 = 1"] {
        assert!(Expr::parse(&long).unwrap_err().to_string().contains("nested"));
    }
    assert!(Expr::parse(&"v[0]".repeat(1000)).is_err());
    assert!(Expr::parse(&"1 ".repeat(4000)).is_err());
    let mut t = table();
    let column = Array::new(Shape::new(&[40_000, 1]), vec![1.0; 40_000]);
    t.names.insert("column", column);
    for text in ["column + column.T", "column @ column.T"] {
        let e = Expr::parse(text).unwrap().eval(&t).unwrap_err();
        assert!(e.to_string().contains("too large"), "{e}");
    }
    let fits = Expr::parse("(column.T @ column)[0,0]").unwrap();
    assert_eq!(fits.eval(&t).unwrap().number(), Some(40_000.0));
}

#[test]
fn a_condition_holds_where_any_cell_does_and_names_the_first() {
    let t = table();
    let holds = |text: &str| Expr::parse(text).unwrap().holds(&t);
    let hit = holds("it > 0.4").unwrap().expect("some");
    assert_eq!((hit.first, hit.count), (0, 3));
    assert_eq!(holds("row_sum != 1 ± 1e-6").unwrap(), None);
    assert_eq!(holds("max > 10").unwrap(), None);
    assert!(holds("max").is_err());
    let measured = Expr::parse("not row_sum != 1 or max > 3").unwrap();
    assert_eq!(measured.measured().unwrap().text(), "row_sum");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        if let Ok(e) = Expr::parse(&text) {
            let _ = e.eval(&table());
        }
    }

    #[test]
    fn any_mix_of_its_own_words_is_read_or_refused(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "A1", "v", "bad", "encoder.0.self_attn.q", "loss", "it", "before", "changed", "max", "argmax",
                "entropy", "softmax", "any", "all", "nan", "inf", "(", ")", "[", "]", ",", ":", "..", ".", ".T",
                "+", "-", "*", "/", "@", "^", "=", "!=", "<", "±", "+-", "and", "or", "not", "0", "1", "-1", "2.5",
                "1e308", "axis", "key", "head", "\"", " ", "水", "::",
            ]),
            0..24,
        ),
    ) {
        let text = words.concat();
        match Expr::parse(&text) {
            Ok(e) => {
                if let Err(e) = e.eval(&table()) {
                    prop_assert!(e.at.start <= text.chars().count());
                }
            }
            Err(e) => {
                prop_assert!(e.at.start <= text.chars().count());
                let _ = e.lines(&text, Lang::Zh);
            }
        }
    }
}
