//! Calculations that others printed, as scenarios: what they print, we compute, to the precision printed.

use serde_json::Value as Json;
use tui_transformer::program::Builder;
use tui_transformer::program::composite::{self, Shift};
use tui_transformer::scenario::syntax;
use tui_transformer::session::{self, Options, Session, view};
use tui_transformer::tensor::{Axis, Shape, Tensor, Value};
use tui_transformer::trace::{Bindings, run};

macro_rules! example {
    ($name:literal) => {
        serde_json::from_str::<Json>(include_str!(concat!("../data/worked_examples/", $name, ".json"))).expect("JSON")
    };
}

/// Numbers of a nested list, row-major.
fn flat(x: &Json) -> Vec<f64> {
    match x {
        Json::Array(rows) => rows.iter().flat_map(flat).collect(),
        other => vec![other.as_f64().expect("a number")],
    }
}

fn open(text: &str) -> Session {
    let scenario = syntax::read("example.ron", text).expect("a scenario");
    session::open(scenario, None, Options::default()).expect("opens")
}

fn values(s: &Session, path: &str, slice: &str) -> Vec<f64> {
    let view = view(s, 0, "", path, slice).expect("a place");
    let value = s.trace(0).expect("runs").value(view.node);
    view.cells.flats().map(|i| value.get(i)).collect()
}

fn near(what: &str, ours: &[f64], printed: &Json, tolerance: f64) {
    let printed = flat(printed);
    assert_eq!(ours.len(), printed.len(), "{what}");
    for (i, (ours, printed)) in ours.iter().zip(&printed).enumerate() {
        let far = (ours - printed).abs();
        assert!(far <= tolerance, "{what}[{i}]: {ours} for {printed}");
    }
}

/// An encoder of attention alone over the rows of `x`, which are its embedding table.
fn attention(x: &Json, settings: &str, weights: &str) -> Session {
    let rows = x.as_array().expect("rows").len();
    let ids: Vec<usize> = (0..rows).collect();
    let width = x[0].as_array().expect("a row").len();
    open(&format!(
        "(name: \"attention\", vocabulary: Size({rows}),
          model: (d_model: {width}, d_ff: 1, norm: (kind: None), output: (none: true),
                  encoder: (layers: [(has_ffn: false)]), {settings}),
          weights: (values: {{ \"embed.weight\": OutIn({x}), {weights} }}),
          source: (ids: [{ids:?}]), runs: [Encode()])"
    ))
}

fn weight(letter: &str, layout: &str, matrix: &Json) -> String {
    format!("\"encoder.0.self_attn.{letter}.weight\": {layout}({matrix}),")
}

const SELF: &str = "encoder.0.self_attn";

#[test]
fn single_head_scaled() {
    let e = example!("single_head_scaled");
    let w = &e["weights"];
    let weights: String = [("q", "W_Q"), ("k", "W_K"), ("v", "W_V")]
        .iter()
        .map(|(ours, theirs)| weight(ours, "InOut", &w[theirs]))
        .collect();
    let settings = "heads: 1, attention: (out_projection: false)";
    let s = attention(&e["inputs"]["X"], settings, &weights);
    for (path, printed, tolerance) in [
        ("q", &e["derived"]["Q"], 0.0),
        ("k", &e["derived"]["K"], 0.0),
        ("v", &e["derived"]["V"], 0.0),
        ("scores_raw", &e["expected"]["scores"], 0.0),
        ("weights", &e["expected"]["weights"], 1e-8),
        ("context", &e["expected"]["attention"], 1e-8),
    ] {
        let ours = values(&s, &format!("{SELF}.{path}"), "head=0");
        near(path, &ours, printed, tolerance);
    }
}

/// The source's heads are narrower than its input: W_O only has to bring them back to the width of the stream.
fn zeros(rows: usize, columns: usize) -> Json {
    serde_json::json!(vec![vec![0.0; columns]; rows])
}

#[test]
fn causal_multi_head() {
    let e = example!("causal_multi_head");
    let (x, w, printed) = (&e["inputs"]["X"], &e["weights"], &e["expected"]);
    let tolerance = 5.1e-5;
    let get = |s: &Session, path: &str, slice: &str| values(s, &format!("{SELF}.{path}"), slice);
    // (a) no weights at all: the identity, unscaled.
    let identity = serde_json::json!([[1, 0, 0], [0, 1, 0], [0, 0, 1]]);
    let weights: String = ["q", "k", "v"].iter().map(|l| weight(l, "OutIn", &identity)).collect();
    let settings = "heads: 1, attention: (scale: None, out_projection: false)";
    let s = attention(x, settings, &weights);
    for path in ["scores", "weights", "context"] {
        near(path, &get(&s, path, ""), &printed["a"][path], tolerance);
    }
    let three = |w: &Json, layout: &str| -> String {
        [("q", "W_query"), ("k", "W_key"), ("v", "W_value")]
            .iter()
            .map(|(ours, theirs)| weight(ours, layout, &w[theirs]))
            .collect()
    };
    // (b) one head of width 2.
    let weights = three(&w["b_W (x@W)"], "InOut") + &weight("o", "OutIn", &zeros(3, 2));
    let s = attention(x, "heads: 1, d_k: 2", &weights);
    let b = &printed["b"];
    near("query", &get(&s, "q", "head=0,token=1"), &b["query_2"], tolerance);
    let raw = get(&s, "scores_raw", "head=0,query=1");
    near("score", &raw[1..2], &b["score_22"], tolerance);
    near("scores", &raw, &b["scores_2"], tolerance);
    let weights = get(&s, "weights", "head=0,query=1");
    near("weights", &weights, &b["weights_2"], tolerance);
    near("context", &get(&s, "context", ""), &b["all_context"], tolerance);
    // (c) the same without and with a causal mask.
    let weights = three(&w["c_W (out,in)"], "OutIn") + &weight("o", "OutIn", &zeros(3, 2));
    let c = &printed["c"];
    let s = attention(x, "heads: 1, d_k: 2", &weights);
    near("weights", &get(&s, "weights", ""), &c["weights_unmasked"], tolerance);
    near("context", &get(&s, "context", ""), &c["context"], tolerance);
    let s = attention(x, "heads: 1, d_k: 2, attention: (causal: true)", &weights);
    near("causal", &get(&s, "weights", ""), &c["causal_weights"], tolerance);
    for (i, row) in c["masked_scores_lower"].as_array().expect("rows").iter().enumerate() {
        let raw = get(&s, "scores_raw", &format!("head=0,query={i}"));
        near("lower", &raw[..=i], row, tolerance);
        let masked = get(&s, "masked_scores", &format!("head=0,query={i}"));
        assert!(masked[i + 1..].iter().all(|x| *x == f64::NEG_INFINITY));
    }
    // (d) one causal head, then two side by side.
    let heads = w["d_heads (out,in)"].as_array().expect("heads");
    let both = |name: &str| {
        let all: Vec<&Json> = heads.iter().flat_map(|h| h[name].as_array().expect("rows")).collect();
        serde_json::json!(all)
    };
    let weights = three(&heads[0], "OutIn") + &weight("o", "OutIn", &zeros(3, 2));
    let s = attention(x, "heads: 1, d_k: 2, attention: (causal: true)", &weights);
    near("single", &get(&s, "concat", ""), &printed["d_single_causal"], tolerance);
    let joined = serde_json::json!({
        "W_query": both("W_query"), "W_key": both("W_key"), "W_value": both("W_value"),
    });
    let weights = three(&joined, "OutIn") + &weight("o", "OutIn", &zeros(3, 4));
    let s = attention(x, "heads: 2, d_k: 2, attention: (causal: true)", &weights);
    near("two heads", &get(&s, "concat", ""), &printed["d_two_heads"], tolerance);
    // (e) two heads of width 1 and an output projection of two rows; the stream's third column gets nothing.
    let e = &w["e (out,in)"];
    let mut rows = e["out_proj.weight"].as_array().expect("rows").clone();
    rows.push(serde_json::json!([0, 0]));
    let mut bias = e["out_proj.bias"].as_array().expect("a row").clone();
    bias.push(serde_json::json!(0));
    let weights = three(e, "OutIn")
        + &weight("o", "OutIn", &Json::from(rows))
        + &format!("\"{SELF}.o.bias\": Vector({}),", Json::from(bias));
    let settings = "heads: 2, d_k: 1, attention: (causal: true, out_bias: true)";
    let s = attention(x, settings, &weights);
    let out = get(&s, "out", "d_model=0..2");
    near("out", &out, &printed["e_mha_out"], tolerance);
}

/// A pre-LN layer over given rows: its first norm is the one in question.
fn normed(rows: &Json, norm: &str) -> Session {
    open(&format!(
        "(name: \"norm\", vocabulary: Size(2),
          model: (d_model: 6, heads: 1, d_ff: 1, norm: (position: Pre, affine: false, {norm}), output: (none: true),
                  encoder: (layers: [(has_ffn: false)])),
          weights: (values: {{ \"embed.weight\": OutIn({rows}) }}, init: [(with: Xavier)]),
          source: (ids: [[0, 1]]), runs: [Encode()])"
    ))
}

#[test]
fn layer_norm_biased_variance() {
    let e = example!("layer_norm_biased_variance");
    let (rows, printed) = (&e["inputs"]["out"], &e["expected"]);
    let at = |s: &Session, name: &str| values(s, &format!("encoder.0.norm1.{name}"), "");
    // The printed version: n − 1, no ε.
    let s = normed(rows, "unbiased: true, eps: 0");
    near("mean", &at(&s, "mean"), &printed["mean"], 5.1e-5);
    near("var", &at(&s, "var"), &printed["var_unbiased"], 5.1e-5);
    let normalised = &printed["normalized_with_unbiased_var_no_eps"];
    near("normalised", &at(&s, "out"), normalised, 5.1e-5);
    // The class: n, ε = 1e-5 inside the root.
    let s = normed(rows, "eps: 1e-5");
    let out = at(&s, "out");
    near("LayerNorm", &out, &e["derived"]["LayerNorm_biased_eps1e-5"], 1e-12);
    for (row, printed) in out.chunks(6).zip(flat(&printed["biased_var_of_LayerNorm_output"])) {
        let mean = row.iter().sum::<f64>() / 6.0;
        let var = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 6.0;
        assert!((var - printed).abs() < 2e-4, "{var} for {printed}");
    }
    // The ReLU layer before it, as a feed-forward network of the same widths would have it.
    let (x, w) = (&e["inputs"]["batch_example"], &e["weights"]);
    let s = open(&format!(
        "(name: \"relu\", vocabulary: Size(2),
          model: (d_model: 5, heads: 1, d_ff: 6, norm: (kind: None), ffn: (bias: true), output: (none: true),
                  encoder: (layers: [()])),
          weights: (values: {{ \"embed.weight\": OutIn({x}), \"encoder.0.ffn.w1.weight\": OutIn({}),
                               \"encoder.0.ffn.w1.bias\": Vector({}) }},
                    init: [(with: Constant(0))]),
          source: (ids: [[0, 1]]), runs: [Encode()])",
        w["linear.weight"], w["linear.bias"]
    ));
    near("relu", &values(&s, "encoder.0.ffn.act", ""), rows, 1e-7);
}

#[test]
fn pre_ln_block_two_tokens() {
    let e = example!("pre_ln_block_two_tokens");
    let (w, inputs) = (&e["weights"], &e["inputs"]);
    let square = |path: &str, name: &str| format!("\"{path}\": InOut({}),", w[name]);
    let s = open(&format!(
        "(name: \"block\", vocabulary: Size(2),
          model: (d_model: 4, heads: 1, d_ff: 4, positions: Learned(max_len: 2),
                  norm: (position: Pre, affine: false, eps: 0), output: (none: true), encoder: (layers: [()])),
          weights: (values: {{ \"embed.weight\": OutIn({}), \"embed.source.positions.weight\": OutIn({}),
                    {}{}{}{}{}{} }}),
          source: (ids: [[0, 1]]), runs: [Encode()])",
        inputs["word_rows"],
        inputs["seat_rows"],
        square("encoder.0.self_attn.q.weight", "W_Q (x@W)"),
        square("encoder.0.self_attn.k.weight", "W_K (x@W)"),
        square("encoder.0.self_attn.v.weight", "W_V (x@W)"),
        square("encoder.0.self_attn.o.weight", "W_O"),
        square("encoder.0.ffn.w1.weight", "W1 (x@W)"),
        square("encoder.0.ffn.w2.weight", "W2 (x@W)"),
    ));
    near("x", &values(&s, "embed.source.out", ""), &inputs["x"], 0.0);
    // Three decimals, and the source carried rounded numbers forward from the second half on.
    for (path, name, tolerance) in [
        ("norm1.out", "ln1", 5e-4),
        ("self_attn.q", "Q", 5e-4),
        ("self_attn.k", "K", 5e-4),
        ("self_attn.v", "V", 5e-4),
        ("self_attn.scores_raw", "raw_scores", 5e-4),
        ("self_attn.scores", "scaled_scores", 5e-4),
        ("self_attn.weights", "attention", 5e-4),
        ("self_attn.out", "attn_out", 1e-3),
        ("residual1", "stream", 1e-3),
        ("norm2.out", "ln2", 3e-3),
        ("ffn.hidden", "ffn_pre", 3e-3),
        ("ffn.act", "ffn_relu", 3e-3),
        ("ffn.out", "ffn_out", 3e-3),
        ("residual2", "out", 3e-3),
    ] {
        let ours = values(&s, &format!("encoder.0.{path}"), "");
        near(name, &ours, &e["expected"][name], tolerance);
    }
}

#[test]
fn post_ln_causal_block_exact() {
    let e = example!("post_ln_causal_block_exact");
    let identity = "OutIn([[1, 0], [0, 1]])";
    let weights = ["self_attn.q", "self_attn.k", "self_attn.v", "ffn.w1", "ffn.w2"]
        .iter()
        .map(|p| format!("\"decoder.0.{p}.weight\": {identity},"))
        .collect::<Vec<_>>()
        .concat();
    let s = open(&format!(
        "(name: \"exact\", vocabulary: Words([\"a\", \"b\", \"c\"]),
          model: (d_model: 2, heads: 1, d_ff: 2, positions: Learned(max_len: 2), norm: (affine: false, eps: 0),
                  attention: (scale: None, out_projection: false), output: (tied: true), decoder: (layers: [()])),
          weights: (values: {{ \"embed.weight\": OutIn({}), \"embed.target.positions.weight\": OutIn({}), {weights} }}),
          target: (text: [\"a b\"]), runs: [Training()])",
        e["weights"]["E"], e["inputs"]["positional"]
    ));
    let (first, second) = (&e["expected"]["pos0"], &e["derived"]["pos1"]);
    let tolerance = 1e-12;
    let row = |path: &str, token: usize| {
        let axis = if path.ends_with("weights") { "query" } else { "token" };
        values(&s, path, &format!("{axis}={token}"))
    };
    for (path, name) in [
        ("decoder.0.self_attn.out", "attn"),
        ("decoder.0.residual1", "residual1"),
        ("decoder.0.norm1.out", "ln1"),
        ("decoder.0.ffn.out", "mlp"),
        ("decoder.0.residual2", "residual2"),
        ("decoder.0.norm2.out", "ln2"),
        ("output.logits", "logits"),
    ] {
        near(name, &row(path, 0), &first[name], tolerance);
        near(name, &row(path, 1), &second[name], tolerance);
    }
    near("x", &row("embed.target.out", 0), &first["x"], 0.0);
    near("x", &row("embed.target.out", 1), &e["expected"]["pos1"]["x"], 0.0);
    near("mean", &row("decoder.0.norm2.mean", 0), &first["ln2_mean"], tolerance);
    near("var", &row("decoder.0.norm2.var", 0), &first["ln2_var"], tolerance);
    let scores = values(&s, "decoder.0.self_attn.scores", "head=0,query=1");
    near("scores", &scores, &e["expected"]["pos1"]["scores"], tolerance);
    let weights = row("decoder.0.self_attn.weights", 0);
    assert_eq!(weights, [1.0, 0.0]);
    near("softmax", &row("decoder.0.self_attn.weights", 1), &second["softmax"], tolerance);
    assert_eq!(values(&s, "output.argmax", "token=0"), [0.0], "{}", first["argmax"]);
}

/// Given logits, in which no model has a part: the composites.
#[test]
fn softmax_cross_entropy() {
    let e = example!("softmax_cross_entropy");
    let check = |logits: &Json, labels: &[i64]| {
        let mut b = Builder::new();
        let rows = labels.len();
        let shape = Shape::named(&[(Axis::Batch, 1), (Axis::Token, rows), (Axis::Vocab, 3)]);
        let x = b.parameter("logits", shape).expect("a new name");
        let probs = composite::softmax(&mut b, "probs", x, Shift::WhenNeeded, false).expect("builds");
        let loss = composite::cross_entropy(&mut b, "loss", x, probs, labels).expect("builds");
        tui_transformer::program::backward(&mut b, loss).expect("has gradients");
        let mut bindings: Bindings<f64> = Bindings::new();
        bindings.insert("logits".into(), Value::Float(Tensor::new(shape, flat(logits))));
        run(&std::sync::Arc::new(b.finish()), &bindings).expect("runs")
    };
    let at = |t: &tui_transformer::trace::Trace<f64>, path: &str| t.at(path).expect("recorded").float().data().to_vec();
    let target = e["inputs"]["target"].as_i64().expect("an id");
    let t = check(&e["inputs"]["logits"], &[target]);
    near("exp", &at(&t, "exp"), &e["expected"]["exp"], 5e-3);
    near("probs", &at(&t, "probs"), &e["expected"]["probs"], 6e-4);
    near("probs", &at(&t, "probs"), &e["derived"]["probs"], 1e-12);
    near("loss", &at(&t, "loss.mean"), &e["expected"]["loss"], 5e-3);
    near("loss", &at(&t, "loss.mean"), &e["expected"]["loss_8dp_in_other_authors_test"], 5e-9);
    near("dlogits", &at(&t, "grad.logits"), &e["derived"]["dlogits"], 1e-12);
    let two = &e["expected"]["batch2"];
    let labels: Vec<i64> = flat(&two["targets"]).iter().map(|&x| x as i64).collect();
    let t = check(&two["logits"], &labels);
    near("losses", &at(&t, "loss.per_position"), &two["losses"], 5e-9);
    near("mean", &at(&t, "loss.mean"), &two["mean"], 5e-9);
}
