//! The reference variants (computed by PyTorch in float64) as models and as scenario files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use tui_transformer::model::config::{
    Activation, EmbeddingConfig, EpsAt, LayerConfig, ModelConfig, NormConfig, NormKind, NormPosition, PairLayout,
    Positions, RotaryScaling, StackConfig,
};
use tui_transformer::tensor::{Shape, Tensor};

/// The case of the same name in the folder `REFERENCES`, where there is one: references of another seed or of other
/// settings, as `REFERENCES=DIR WRITE_SCENARIOS=1 cargo test --test reference --test reference_scenarios` checks them.
pub fn case(shipped: &Path) -> PathBuf {
    match std::env::var_os("REFERENCES") {
        Some(folder) => Path::new(&folder).join(shipped.file_name().expect("a file")),
        None => shipped.to_owned(),
    }
}

/// The project's [`ModelConfig`] for a reference's configuration.
pub fn model(c: &Json) -> ModelConfig {
    let n = |k: &str| c[k].as_u64().map(|n| n as usize);
    let yes = |k: &str| c[k].as_bool().unwrap_or(false);
    let stack = |k: &str| {
        let layers = n(k).unwrap_or(0);
        let group = LayerConfig { repeat: layers, ..LayerConfig::default() };
        (layers > 0).then(|| StackConfig {
            layers: vec![group],
            final_norm: yes("final_norm"),
            weight_groups: None,
            weight_group_layers: None,
        })
    };
    let mut config: ModelConfig = serde_json::from_value(serde_json::json!({
        "d_model": c["d_model"], "heads": c["heads"], "d_k": c["d_k"], "d_v": c["d_v"], "d_ff": c["d_ff"],
    }))
    .expect("a configuration");
    config.kv_heads = n("kv_heads");
    config.embedding = EmbeddingConfig { shared: false, scale: yes("embedding_scale"), ..EmbeddingConfig::default() };
    config.positions = match c["positions"].as_str() {
        Some("sinusoidal") => Positions::Sinusoidal { layout: PairLayout::Interleaved, base: 10_000.0 },
        Some("learned") => {
            Positions::Learned { max_len: n("max_len").expect("a length"), offset: 0, skip_padding: false }
        }
        Some("rope") => Positions::Rotary {
            layout: PairLayout::Halves,
            base: c["rope_base"].as_f64().expect("a base"),
            dim: None,
            scaling: RotaryScaling::None,
        },
        other => panic!("positions {other:?}"),
    };
    config.norm = NormConfig {
        kind: if c["norm"] == "rms" { NormKind::RmsNorm } else { NormKind::LayerNorm },
        position: if c["norm_position"] == "pre" { NormPosition::Pre } else { NormPosition::Post },
        eps: c["norm_eps"].as_f64().expect("a number"),
        eps_at: if c["norm"] == "layer_eps_outside" { EpsAt::BesideSigma } else { EpsAt::InsideRoot },
        ..NormConfig::default()
    };
    config.attention.qkv_bias = yes("attention_bias");
    config.attention.out_bias = yes("attention_bias");
    config.attention.window = n("window");
    config.ffn.activation = match c["activation"].as_str() {
        Some("relu") => Activation::Relu,
        Some("gelu") => Activation::Gelu,
        Some("gelu_tanh") => Activation::GeluTanh,
        Some("silu") => Activation::Silu,
        other => panic!("activation {other:?}"),
    };
    config.ffn.gated = yes("gated");
    config.ffn.bias = yes("ffn_bias");
    config.output.tied = yes("tied_output");
    config.encoder = stack("encoder_layers");
    config.decoder = stack("decoder_layers");
    config.output.none = config.decoder.is_none();
    config
}

/// Numbers of a tensor of a safetensors file.
pub fn numbers(view: &safetensors::tensor::TensorView<'_>) -> Tensor<f64> {
    let data: Vec<f64> =
        view.data().chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("8 bytes"))).collect();
    Tensor::new(Shape::new(view.shape()), data)
}

/// The scenario file of a reference: its configuration and inputs, with weights read from its safetensors.
pub fn scenario(json: &Json) -> String {
    let c = &json["config"];
    let n = |k: &str| c[k].as_u64();
    let yes = |k: &str| c[k].as_bool().unwrap_or(false);
    let name = json["name"].as_str().expect("a name");
    let mut t = String::from("(\n");
    let line = |t: &mut String, text: String| writeln!(t, "{text}").expect("a string grows");
    line(&mut t, format!("    name: {name:?},"));
    line(&mut t, format!("    vocabulary: Size({}),", c["vocab"]));
    line(&mut t, "    model: (".to_owned());
    let widths = ["d_model", "heads", "kv_heads", "d_k", "d_v", "d_ff"];
    let widths: Vec<String> = widths.iter().filter_map(|k| n(k).map(|v| format!("{k}: {v}"))).collect();
    line(&mut t, format!("        {},", widths.join(", ")));
    let scale = yes("embedding_scale");
    line(&mut t, format!("        embedding: (shared: false, scale: {scale}),"));
    let positions = match c["positions"].as_str() {
        Some("sinusoidal") => "Sinusoidal()".to_owned(),
        Some("learned") => format!("Learned(max_len: {})", c["max_len"]),
        Some("rope") => format!("Rotary(layout: Halves, base: {})", c["rope_base"]),
        other => panic!("positions {other:?}"),
    };
    line(&mut t, format!("        positions: {positions},"));
    let (kind, eps_at) = match c["norm"].as_str() {
        Some("rms") => ("RmsNorm", "InsideRoot"),
        Some("layer") => ("LayerNorm", "InsideRoot"),
        Some("layer_eps_outside") => ("LayerNorm", "BesideSigma"),
        other => panic!("norm {other:?}"),
    };
    let position = if c["norm_position"] == "pre" { "Pre" } else { "Post" };
    let eps = &c["norm_eps"];
    line(&mut t, format!("        norm: (kind: {kind}, position: {position}, eps: {eps}, eps_at: {eps_at}),"));
    let bias = yes("attention_bias");
    let window = n("window").map_or(String::new(), |w| format!(", window: {w}"));
    line(&mut t, format!("        attention: (qkv_bias: {bias}, out_bias: {bias}{window}),"));
    let activation = match c["activation"].as_str() {
        Some("relu") => "Relu",
        Some("gelu") => "Gelu",
        Some("gelu_tanh") => "GeluTanh",
        Some("silu") => "Silu",
        other => panic!("activation {other:?}"),
    };
    let (gated, bias) = (yes("gated"), yes("ffn_bias"));
    line(&mut t, format!("        ffn: (activation: {activation}, gated: {gated}, bias: {bias}),"));
    let (tied, none) = (yes("tied_output"), n("decoder_layers").unwrap_or(0) == 0);
    line(&mut t, format!("        output: (tied: {tied}, none: {none}),"));
    for stack in ["encoder", "decoder"] {
        let layers = n(&format!("{stack}_layers")).unwrap_or(0);
        if layers > 0 {
            let norm = yes("final_norm");
            line(&mut t, format!("        {stack}: (layers: [(repeat: {layers})], final_norm: {norm}),"));
        }
    }
    line(&mut t, "    ),".to_owned());
    line(&mut t, format!("    weights: (files: [(path: \"{name}.safetensors\", prefix: \"weights.\")]),"));
    let inputs = &json["inputs"];
    for side in ["source", "target"] {
        let ids = &inputs[format!("{side}_ids")];
        if ids.is_array() {
            let mask = &inputs[format!("{side}_mask")];
            let real = if mask.is_array() { format!(", real: {mask}") } else { String::new() };
            line(&mut t, format!("    {side}: (ids: {ids}{real}),"));
        }
    }
    if inputs["labels"].is_array() {
        line(&mut t, format!("    labels: Ids({}),", inputs["labels"]));
    }
    let run = if none { "Encode()" } else { "Training()" };
    line(&mut t, format!("    runs: [{run}],"));
    t.push_str(")\n");
    t
}
