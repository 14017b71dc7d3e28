//! What the axes of recorded tensors are: found from the ids that the model read, and from names of attention.

use super::{ModuleName, Recorded, Recording};
use crate::tensor::{Axis, DType, Shape, Value};

/// The ids that a recorded model read, `[batch][token]`.
pub type InputIds = Vec<Vec<i64>>;

/// Most ids that are labels.
const MAX_IDS: usize = 1 << 20;

/// Lengths that a model read.
#[derive(Clone, Copy, Debug, Default)]
struct Lengths {
    batch: Option<usize>,
    /// Tokens of the encoder (or of the only stack), and of the decoder.
    tokens: [Option<usize>; 2],
}

impl Lengths {
    fn is_token(&self, n: usize) -> bool {
        self.tokens.contains(&Some(n))
    }
}

/// Names the axes of every tensor.
pub fn name_axes(recording: &mut Recording) {
    let lengths = lengths(recording);
    for tensor in &mut recording.tensors {
        tensor.shape = named(tensor, &lengths);
    }
}

impl Recording {
    /// The ids that the model read; `None` where it has none of this name, or too many.
    pub fn input_ids(&self, name: &str) -> Option<InputIds> {
        let tensor = self.find(name).filter(|t| t.dtype() == DType::Int && t.shape.len() <= MAX_IDS)?;
        let Value::Int(ids) = tensor.read::<f64>()? else { return None };
        let tokens = *tensor.shape.dims().last()?;
        (tokens > 0 && tensor.shape.rank() <= 2).then(|| ids.data().chunks(tokens).map(<[i64]>::to_vec).collect())
    }
}

/// Lengths from the ids that were read, else from the shape of the first attention weights.
fn lengths(recording: &Recording) -> Lengths {
    let ids = |names: &[&str]| {
        let found = names.iter().find_map(|name| recording.find(name))?;
        match *found.shape.dims() {
            [tokens] => Some((1, tokens)),
            [batch, tokens] => Some((batch, tokens)),
            _ => None,
        }
    };
    let source = ids(&["input_ids", "ids", "tokens", "src", "source_ids"]);
    let target = ids(&["decoder_input_ids", "tgt", "target_ids"]);
    let mut out = Lengths { batch: source.or(target).map(|l| l.0), tokens: [source, target].map(|l| Some(l?.1)) };
    if source.is_none() && target.is_none() {
        let mut shown = recording.tensors.iter().filter(|t| is_attention(&t.name));
        let four = |t: &Recorded| <[usize; 4]>::try_from(t.shape.dims()).ok();
        if let Some([batch, _, queries, keys]) = shown.find_map(four) {
            out = Lengths { batch: Some(batch), tokens: [Some(keys), Some(queries)] };
        }
    }
    out
}

/// Whether a name is one that frameworks give to attention weights, or to what they are made of.
fn is_attention(name: &str) -> bool {
    let bare = ModuleName::of(name).bare.to_lowercase();
    let last = ModuleName::of(&bare).last();
    let numbered = last.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    matches!(numbered, "attentions" | "cross_attentions" | "encoder_attentions" | "decoder_attentions")
        || bare.contains("att")
            && matches!(
                last,
                "weights"
                    | "scores"
                    | "scores_raw"
                    | "masked_scores"
                    | "attn_weights"
                    | "attention_probs"
                    | "attn_probs"
                    | "pattern"
                    | "hook_pattern"
                    | "hook_attn_scores"
                    | "attn_scores"
                    | "attn_dropout"
                    | "dropout"
                    | "softmax"
            )
}

fn named(tensor: &Recorded, lengths: &Lengths) -> Shape {
    use Axis::{Batch, DK, DModel, Head, In, Key, Out, Query, Token, Vocab};
    let shape = tensor.shape;
    let last = ModuleName::of(&tensor.name).last();
    let batch = |n: usize| lengths.batch.is_none_or(|b| b == n);
    let token = |n: usize| lengths.is_token(n);
    let attention = is_attention(&tensor.name);
    let width = if matches!(last, "logits" | "lm_head") { Vocab } else { DModel };
    let axes: &[Axis] = match *shape.dims() {
        [b, _, q, k] if batch(b) && (attention || token(q) && token(k)) => &[Batch, Head, Query, Key],
        [b, _, t, _] if batch(b) && token(t) => &[Batch, Head, Token, DK],
        [b, t, _, _] if batch(b) && token(t) => &[Batch, Token, Head, DK],
        [_, q, k] if attention && token(q) && token(k) => &[Head, Query, Key],
        [b, t, _] if batch(b) && token(t) => &[Batch, Token, width],
        [t, b, _] if lengths.batch == Some(b) && token(t) => &[Token, Batch, width],
        [_, _] if matches!(last, "weight" | "in_proj_weight") && tensor.dtype() == DType::Float => &[Out, In],
        [b, t] if batch(b) && token(t) => &[Batch, Token],
        [t, _] if token(t) => &[Token, width],
        [t] if token(t) && last != "bias" => &[Token],
        _ => return shape,
    };
    shape.with_axes(axes)
}
