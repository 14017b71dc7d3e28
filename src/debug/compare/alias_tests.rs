use std::sync::Arc;

use super::*;
use crate::model::config::ModelConfig;
use crate::model::params::VocabSizes;
use crate::model::{Forward, Sequences, forward};

const BERT: &str = "(d_model: 8, heads: 2, d_ff: 16, embedding: (token_types: 2, norm: true),
    positions: Learned(max_len: 16), attention: (qkv_bias: true, out_bias: true),
    ffn: (activation: Gelu, bias: true), output: (none: true), encoder: (layers: [(repeat: 2)]))";
const GPT2: &str = "(d_model: 8, heads: 2, d_ff: 32, positions: Learned(max_len: 16), norm: (position: Pre),
    attention: (qkv_bias: true, out_bias: true), ffn: (activation: GeluTanh, bias: true),
    output: (tied: true), decoder: (layers: [(repeat: 2)], final_norm: true))";
const LLAMA: &str = "(d_model: 16, heads: 4, kv_heads: 2, d_ff: 24, positions: Rotary(),
    norm: (kind: RmsNorm, position: Pre), ffn: (activation: Silu, gated: true),
    output: (tied: true), decoder: (layers: [(repeat: 2)], final_norm: true))";
const BART: &str = "(d_model: 8, heads: 2, d_ff: 16, attention: (qkv_bias: true, out_bias: true),
    ffn: (activation: Gelu, bias: true), output: (tied: true),
    encoder: (layers: [(repeat: 2)]), decoder: (layers: [(repeat: 2)]))";

fn program(config: &str) -> Arc<Program> {
    let config: ModelConfig = super::super::table::options().from_str(config).expect("a configuration");
    let ids = Sequences::one(vec![1, 2, 3]);
    let (program, _) = forward(&Forward {
        loss: &crate::model::loss::Loss::MeanCrossEntropy,
        config: &config,
        vocab: VocabSizes { source: 9, target: 9 },
        source: config.encoder.is_some().then_some(&ids),
        target: config.decoder.is_some().then_some(&ids),
        labels: None,
        training: false,
    })
    .expect("builds");
    Arc::new(program)
}

/// Paths that a name denotes, joined.
fn paths(program: &Program, own: Option<&Table>, name: &str) -> String {
    let targets = Resolver::new(program, own).resolve(name);
    let paths: Vec<&str> = targets.iter().map(|t| &*program.node(t.node).path).collect();
    paths.join(" ")
}

fn all(config: &str, wanted: &[(&str, &str)]) {
    let program = program(config);
    for (name, path) in wanted {
        assert_eq!(paths(&program, None, name), *path, "{name}");
    }
}

#[test]
fn our_own_paths_and_parts_of_the_model() {
    all(
        GPT2,
        &[
            ("decoder.1.self_attn.q", "decoder.1.self_attn.q"),
            ("activations.decoder.1.ffn.act", "decoder.1.ffn.act"),
            ("weights.decoder.1.ffn.w1.bias", "decoder.1.ffn.w1.bias"),
            ("gradients.decoder.1.ffn.act", ""),
            ("decoder.0", "decoder.0.residual2"),
            ("decoder.0.norm1", "decoder.0.norm1.out"),
            ("decoder", "decoder.final_norm.out"),
            ("embed.target", "embed.target.out"),
            ("no.such.path", ""),
        ],
    );
}

#[test]
fn hooks_of_transformer_lens() {
    all(
        GPT2,
        &[
            ("hook_embed", "embed.target.lookup"),
            ("hook_pos_embed", "embed.target.positions"),
            ("blocks.0.hook_resid_pre", "embed.target.out"),
            ("blocks.1.hook_resid_pre", "decoder.0.residual2"),
            ("blocks.0.ln1.hook_normalized", "decoder.0.norm1.out"),
            ("blocks.0.attn.hook_q", "decoder.0.self_attn.q"),
            ("blocks.0.attn.hook_attn_scores", "decoder.0.self_attn.masked_scores"),
            ("blocks.0.attn.hook_z", "decoder.0.self_attn.context"),
            ("blocks.0.hook_resid_mid", "decoder.0.residual1"),
            ("blocks.1.hook_resid_post", "decoder.1.residual2"),
            ("blocks.2.hook_resid_post", ""),
            ("ln_final.hook_scale", "decoder.final_norm.root"),
            ("blocks.0.mlp.W_in", "decoder.0.ffn.w1.weight"),
        ],
    );
    all(
        LLAMA,
        &[
            ("blocks.0.ln1.hook_normalized", "decoder.0.norm1.normalised"),
            ("blocks.0.attn.hook_rot_k", "decoder.0.self_attn.k_rotated"),
            ("blocks.0.mlp.hook_pre", "decoder.0.ffn.hidden"),
            ("blocks.0.mlp.hook_pre_linear", "decoder.0.ffn.gate"),
            ("blocks.0.mlp.W_in", "decoder.0.ffn.v1.weight"),
            ("blocks.0.mlp.W_gate", "decoder.0.ffn.w1.weight"),
        ],
    );
    all(
        BERT,
        &[
            // Nothing hides a key here.
            ("blocks.0.attn.hook_attn_scores", "encoder.0.self_attn.scores"),
            ("blocks.1.hook_resid_pre", "encoder.0.norm2.out"),
            ("blocks.1.hook_normalized_resid_post", "encoder.1.norm2.out"),
        ],
    );
}

#[test]
fn modules_and_outputs_of_hugging_face() {
    all(
        BERT,
        &[
            ("bert.embeddings.word_embeddings", "embed.source.lookup"),
            ("embeddings", "embed.source.out"),
            ("encoder.layer.1.attention.self.key", "encoder.1.self_attn.k"),
            ("encoder.layer.1.attention.self", "encoder.1.self_attn.concat"),
            ("encoder.layer.1.attention.output.dense", "encoder.1.self_attn.out"),
            ("encoder.layer.1.attention.output", "encoder.1.norm1.out"),
            ("encoder.layer.1.output", "encoder.1.norm2.out"),
            ("encoder.layer.0.output.LayerNorm.weight", "encoder.0.norm2.gamma"),
            ("encoder.layer.1.output.LayerNorm.in", "encoder.1.residual2"),
            ("hidden_states_0", "embed.source.out"),
            ("hidden_states_1", "encoder.0.norm2.out"),
            ("hidden_states_2", "encoder.1.norm2.out"),
            ("hidden_states_3", ""),
            ("attentions_0", "encoder.0.self_attn.weights"),
            ("input_ids", "embed.source.ids"),
            ("pooler.dense", ""),
        ],
    );
    all(
        GPT2,
        &[
            ("transformer.h.1.attn.c_attn", "decoder.1.self_attn.q decoder.1.self_attn.k decoder.1.self_attn.v"),
            ("h.0.mlp.c_fc", "decoder.0.ffn.hidden"),
            ("transformer.h.0", "decoder.0.residual2"),
            ("transformer.h.0.ln_1.in", "embed.target.out"),
            ("transformer.h.1.ln_1.in", "decoder.0.residual2"),
            ("transformer.ln_f.in", "decoder.1.residual2"),
            ("hidden_states_1", "decoder.0.residual2"),
            ("hidden_states_2", "decoder.final_norm.out"),
            ("input_ids", "embed.target.ids"),
            ("lm_head.weight", "embed.weight"),
            ("logits", "output.logits"),
        ],
    );
    all(
        LLAMA,
        &[
            ("model.layers.1.self_attn.k_proj", "decoder.1.self_attn.k"),
            ("model.layers.1.post_attention_layernorm", "decoder.1.norm2.out"),
            ("model.layers.1.mlp.gate_proj", "decoder.1.ffn.hidden"),
            ("model.layers.1.mlp.act_fn", "decoder.1.ffn.activated"),
            ("model.layers.1.mlp.up_proj", "decoder.1.ffn.gate"),
            ("model.norm", "decoder.final_norm.out"),
        ],
    );
    all(
        BART,
        &[
            ("model.encoder.layers.0.self_attn.q_proj", "encoder.0.self_attn.q"),
            ("model.decoder.layers.1.encoder_attn", "decoder.1.cross_attn.out"),
            ("model.decoder.layers.1.encoder_attn_layer_norm", "decoder.1.norm2.out"),
            ("model.decoder.layers.1.final_layer_norm", "decoder.1.norm3.out"),
            ("model.encoder.layers.1.final_layer_norm", "encoder.1.norm2.out"),
            ("model.decoder.layers.0", "decoder.0.norm3.out"),
            ("encoder_last_hidden_state", "encoder.1.norm2.out"),
            ("cross_attentions_1", "decoder.1.cross_attn.weights"),
            // torch.nn.Transformer.
            ("transformer.decoder.layers.1.multihead_attn", "decoder.1.cross_attn.out"),
            ("transformer.decoder.layers.1.linear1", "decoder.1.ffn.hidden"),
            (
                "encoder.layers.0.self_attn.in_proj_bias",
                "encoder.0.self_attn.q.bias encoder.0.self_attn.k.bias encoder.0.self_attn.v.bias",
            ),
        ],
    );
}

#[test]
fn later_calls_of_a_model_are_decoding_calls() {
    let loaded = crate::scenario::load(std::path::Path::new("gpt_block")).expect("a scenario");
    let session = crate::session::open(loaded.scenario, None, crate::session::Options::default()).expect("opens");
    let program = &session.runs[session.run_named("sample").expect("a run")].program;
    for (name, path) in [
        ("logits", "gen.0.output.logits"),
        ("transformer.h.0.mlp.c_fc#1", "gen.1.decoder.0.ffn.hidden"),
        ("hidden_states_1#2", "gen.2.decoder.final_norm.out"),
        ("gen.2.output.logits", "gen.2.output.logits"),
        ("logits#99", ""),
    ] {
        assert_eq!(paths(program, None, name), path, "{name}");
    }
}

#[test]
fn ones_own_table_goes_first() {
    let program = program(GPT2);
    let ron = r#"{
        "my.{L}.act": "decoder.{L}.ffn.act",
        "my.1.act": (path: "decoder.1.ffn.hidden"),
        "qk": [(path: "decoder.0.self_attn.q", layout: "b t (0/2 h d) -> b h t d"), (path: "decoder.0.self_attn.k")],
        "logits": "output.probs",
    }"#;
    let json = r#"{"my.{L}.act": "decoder.{L}.ffn.act", "my.1.act": {"path": "decoder.1.ffn.hidden"},
        "qk": [{"path": "decoder.0.self_attn.q", "layout": "b t (0/2 h d) -> b h t d"}, {"path": "decoder.0.self_attn.k"}],
        "logits": "output.probs"}"#;
    for (file, text) in [("names.ron", ron), ("names.json", json)] {
        let own = Table::read(file, text).expect("a table");
        for (name, path) in [
            ("my.0.act", "decoder.0.ffn.act"),
            ("my.1.act", "decoder.1.ffn.hidden"),
            ("qk", "decoder.0.self_attn.q decoder.0.self_attn.k"),
            ("logits", "output.probs"),
            ("lm_head", "output.logits"),
        ] {
            assert_eq!(paths(&program, Some(&own), name), path, "{file} {name}");
        }
        let laid = Resolver::new(&program, Some(&own)).resolve("qk");
        assert!(laid[0].layout.is_some() && laid[1].layout.is_none());
    }
    for (text, key) in [
        ("[1]", "compare.map.broken"),
        ("{\"a\": 1}", "compare.map.broken"),
        ("{\"a\": (path: \"b\", layout: \"b t\")}", "compare.layout.arrow"),
    ] {
        assert_eq!(Table::read("x.ron", text).expect_err(text).key, key, "{text}");
    }
}

#[test]
fn every_rule_of_every_table_finds_a_node_of_some_model() {
    // What only some models have besides: positions that are learned, and norms after the embedding, before and after.
    let more = BART
        .replace("attention:", "embedding: (norm: true, shared: false), positions: Learned(max_len: 9), attention:")
        .replace("output: (tied: true)", "output: (bias: true)")
        .replace("repeat: 2)]", "repeat: 2)], final_norm: true");
    let plain = GPT2.replace("tied: true", "bias: true");
    let pooled = BERT.replace("encoder:", "pooler: (activation: Tanh), encoder:");
    let untied = BERT.replace("layers: [(repeat: 2)]", "layers: [(repeat: 2)], final_norm: true");
    let programs: Vec<_> =
        [BERT, GPT2, LLAMA, BART, &more, &plain, &untied, &pooled].into_iter().map(program).collect();
    // Of a family, the names that its file lists; what follows from its tensors is looked for by comparing checkpoints.
    let listed = |name: &str| {
        let mut families = crate::checkpoint::family::embedded();
        families.any(|f| f.recorded.names.iter().any(|n| n.name == name))
    };
    for table in tables().iter().filter(|t| t.broad) {
        for rule in table.rules.iter().filter(|r| table.families.is_empty() || listed(&r.entry.name)) {
            let rest = if table.about == "paths" { "embed.target.ids" } else { "weight" };
            let name = rule.entry.name.replace("{L}", "1").replace("{N}", "2");
            let name = name.replace("{*}", rest);
            let found = programs.iter().any(|p| {
                let resolver = Resolver::new(p, None);
                let captures = rule.captures(&name);
                captures.is_some_and(|c| resolver.node(rule, &c, "").is_some())
            });
            let known_absent = ["loss.", "grad."];
            let absent = known_absent.iter().any(|k| rule.entry.path.starts_with(k));
            assert!(found || absent || rule.entry.path.is_empty(), "{}: {name} -> {}", table.about, rule.entry.path);
        }
    }
}
