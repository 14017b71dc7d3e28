//! What is wrong with a configuration, found before anything is built or allocated.

use super::config::{
    Algorithm, AttentionConfig, AttentionKind, ClassifierInput, ExpertsConfig, FfnConfig, LayerConfig, MaskFillConfig,
    ModelConfig, NormConfig, NormKind, NormPosition, Positions, QkNorm, RotaryScaling, Scale, StackConfig,
};
use super::heads::{embedding_width, head_width};
use super::params::{Outline, Shared, VocabSizes, resolve, weight_group};
use super::positions::positions_of;
use crate::program::Name;
use crate::text::Msg;

/// Something wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The field, such as `model.encoder.layers[1].kv_heads`.
    pub field: String,
    /// What is wrong.
    pub msg: Msg,
    /// How to fix it.
    pub help: Option<Msg>,
}

fn problem(field: impl Into<String>, msg: Msg) -> ConfigProblem {
    ConfigProblem { field: field.into(), help: msg.help(), msg }
}

/// Most layers of a stack, words of a vocabulary, width of anything, numbers of all parameters.
const MAX_LAYERS: usize = 10_000;
const MAX_WORDS: usize = 1 << 26;
const MAX_WIDTH: usize = 1 << 20;
const MAX_PARAMETERS: u128 = 1 << 33;

/// Everything wrong with `config`; empty where it can be built.
pub fn validate(config: &ModelConfig, vocab: VocabSizes) -> Vec<ConfigProblem> {
    let mut found = Vec::new();
    for (field, words) in [("vocabulary", vocab.source), ("target_vocabulary", vocab.target)] {
        if words == 0 || words > MAX_WORDS {
            found.push(problem(field, Msg::new("config.words").arg("value", words).arg("most", MAX_WORDS)));
            break;
        }
    }
    let mut width = |field: &str, value: usize| {
        if value == 0 || value > MAX_WIDTH {
            found.push(problem(
                format!("model.{field}"),
                Msg::new("config.width").arg("value", value).arg("most", MAX_WIDTH),
            ));
        }
    };
    width("d_model", config.d_model);
    width("heads", config.heads);
    width("d_ff", config.d_ff);
    if config.embedding.token_types > 0 {
        width("embedding.token_types", config.embedding.token_types);
    }
    for (field, value) in [("kv_heads", config.kv_heads), ("d_k", config.d_k), ("d_v", config.d_v)] {
        if let Some(value) = value {
            width(field, value);
        }
    }
    if config.encoder.is_none() && config.decoder.is_none() {
        found.push(problem("model", Msg::new("config.no_stack")));
    }
    norm(&mut found, "model.norm", &config.norm, config.d_model, unread_of_model(config));
    attention(&mut found, "model.attention", &config.attention);
    for (field, rate) in [
        ("embedding", config.dropout.embedding),
        ("attention", config.dropout.attention),
        ("sublayer", config.dropout.sublayer),
        ("ffn", config.dropout.ffn),
    ] {
        if !(0.0..1.0).contains(&rate) {
            found.push(problem(format!("model.dropout.{field}"), Msg::new("config.rate").arg("value", rate)));
        }
    }
    factors(&mut found, config);
    ffn(&mut found, "model.ffn", &config.ffn);
    if !found.is_empty() {
        return found;
    }
    heads(&mut found, config);
    let both = config.encoder.is_some() && config.decoder.is_some();
    if config.embedding.shared && both && vocab.source != vocab.target {
        found.push(problem(
            "model.embedding.shared",
            Msg::new("config.shared").arg("source", vocab.source).arg("target", vocab.target),
        ));
    }
    let stacks = [("encoder", &config.encoder), ("decoder", &config.decoder)];
    let stacks: Vec<_> = stacks.into_iter().filter_map(|(name, stack)| Some((name, stack.as_ref()?))).collect();
    // What looks at one layer after the other expands those of both stacks.
    for (name, stack) in &stacks {
        let layers = count(stack);
        if layers > MAX_LAYERS {
            let why = Msg::new("config.layers").arg("value", layers).arg("most", MAX_LAYERS);
            found.push(problem(format!("model.{name}.layers"), why));
            return found;
        }
    }
    for (name, stack) in stacks {
        self::stack(&mut found, config, name, stack);
    }
    positions(&mut found, config);
    if found.is_empty() {
        size(&mut found, config, vocab);
    }
    found
}

/// The first setting of a norm that its kind does not read, although it says something: no norm reads none of them, the
/// root of the mean square has no variance to make unbiased.
fn unread(kind: NormKind, (eps, eps_at, affine, unbiased): (bool, bool, bool, bool)) -> Option<&'static str> {
    let none = kind == NormKind::None;
    let fields = [
        ("eps", none && eps),
        ("eps_at", none && eps_at),
        ("affine", none && affine),
        ("unbiased", kind != NormKind::LayerNorm && unbiased),
    ];
    fields.into_iter().find(|f| f.1).map(|f| f.0)
}

/// What a model's norm says that no layer and no final norm reads.
fn unread_of_model(config: &ModelConfig) -> Option<&'static str> {
    let (n, usual) = (&config.norm, NormConfig::default());
    let stacks = [&config.encoder, &config.decoder];
    let layers = stacks.into_iter().flatten().flat_map(|s| &s.layers);
    // A layer of another kind takes its other settings from here.
    let others = layers.filter_map(|l| l.norm.as_ref()?.kind).any(|kind| kind != n.kind);
    let says = (n.eps != usual.eps, n.eps_at != usual.eps_at, n.affine != usual.affine, n.unbiased);
    if others { None } else { unread(n.kind, says) }
}

fn norm(found: &mut Vec<ConfigProblem>, at: &str, n: &NormConfig, d_model: usize, idle: Option<&'static str>) {
    if !(n.eps.is_finite() && n.eps >= 0.0) {
        found.push(problem(format!("{at}.eps"), Msg::new("config.eps").arg("value", n.eps)));
    }
    if let Some(field) = idle {
        let msg = Msg::new("config.norm_unread").arg("field", field).arg("kind", format!("{:?}", n.kind));
        found.push(problem(format!("{at}.{field}"), msg));
    }
    if n.unbiased && d_model == 1 && n.kind == NormKind::LayerNorm {
        found.push(problem(format!("{at}.unbiased"), Msg::new("config.unbiased")));
    }
}

/// Numbers that others are multiplied by, and widths next to d_model.
fn factors(found: &mut Vec<ConfigProblem>, config: &ModelConfig) {
    let e = &config.embedding;
    for (field, value) in [
        ("embedding.multiplier", e.multiplier),
        ("residual_multiplier", config.residual_multiplier),
        ("output.multiplier", config.output.multiplier),
        ("output.hidden_multiplier", config.output.hidden_multiplier),
    ] {
        if !(value.is_finite() && value != 0.0) {
            found.push(problem(format!("model.{field}"), Msg::new("config.factor").arg("value", value)));
        }
    }
    limit(found, "model.output.softcap", config.output.softcap);
    for (field, width) in
        [("embedding.width", e.width), ("classifier.labels", config.classifier.as_ref().map(|c| c.labels))]
    {
        if let Some(value) = width.filter(|w| *w == 0 || *w > MAX_WIDTH) {
            let msg = Msg::new("config.width").arg("value", value).arg("most", MAX_WIDTH);
            found.push(problem(format!("model.{field}"), msg));
        }
    }
}

/// A bound c of a range from −c to c.
fn limit(found: &mut Vec<ConfigProblem>, at: &str, c: Option<f64>) {
    if let Some(c) = c.filter(|c| !(c.is_finite() && *c > 0.0)) {
        found.push(problem(at, Msg::new("config.limit").arg("value", c)));
    }
}

/// What reads the last hidden states.
fn heads(found: &mut Vec<ConfigProblem>, config: &ModelConfig) {
    let o = &config.output;
    let changed = o.tied || o.bias || o.transform.is_some() || o.softcap.is_some();
    if o.none && (changed || o.multiplier != 1.0 || o.hidden_multiplier != 1.0) {
        found.push(problem("model.output", Msg::new("config.no_head")));
    }
    let (table, head) = (embedding_width(config), head_width(config));
    if o.tied && table != head {
        let msg = Msg::new("config.tied_width").arg("width", table).arg("d_model", head);
        found.push(problem("model.output.tied", msg));
    }
    if config.embedding.project_bias && config.embedding.width.is_none() {
        found.push(problem("model.embedding.project_bias", Msg::new("config.no_projection")));
    }
    if config.classifier.as_ref().is_some_and(|c| c.from == ClassifierInput::Pooled) && config.pooler.is_none() {
        found.push(problem("model.classifier.from", Msg::new("config.no_pooler")));
    }
}

fn ffn(found: &mut Vec<ConfigProblem>, at: &str, f: &FfnConfig) {
    limit(found, &format!("{at}.clamp"), f.clamp);
    if !f.linear_offset.is_finite() {
        let msg = Msg::new("config.scale").arg("value", f.linear_offset);
        found.push(problem(format!("{at}.linear_offset"), msg));
    }
    let field = if f.clamp.is_some() { "clamp" } else { "linear_offset" };
    if !f.gated && (f.clamp.is_some() || f.linear_offset != 0.0) {
        found.push(problem(format!("{at}.{field}"), Msg::new("config.not_gated")));
    }
}

fn attention(found: &mut Vec<ConfigProblem>, at: &str, a: &AttentionConfig) {
    limit(found, &format!("{at}.clip_qkv"), a.clip_qkv);
    limit(found, &format!("{at}.softcap"), a.softcap);
    if a.window == Some(0) {
        found.push(problem(format!("{at}.window"), Msg::new("config.window")));
    }
    if let Scale::By(c) = a.scale
        && !c.is_finite()
    {
        found.push(problem(format!("{at}.scale"), Msg::new("config.scale").arg("value", c)));
    }
    if let MaskFillConfig::Value(c) = a.fill {
        // −∞ has a name of its own; a masked score that is greater than others would be no mask.
        if !(c.is_finite() && c < 0.0) {
            found.push(problem(format!("{at}.fill"), Msg::new("config.fill").arg("value", c)));
        }
    }
    if a.out_bias && !a.out_projection {
        found.push(problem(format!("{at}.out_bias"), Msg::new("config.out_bias")));
    }
}

/// Layers of a stack.
fn count(stack: &StackConfig) -> usize {
    stack.layers.iter().try_fold(0usize, |n, l| n.checked_add(l.repeat)).unwrap_or(usize::MAX)
}

fn stack(found: &mut Vec<ConfigProblem>, config: &ModelConfig, name: &str, stack: &StackConfig) {
    let at = format!("model.{name}.layers");
    for (i, _) in stack.layers.iter().enumerate().filter(|(_, l)| l.repeat == 0) {
        found.push(problem(format!("{at}[{i}].repeat"), Msg::new("config.no_layers")));
    }
    let layers = count(stack);
    for (i, l) in stack.layers.iter().enumerate() {
        layer(found, config, name, &format!("{at}[{i}]"), l);
    }
    shared_tables(found, config, name);
    let each = stack.weight_group_layers.unwrap_or(1);
    if each == 0 || !layers.is_multiple_of(each) || each > 1 && stack.weight_groups.is_none() {
        let field = format!("model.{name}.weight_group_layers");
        found.push(problem(field, Msg::new("config.weight_group_layers").arg("value", each).arg("layers", layers)));
        return;
    }
    if let Some(groups) = stack.weight_groups {
        let field = format!("model.{name}.weight_groups");
        if groups == 0 || groups > (layers / each).max(1) {
            let msg = Msg::new("config.weight_groups").arg("value", groups).arg("layers", layers / each);
            found.push(problem(field, msg));
            return;
        }
        let r = resolve(config);
        let all = if name == "encoder" { &r.encoder } else { &r.decoder };
        // The layer before that has the same weights.
        let shared = |i: usize| weight_group(i, all.len(), Shared::of(stack));
        if (each..all.len()).any(|i| shared(i) == shared(i - each) && all[i] != all[i - each]) {
            found.push(problem(field, Msg::new("config.weight_groups_differ")));
        }
    }
}

/// Layers that share a table of distances agree on its size.
fn shared_tables(found: &mut Vec<ConfigProblem>, config: &ModelConfig, name: &str) {
    if !found.is_empty() {
        return;
    }
    let r = resolve(config);
    let layers = if name == "encoder" { &r.encoder } else { &r.decoder };
    let mut sizes = layers.iter().filter_map(|l| match positions_of(&config.positions, l) {
        p @ Positions::Relative { shared: true, .. } => Some((p, l.heads)),
        _ => None,
    });
    let first = sizes.next();
    if sizes.any(|s| Some(s) != first) {
        found.push(problem(format!("model.{name}.layers"), Msg::new("config.relative_shared")));
    }
}

fn layer(found: &mut Vec<ConfigProblem>, config: &ModelConfig, side: &str, at: &str, l: &LayerConfig) {
    let field = |own: bool, name: &str| {
        if own { format!("{at}.{name}") } else { format!("model.{name}") }
    };
    let heads = l.heads.unwrap_or(config.heads);
    let widths = [("heads", Some(heads)), ("kv_heads", l.kv_heads), ("d_k", l.d_k), ("d_v", l.d_v), ("d_ff", l.d_ff)];
    for (name, value) in widths {
        if let Some(value) = value.filter(|v| *v == 0 || *v > MAX_WIDTH) {
            let msg = Msg::new("config.width").arg("value", value).arg("most", MAX_WIDTH);
            found.push(problem(format!("{at}.{name}"), msg));
            return;
        }
    }
    let d_k = l.d_k.or(config.d_k);
    if d_k.is_none() && !config.d_model.is_multiple_of(heads) {
        found.push(problem(
            field(l.heads.is_some(), "heads"),
            Msg::new("config.heads").arg("heads", heads).arg("d_model", config.d_model),
        ));
        return;
    }
    let kv = l.kv_heads.or(config.kv_heads).unwrap_or(heads);
    if kv > heads || !heads.is_multiple_of(kv) {
        found.push(problem(
            field(l.kv_heads.is_some(), "kv_heads"),
            Msg::new("config.kv_heads").arg("kv_heads", kv).arg("heads", heads),
        ));
    }
    if let Some(n) = &l.norm {
        let whole = n.over(&config.norm);
        let says = (n.eps.is_some(), n.eps_at.is_some(), n.affine.is_some(), n.unbiased == Some(true));
        let idle = unread(whole.kind, says);
        norm(found, &format!("{at}.norm"), &whole, config.d_model, idle);
    }
    let n = l.norm.clone().unwrap_or_default().over(&config.norm);
    if !n.on_attention && n.position != NormPosition::Pre {
        found.push(problem(field(l.norm.is_some(), "norm.on_attention"), Msg::new("config.on_attention")));
    }
    if n.position.parallel() && side == "decoder" && config.encoder.is_some() && l.cross_attention.unwrap_or(true) {
        found.push(problem(field(l.norm.is_some(), "norm.position"), Msg::new("config.parallel_cross")));
    }
    if let Some(f) = &l.ffn {
        ffn(found, &format!("{at}.ffn"), &f.over(&config.ffn));
    }
    let a = l.attention.clone().unwrap_or_default().over(&config.attention);
    if l.attention.is_some() {
        attention(found, &format!("{at}.attention"), &a);
    }
    let d_k = d_k.unwrap_or(config.d_model / heads);
    let d_v = l.d_v.or(config.d_v).unwrap_or(d_k);
    if !a.projections && a.biases().contains(&true) {
        found.push(problem(field(l.attention.is_some(), "attention.qkv_bias"), Msg::new("config.qkv_bias")));
    }
    if !a.out_projection && heads * d_v != config.d_model && !stands_alone(config, side, l) {
        found.push(problem(
            field(l.attention.is_some(), "attention.out_projection"),
            Msg::new("config.out_projection")
                .arg("heads", heads)
                .arg("d_v", d_v)
                .arg("width", heads * d_v)
                .arg("d_model", config.d_model),
        ));
    }
    let wide = Layer { at, own: l.attention.is_some(), own_d_k: l.d_k.is_some(), heads, kv, d_k };
    in_attention(found, config, &wide, &a);
    let f = l.ffn.clone().unwrap_or_default().over(&config.ffn);
    if let Some(c) = &f.experts {
        experts(found, &field(l.ffn.is_some(), "ffn.experts"), c);
    }
    if side == "encoder" && l.cross_attention == Some(true)
        || l.cross_attention == Some(true) && config.encoder.is_none()
    {
        found.push(problem(format!("{at}.cross_attention"), Msg::new("config.cross_attention")));
    }
}

/// Whether nothing follows the attention of a layer, so that its output may have a width of its own.
fn stands_alone(config: &ModelConfig, side: &str, l: &LayerConfig) -> bool {
    let stack = if side == "encoder" { &config.encoder } else { &config.decoder };
    let other = if side == "encoder" { &config.decoder } else { &config.encoder };
    let norm = l.norm.clone().unwrap_or_default().over(&config.norm);
    let one = stack.as_ref().is_some_and(|s| s.layers.len() == 1 && !s.final_norm) && l.repeat == 1;
    let nothing = !l.residual && !l.has_ffn && norm.kind == NormKind::None && config.output.none;
    one && nothing && other.is_none() && config.pooler.is_none() && config.classifier.is_none()
}

/// A layer that is checked.
struct Layer<'a> {
    at: &'a str,
    /// Whether it has attention settings, and a `d_k`, of its own.
    own: bool,
    own_d_k: bool,
    heads: usize,
    kv: usize,
    d_k: usize,
}

/// Positions inside attention, latents, and what linear attention has no place for.
fn in_attention(found: &mut Vec<ConfigProblem>, config: &ModelConfig, l: &Layer<'_>, a: &AttentionConfig) {
    let field = |own: bool, name: &str| if own { format!("{}.{name}", l.at) } else { format!("model.{name}") };
    let positions = a.positions.as_ref().unwrap_or(&config.positions);
    let own = a.positions.is_some();
    let root = if own { field(l.own, "attention.positions") } else { "model.positions".to_owned() };
    let mut rotating = None;
    match positions {
        Positions::Rotary { dim, scaling, base, .. } => {
            let turning = a.latent.as_ref().map_or(dim.unwrap_or(l.d_k), |c| c.rope);
            rotating = Some(turning);
            if !turning.is_multiple_of(2) || turning == 0 || turning > l.d_k {
                let name = if a.latent.is_some() {
                    field(l.own, "attention.latent.rope")
                } else if dim.is_some() {
                    format!("{root}.dim")
                } else {
                    field(l.own_d_k, "d_k")
                };
                if found.iter().all(|p| p.field != name) {
                    found.push(problem(name, Msg::new("config.rotary").arg("dim", turning).arg("d_k", l.d_k)));
                }
            }
            self::scaling(found, &format!("{root}.scaling"), scaling, turning);
            if own && !(base.is_finite() && *base > 0.0) {
                found.push(problem(format!("{root}.base"), Msg::new("config.base").arg("value", base)));
            }
        }
        Positions::Sinusoidal { .. } | Positions::Learned { .. } if own => {
            found.push(problem(root.clone(), Msg::new("config.layer_positions")));
        }
        Positions::Relative { buckets, max_distance, .. } => {
            let fits = *buckets >= 4 && buckets % 2 == 0 && max_distance > buckets && *max_distance <= MAX_WIDTH;
            if !fits && found.iter().all(|p| p.field != root) {
                let msg = Msg::new("config.relative").arg("buckets", buckets).arg("distance", max_distance);
                found.push(problem(root.clone(), msg));
            }
        }
        _ => {}
    }
    algorithm(found, config, &field(l.own, "attention.algorithm"), a);
    let biased = matches!(positions, Positions::Alibi { .. } | Positions::Relative { .. });
    if a.kind == AttentionKind::Linear && (biased || a.softcap.is_some() || a.sinks) {
        found.push(problem(field(l.own, "attention.kind"), Msg::new("config.linear")));
    }
    let Some(c) = &a.latent else {
        return;
    };
    for (name, value) in [("kv_rank", Some(c.kv_rank)), ("q_rank", c.q_rank), ("rope", Some(c.rope))] {
        if let Some(value) = value.filter(|v| *v == 0 || *v > MAX_WIDTH) {
            let msg = Msg::new("config.width").arg("value", value).arg("most", MAX_WIDTH);
            found.push(problem(field(l.own, &format!("attention.latent.{name}")), msg));
        }
    }
    let fits = l.kv == l.heads && a.qk_norm == QkNorm::None && a.clip_qkv.is_none() && c.rope < l.d_k;
    if !fits && rotating.is_none_or(|r| r <= l.d_k) {
        found.push(problem(field(l.own, "attention.latent"), Msg::new("config.latent").arg("d_k", l.d_k)));
    }
}

/// What attention in pieces cannot be.
fn algorithm(found: &mut Vec<ConfigProblem>, config: &ModelConfig, at: &str, a: &AttentionConfig) {
    if found.iter().any(|p| p.field == at) {
        return;
    }
    let softmax = a.kind == AttentionKind::Softmax && !a.sinks;
    match a.algorithm {
        Algorithm::Plain => {}
        Algorithm::Tiled { queries, keys } => {
            if queries == 0 || keys == 0 {
                let msg = Msg::new("config.tile").arg("queries", queries).arg("keys", keys);
                found.push(problem(at, msg));
            } else if !softmax || config.dropout.attention > 0.0 {
                found.push(problem(at, Msg::new("config.tiled")));
            }
        }
        Algorithm::Banded => {
            if !softmax || a.window.is_none() || a.fill != MaskFillConfig::NegInfinity {
                found.push(problem(at, Msg::new("config.banded")));
            }
        }
    }
}

fn scaling(found: &mut Vec<ConfigProblem>, at: &str, s: &RotaryScaling, rotating: usize) {
    if found.iter().any(|p| p.field == at) {
        return;
    }
    if let Some(value) = s.wrong() {
        found.push(problem(at, Msg::new("config.rotary_scaling").arg("value", value)));
    } else if let RotaryScaling::LongRope { short, long, .. } = s
        && (short.len() != rotating / 2 || long.len() != rotating / 2)
    {
        let msg = Msg::new("config.long_rope").arg("pairs", rotating / 2);
        found.push(problem(at, msg.arg("short", short.len()).arg("long", long.len())));
    }
}

/// Most experts of a mixture.
const MAX_EXPERTS: usize = 4096;

fn experts(found: &mut Vec<ConfigProblem>, at: &str, c: &ExpertsConfig) {
    if found.iter().any(|p| p.field.starts_with(at)) {
        return;
    }
    let widths = [("d_ff", c.d_ff, MAX_WIDTH), ("shared_d_ff", c.shared_d_ff, MAX_WIDTH)];
    for (name, value, most) in widths.into_iter().chain([("count", Some(c.count), MAX_EXPERTS)]) {
        if let Some(value) = value.filter(|v| *v == 0 || *v > most) {
            let msg = Msg::new("config.width").arg("value", value).arg("most", most);
            found.push(problem(format!("{at}.{name}"), msg));
            return;
        }
    }
    if c.groups == 0 || !c.count.is_multiple_of(c.groups) || c.top_groups == 0 || c.top_groups > c.groups {
        let msg = Msg::new("config.expert_groups").arg("count", c.count).arg("groups", c.groups);
        found.push(problem(format!("{at}.groups"), msg.arg("top", c.top_groups)));
        return;
    }
    let reachable = c.count / c.groups * c.top_groups;
    if c.top_k == 0 || c.top_k > reachable {
        let msg = Msg::new("config.top_k").arg("value", c.top_k).arg("most", reachable);
        found.push(problem(format!("{at}.top_k"), msg));
    }
    if !(c.multiplier.is_finite() && c.multiplier != 0.0) {
        found.push(problem(format!("{at}.multiplier"), Msg::new("config.factor").arg("value", c.multiplier)));
    }
    if c.shared_gate && c.shared_d_ff.is_none() {
        found.push(problem(format!("{at}.shared_gate"), Msg::new("config.no_shared_expert")));
    }
}

fn positions(found: &mut Vec<ConfigProblem>, config: &ModelConfig) {
    match config.positions {
        Positions::Learned { max_len, .. } if max_len == 0 || max_len > MAX_WIDTH => {
            let msg = Msg::new("config.width").arg("value", max_len).arg("most", MAX_WIDTH);
            found.push(problem("model.positions.max_len", msg));
        }
        Positions::Learned { max_len, offset, skip_padding } if offset >= max_len || skip_padding && offset == 0 => {
            let msg = Msg::new("config.position_offset").arg("value", offset).arg("max_len", max_len);
            found.push(problem("model.positions.offset", msg));
        }
        Positions::Sinusoidal { base, .. } | Positions::Rotary { base, .. } if !(base.is_finite() && base > 0.0) => {
            found.push(problem("model.positions.base", Msg::new("config.base").arg("value", base)));
        }
        // Layers tell it better, where there are any.
        Positions::Rotary { dim: Some(dim), .. }
            if (dim % 2 != 0 || dim == 0 || dim > MAX_WIDTH)
                && found.iter().all(|p| p.field != "model.positions.dim") =>
        {
            let msg = Msg::new("config.rotary").arg("dim", dim);
            found.push(problem("model.positions.dim", msg.arg("d_k", dim)));
        }
        _ => {}
    }
}

/// Numbers of all parameters together: those of one layer of each group, as often as it is repeated.
fn size(found: &mut Vec<ConfigProblem>, config: &ModelConfig, vocab: VocabSizes) {
    let outline = match Outline::new(config, vocab) {
        Ok(outline) => outline,
        Err(why) => {
            let msg = match why.too_many {
                Some(n) => Msg::new("config.size").arg("value", format!("> {n}")).arg("most", MAX_PARAMETERS),
                None => Msg::new("scenario.build").arg("why", why),
            };
            found.push(problem("model", msg));
            return;
        }
    };
    let times = |path: &str| outline.layer(Name::parse(path).site).map_or(1, |l| l.1);
    let all: u128 = outline.program.parameters().map(|s| s.shape.len() as u128 * times(&s.path)).sum();
    if all > MAX_PARAMETERS {
        found.push(problem("model", Msg::new("config.size").arg("value", all).arg("most", MAX_PARAMETERS)));
    }
}
