//! Inputs that are vectors instead of tokens.

use super::{Msg, Problem, Token};
use crate::model::build::Qkv;
use crate::model::config::ModelConfig;
use crate::model::params::resolve;
use crate::scenario::schema::{Input, PadSide};

type Rows = [Vec<Vec<f64>>];

/// Numbers as they are given, sentence by sentence.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    vectors: Option<Vec<Vec<f64>>>,
    qkv: Option<Qkv>,
}

/// Whether an input is vectors.
pub(super) fn are_given(input: &Input) -> bool {
    !input.vectors.is_empty() || input.qkv.is_some()
}

/// Names the tokens `x1`, `x2`, … where vectors come without a text.
pub(super) fn name_tokens(at: &str, input: &Input, rows: &mut Vec<Vec<Token>>, found: &mut Vec<Problem>) {
    if !are_given(input) {
        return;
    }
    for (asked, field) in [(input.sos, "sos"), (input.eos, "eos")] {
        if asked {
            found.push(Problem::new(format!("{at}.{field}"), Msg::new("vectors.no_frame")));
        }
    }
    let given: &Rows = input.qkv.as_ref().filter(|_| input.vectors.is_empty()).map_or(&input.vectors, |g| &g.q);
    if rows.is_empty() {
        let token = |i: usize| Token { text: format!("x{}", i + 1), id: i as i64, unknown: false };
        rows.extend(given.iter().map(|s| (0..s.len()).map(token).collect()));
    }
    if let Some(i) = rows.iter().position(Vec::is_empty) {
        found.push(Problem::new(format!("{at}.vectors[{i}]"), Msg::new("scenario.no_tokens")));
    }
    let lengths = |of: &[usize]| of.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let (tokens, vectors): (Vec<usize>, Vec<usize>) =
        (rows.iter().map(Vec::len).collect(), given.iter().map(Vec::len).collect());
    if tokens != vectors {
        let msg = Msg::new("vectors.tokens").arg("tokens", lengths(&tokens)).arg("vectors", lengths(&vectors));
        found.push(Problem::new(format!("{at}.vectors"), msg));
    }
}

/// The numbers, checked: every vector as wide as it must be, and finite.
pub(super) fn given(
    at: &str,
    input: &Input,
    model: &ModelConfig,
    rows: &[Vec<Token>],
    found: &mut Vec<Problem>,
) -> Given {
    let mut out = Given::default();
    if !input.vectors.is_empty() {
        check(&format!("{at}.vectors"), &input.vectors, model.d_model, found);
        out.vectors = Some(input.vectors.iter().map(|s| s.concat()).collect());
    }
    let Some(all) = &input.qkv else { return out };
    let at = format!("{at}.qkv");
    let layers = resolve(model).encoder;
    let [layer] = &layers[..] else {
        found.push(Problem::new(at, Msg::new("vectors.one_layer").arg("layers", layers.len())));
        return out;
    };
    if layer.attention.projections {
        found.push(Problem::new(at.clone(), Msg::new("vectors.projections")));
    }
    if input.vectors.is_empty() && layer.residual {
        found.push(Problem::new(at.clone(), Msg::new("vectors.residual")));
    }
    let widths = [layer.heads * layer.d_k, layer.kv_heads * layer.d_k, layer.kv_heads * layer.d_v];
    for ((name, rows), width) in [("q", &all.q), ("k", &all.k), ("v", &all.v)].into_iter().zip(widths) {
        check(&format!("{at}.{name}"), rows, width, found);
    }
    let keys = all.k.first().map_or(0, Vec::len);
    let even = |of: &Rows, tokens: usize| of.len() == rows.len() && of.iter().all(|s| s.len() == tokens);
    let queries = rows.first().map_or(0, Vec::len);
    if keys == 0 || !even(&all.q, queries) || !even(&all.k, keys) || !even(&all.v, keys) {
        found.push(Problem::new(at, Msg::new("vectors.qkv_lengths")));
        return out;
    }
    let flat = |of: &Rows| of.iter().flatten().flatten().copied().collect();
    out.qkv = Some(Qkv { q: flat(&all.q), k: flat(&all.k), v: flat(&all.v), keys });
    out
}

fn check(at: &str, rows: &Rows, width: usize, found: &mut Vec<Problem>) {
    for (i, sentence) in rows.iter().enumerate() {
        for (j, x) in sentence.iter().enumerate() {
            if x.len() != width {
                let msg = Msg::new("vectors.width").arg("found", x.len()).arg("wanted", width);
                found.push(Problem::new(format!("{at}[{i}][{j}]"), msg));
                return;
            }
            if let Some(k) = x.iter().position(|x| !x.is_finite()) {
                found.push(Problem::new(format!("{at}[{i}][{j}][{k}]"), Msg::new("vectors.finite").arg("value", x[k])));
                return;
            }
        }
    }
}

/// The numbers with zeros where sentences are padded to `tokens`.
pub(super) fn padded(given: Given, width: usize, tokens: usize, side: PadSide) -> (Option<Vec<f64>>, Option<Qkv>) {
    let vectors = given.vectors.map(|sentences| {
        let pad = |mut s: Vec<f64>| {
            let missing = (tokens * width).saturating_sub(s.len());
            let at = if side == PadSide::Left { 0 } else { s.len() };
            s.splice(at..at, std::iter::repeat_n(0.0, missing));
            s
        };
        sentences.into_iter().flat_map(pad).collect()
    });
    (vectors, given.qkv)
}
