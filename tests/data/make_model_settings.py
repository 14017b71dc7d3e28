#!/usr/bin/env python3
"""Makes tests/data/model_settings/NAME.safetensors: tiny random models of transformers and what they compute.

usage: make_model_settings.py OUT [NAME …]

Each file has the weights under the names of this project, and under `ref.PATH` what transformers computes for the node
at PATH: hidden states, attention weights, logits (eager attention, float32). Its metadata has `model`, the settings in
RON, and `source` or `target`, the ids; `greedy` has the ids of a greedy continuation of six tokens, made without a cache.
"""
import os, sys, torch, transformers as tr
from safetensors.torch import save_file

V, D, H, KV, F, L, T = 24, 16, 4, 2, 28, 2, 7
dec = dict(vocab_size=V, hidden_size=D, num_hidden_layers=L, num_attention_heads=H, intermediate_size=F, max_position_embeddings=64)
kv = dict(num_key_value_heads=KV)
sp = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
bert = dict(vocab_size=V, hidden_size=D, num_hidden_layers=L, num_attention_heads=H, intermediate_size=F, max_position_embeddings=40)
seq = dict(vocab_size=V, d_model=D, encoder_layers=L, decoder_layers=2, encoder_attention_heads=H, decoder_attention_heads=H,
           encoder_ffn_dim=F, decoder_ffn_dim=F, max_position_embeddings=40)
def rope(kind, **k): return dict(rope_parameters={'rope_type': kind, 'rope_theta': 10000.0, **k})

def split(w, *sizes): return torch.split(w, list(sizes), 0)
def lin(t, ours, theirs, get, bias=None):
    t[ours + '.weight'] = get(theirs + '.weight')
    if bias is not False and get(theirs + '.bias', True) is not None: t[ours + '.bias'] = get(theirs + '.bias')
def nrm(t, ours, theirs, get):
    t[ours + '.gamma'] = get(theirs + '.weight')
    if get(theirs + '.bias', True) is not None: t[ours + '.beta'] = get(theirs + '.bias')

def llama_like(t, get, n=L, q='self_attn', norms=(('norm1', 'input_layernorm'), ('norm2', 'post_attention_layernorm')), ffn=True, prefix='model.layers', o='o_proj', names=('gate_proj', 'up_proj', 'down_proj'), mlp='mlp', own=()):
    for i in range(n):
        a, b = f'decoder.{i}', f'{prefix}.{i}'
        for x in 'qkv': lin(t, f'{a}.self_attn.{x}', f'{b}.{q}.{x}_proj', get)
        lin(t, f'{a}.self_attn.o', f'{b}.{q}.{o}', get)
        for ours, theirs in norms: nrm(t, f'{a}.{ours}', f'{b}.{theirs}', get)
        for ours, theirs in own: nrm(t, f'{a}.self_attn.{ours}', f'{b}.{q}.{theirs}', get)
        if ffn:
            for ours, theirs in zip(('w1', 'v1', 'w2') if len(names) == 3 else ('w1', 'w2'), names): lin(t, f'{a}.ffn.{ours}', f'{b}.{mlp}.{theirs}', get)

def common(t, get, final='model.norm', embed='model.embed_tokens', head='lm_head'):
    t['embed.weight'] = get(embed + '.weight')
    if final and get(final + '.weight', True) is not None: nrm(t, 'decoder.final_norm', final, get)
    if head: lin(t, 'output', head, get)

BASE = f'd_model: {D}, heads: {H}, d_ff: {F}'
RMS = 'norm: (kind: RmsNorm, position: Pre, eps: 1e-6)'
SWIGLU = 'ffn: (activation: Silu, gated: true)'
ROT = 'positions: Rotary(base: 10000.0)'
DEC = f'decoder: (layers: [(repeat: {L})], final_norm: true)'
CASES = {}
def case(f): CASES[f.__name__.rstrip('_')] = f; return f

@case
def llama3_scaling():
    def names(t, get): llama_like(t, get); common(t, get)
    return tr.LlamaForCausalLM(tr.LlamaConfig(**dec, **kv, head_dim=8, **rope('llama3', factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16))), names, \
        f'({BASE}, kv_heads: 2, d_k: 8, positions: Rotary(base: 10000.0, scaling: Llama3(factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original: 16)), {RMS}, {SWIGLU}, {DEC})'
@case
def yarn():
    def names(t, get): llama_like(t, get); common(t, get)
    return tr.LlamaForCausalLM(tr.LlamaConfig(**dec, **kv, head_dim=8, **rope('yarn', factor=4.0, original_max_position_embeddings=16))), names, \
        f'({BASE}, kv_heads: 2, d_k: 8, positions: Rotary(base: 10000.0, scaling: Yarn(factor: 4.0, original: 16)), {RMS}, {SWIGLU}, {DEC})'
@case
def dynamic():
    def names(t, get): llama_like(t, get); common(t, get)
    return tr.LlamaForCausalLM(tr.LlamaConfig(**{**dec, 'max_position_embeddings': 5}, **kv, head_dim=8, **rope('dynamic', factor=3.0))), names, \
        f'({BASE}, kv_heads: 2, d_k: 8, positions: Rotary(base: 10000.0, scaling: Dynamic(factor: 3.0, original: 5)), {RMS}, {SWIGLU}, {DEC})'
@case
def linear_scaling():
    def names(t, get): llama_like(t, get); common(t, get)
    return tr.LlamaForCausalLM(tr.LlamaConfig(**dec, **kv, head_dim=8, **rope('linear', factor=4.0))), names, \
        f'({BASE}, kv_heads: 2, d_k: 8, positions: Rotary(base: 10000.0, scaling: Linear(factor: 4.0)), {RMS}, {SWIGLU}, {DEC})'
@case
def gemma2():
    def names(t, get):
        llama_like(t, get, norms=(('norm1', 'input_layernorm'), ('post_norm1', 'post_attention_layernorm'), ('norm2', 'pre_feedforward_layernorm'), ('post_norm2', 'post_feedforward_layernorm')))
        common(t, get, head=None)
    return tr.Gemma2ForCausalLM(tr.Gemma2Config(**dec, **kv, head_dim=8, query_pre_attn_scalar=6, sliding_window=4, **sp)), names, \
        f'({BASE}, kv_heads: 2, d_k: 8, embedding: (scale: true), {ROT}, norm: (kind: RmsNorm, position: Sandwich, eps: 1e-6, unit_offset: true), attention: (scale: By({6 ** -0.5}), softcap: 50.0), ffn: (activation: GeluTanh, gated: true), output: (tied: true, softcap: 30.0), decoder: (layers: [(attention: (window: 4)), ()], final_norm: true))'
@case
def gemma3():
    def names(t, get):
        llama_like(t, get, norms=(('norm1', 'input_layernorm'), ('post_norm1', 'post_attention_layernorm'), ('norm2', 'pre_feedforward_layernorm'), ('post_norm2', 'post_feedforward_layernorm')), own=(('q_norm', 'q_norm'), ('k_norm', 'k_norm')))
        common(t, get, head=None)
    m = tr.Gemma3ForCausalLM(tr.Gemma3TextConfig(**dec, **kv, head_dim=8, query_pre_attn_scalar=8, sliding_window=4, layer_types=['sliding_attention', 'full_attention'], **sp))
    r = m.config.rope_parameters
    return m, names, \
        f'({BASE}, kv_heads: 2, d_k: 8, embedding: (scale: true), positions: Rotary(base: {r["full_attention"]["rope_theta"]}), norm: (kind: RmsNorm, position: Sandwich, eps: 1e-6, unit_offset: true), attention: (scale: By({8 ** -0.5}), qk_norm: PerHead), ffn: (activation: GeluTanh, gated: true), output: (tied: true), decoder: (layers: [(attention: (window: 4, positions: Rotary(base: {r["sliding_attention"]["rope_theta"]}))), ()], final_norm: true))'
@case
def olmo2():
    def names(t, get):
        llama_like(t, get, norms=(('norm1', 'post_attention_layernorm'), ('norm2', 'post_feedforward_layernorm')), own=(('q_norm', 'q_norm'), ('k_norm', 'k_norm')))
        common(t, get)
    return tr.Olmo2ForCausalLM(tr.Olmo2Config(**dec, **kv, **sp)), names, \
        f'({BASE}, kv_heads: 2, {ROT}, norm: (kind: RmsNorm, position: Output, eps: 1e-5), attention: (qk_norm: Full), {SWIGLU}, {DEC})'
@case
def olmo():
    def names(t, get): llama_like(t, get, norms=()); common(t, get, final=None)
    return tr.OlmoForCausalLM(tr.OlmoConfig(**dec, clip_qkv=0.5, **sp)), names, \
        f'({BASE}, {ROT}, norm: (kind: LayerNorm, position: Pre, eps: 1e-5, affine: false), attention: (clip_qkv: 0.5), {SWIGLU}, {DEC})'
@case
def phi():
    def names(t, get):
        llama_like(t, get, norms=(('norm1', 'input_layernorm'),), o='dense', names=('fc1', 'fc2')); common(t, get, final='model.final_layernorm')
    return tr.PhiForCausalLM(tr.PhiConfig(**{**dec, 'hidden_size': 32}, partial_rotary_factor=0.5)), names, \
        f'(d_model: 32, heads: {H}, d_ff: {F}, positions: Rotary(base: 10000.0, dim: 4), norm: (position: Parallel), attention: (qkv_bias: true, out_bias: true), ffn: (activation: GeluTanh, bias: true), output: (bias: true), {DEC})'
@case
def neox():
    def names(t, get):
        for i in range(L):
            a, b = f'decoder.{i}', f'gpt_neox.layers.{i}'
            for kind in ('weight', 'bias'):
                w = get(f'{b}.attention.query_key_value.{kind}'); s = w.shape
                w = w.reshape(H, 3, D // H, *s[1:])
                for j, x in enumerate('qkv'): t[f'{a}.self_attn.{x}.{kind}'] = w[:, j].reshape(D, *s[1:])
            lin(t, f'{a}.self_attn.o', f'{b}.attention.dense', get)
            nrm(t, f'{a}.norm1', f'{b}.input_layernorm', get); nrm(t, f'{a}.norm2', f'{b}.post_attention_layernorm', get)
            lin(t, f'{a}.ffn.w1', f'{b}.mlp.dense_h_to_4h', get); lin(t, f'{a}.ffn.w2', f'{b}.mlp.dense_4h_to_h', get)
        common(t, get, final='gpt_neox.final_layer_norm', embed='gpt_neox.embed_in', head='lm_head')
    return tr.GPTNeoXForCausalLM(tr.GPTNeoXConfig(**dec, rotary_pct=0.5, bos_token_id=0, eos_token_id=0)), names, \
        f'({BASE}, positions: Rotary(base: 10000.0, dim: 2), norm: (position: ParallelNorms), attention: (qkv_bias: true, out_bias: true), ffn: (activation: Gelu, bias: true), {DEC})'
@case
def gptj():
    def names(t, get):
        for i in range(L):
            a, b = f'decoder.{i}', f'transformer.h.{i}'
            for x in 'qkv': lin(t, f'{a}.self_attn.{x}', f'{b}.attn.{x}_proj', get)
            lin(t, f'{a}.self_attn.o', f'{b}.attn.out_proj', get); nrm(t, f'{a}.norm1', f'{b}.ln_1', get)
            lin(t, f'{a}.ffn.w1', f'{b}.mlp.fc_in', get); lin(t, f'{a}.ffn.w2', f'{b}.mlp.fc_out', get)
        common(t, get, final='transformer.ln_f', embed='transformer.wte')
    return tr.GPTJForCausalLM(tr.GPTJConfig(vocab_size=V, n_embd=D, n_layer=L, n_head=H, n_inner=F, n_positions=64, rotary_dim=2, bos_token_id=0, eos_token_id=0)), names, \
        f'({BASE}, positions: Rotary(layout: Interleaved, base: 10000.0, dim: 2), norm: (position: Parallel), ffn: (activation: GeluTanh, bias: true), output: (bias: true), {DEC})'
@case
def bloom():
    def names(t, get):
        for i in range(L):
            a, b = f'decoder.{i}', f'transformer.h.{i}'
            for kind in ('weight', 'bias'):
                w = get(f'{b}.self_attention.query_key_value.{kind}'); s = w.shape
                w = w.reshape(H, 3, D // H, *s[1:])
                for j, x in enumerate('qkv'): t[f'{a}.self_attn.{x}.{kind}'] = w[:, j].reshape(D, *s[1:])
            lin(t, f'{a}.self_attn.o', f'{b}.self_attention.dense', get)
            nrm(t, f'{a}.norm1', f'{b}.input_layernorm', get); nrm(t, f'{a}.norm2', f'{b}.post_attention_layernorm', get)
            lin(t, f'{a}.ffn.w1', f'{b}.mlp.dense_h_to_4h', get); lin(t, f'{a}.ffn.w2', f'{b}.mlp.dense_4h_to_h', get)
        common(t, get, final='transformer.ln_f', embed='transformer.word_embeddings', head=None)
        nrm(t, 'embed.target.norm', 'transformer.word_embeddings_layernorm', get)
    return tr.BloomForCausalLM(tr.BloomConfig(vocab_size=V, hidden_size=D, n_layer=L, n_head=H)), names, \
        f'(d_model: {D}, heads: {H}, d_ff: {4 * D}, embedding: (norm: true), positions: Alibi(), norm: (position: Pre), attention: (qkv_bias: true, out_bias: true), ffn: (activation: GeluTanh, bias: true), output: (tied: true), {DEC})'
@case
def opt():
    def names(t, get):
        llama_like(t, get, prefix='model.decoder.layers', o='out_proj', names=(), ffn=False, norms=(('norm1', 'self_attn_layer_norm'), ('norm2', 'final_layer_norm')))
        for i in range(L):
            lin(t, f'decoder.{i}.ffn.w1', f'model.decoder.layers.{i}.fc1', get); lin(t, f'decoder.{i}.ffn.w2', f'model.decoder.layers.{i}.fc2', get)
        common(t, get, final='model.decoder.final_layer_norm', embed='model.decoder.embed_tokens', head=None)
        t['embed.target.positions.weight'] = get('model.decoder.embed_positions.weight')
        t['embed.target.project.weight'] = get('model.decoder.project_in.weight'); t['output.transform.weight'] = get('model.decoder.project_out.weight')
    return tr.OPTForCausalLM(tr.OPTConfig(vocab_size=V, hidden_size=D, num_hidden_layers=L, num_attention_heads=H, ffn_dim=F, max_position_embeddings=40, word_embed_proj_dim=12)), names, \
        f'({BASE}, embedding: (width: 12, project: AfterLookup), positions: Learned(max_len: 42, offset: 2, skip_padding: true), norm: (position: Pre), attention: (qkv_bias: true, out_bias: true), ffn: (bias: true), output: (tied: true, transform: (activation: None, norm: false, bias: false)), {DEC})'
@case
def granite():
    def names(t, get): llama_like(t, get); common(t, get)
    return tr.GraniteForCausalLM(tr.GraniteConfig(**dec, **kv, embedding_multiplier=12.0, logits_scaling=8.0, residual_multiplier=0.22, attention_multiplier=0.3, tie_word_embeddings=False, **sp)), names, \
        f'({BASE}, kv_heads: 2, embedding: (multiplier: 12.0), residual_multiplier: 0.22, {ROT}, {RMS}, attention: (scale: By(0.3)), {SWIGLU}, output: (multiplier: 0.125), {DEC})'
@case
def cohere():
    def names(t, get):
        llama_like(t, get, norms=(('norm1', 'input_layernorm'),), own=(('q_norm', 'q_norm'), ('k_norm', 'k_norm'))); common(t, get, head=None)
    m = tr.CohereForCausalLM(tr.CohereConfig(**dec, **kv, use_qk_norm=True, **sp))
    return m, names, f'({BASE}, kv_heads: 2, positions: Rotary(layout: Interleaved, base: {m.config.rope_parameters["rope_theta"]}), norm: (position: Parallel, bias: false), attention: (qk_norm: PerHeadOwn), {SWIGLU}, output: (tied: true, multiplier: {m.config.logit_scale}), {DEC})'
@case
def smollm3():
    def names(t, get): llama_like(t, get); common(t, get, head=None)
    m = tr.SmolLM3ForCausalLM(tr.SmolLM3Config(**dec, **kv, no_rope_layers=[1, 0], tie_word_embeddings=True, **sp))
    return m, names, f'({BASE}, kv_heads: 2, positions: Rotary(base: {m.config.rope_parameters["rope_theta"]}), {RMS}, {SWIGLU}, output: (tied: true), decoder: (layers: [(), (attention: (positions: Absent))], final_norm: true))'
def experts(t, get, prefix='mlp', first=0):
    for i in range(first, L):
        a, b = f'decoder.{i}.ffn', f'model.layers.{i}.{prefix}'
        t[f'{a}.router.weight'] = get(f'{b}.gate.weight')
        w1, v1 = get(f'{b}.experts.gate_up_proj').chunk(2, 1)
        t[f'{a}.experts.w1.weight'], t[f'{a}.experts.v1.weight'] = w1, v1
        t[f'{a}.experts.w2.weight'] = get(f'{b}.experts.down_proj')
@case
def mixtral():
    def names(t, get): llama_like(t, get, ffn=False); common(t, get); experts(t, get)
    m = tr.MixtralForCausalLM(tr.MixtralConfig(**dec, **kv, num_local_experts=4, num_experts_per_tok=2, **sp))
    return m, names, f'({BASE}, kv_heads: 2, positions: Rotary(base: {m.config.rope_parameters["rope_theta"]}), norm: (kind: RmsNorm, position: Pre, eps: 1e-5), ffn: (activation: Silu, gated: true, experts: (count: 4, top_k: 2, normalise: true)), {DEC})'
@case
def qwen3_moe():
    def names(t, get): llama_like(t, get, ffn=False, own=(('q_norm', 'q_norm'), ('k_norm', 'k_norm'))); common(t, get); experts(t, get)
    m = tr.Qwen3MoeForCausalLM(tr.Qwen3MoeConfig(**dec, **kv, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12, decoder_sparse_step=1, norm_topk_prob=False, **sp))
    return m, names, f'({BASE}, kv_heads: 2, d_k: 8, positions: Rotary(base: {m.config.rope_parameters["rope_theta"]}), {RMS}, attention: (qk_norm: PerHead), ffn: (activation: Silu, gated: true, experts: (count: 4, top_k: 2, d_ff: 12)), {DEC})'
@case
def gpt_oss():
    def names(t, get):
        llama_like(t, get, ffn=False); common(t, get)
        for i in range(L):
            a, b = f'decoder.{i}', f'model.layers.{i}'
            t[f'{a}.self_attn.sinks'] = get(f'{b}.self_attn.sinks')
            t[f'{a}.ffn.router.weight'] = get(f'{b}.mlp.router.weight'); t[f'{a}.ffn.router.bias'] = get(f'{b}.mlp.router.bias')
            w, wb = get(f'{b}.mlp.experts.gate_up_proj').transpose(1, 2), get(f'{b}.mlp.experts.gate_up_proj_bias')
            for k, j in (('w1', 0), ('v1', 1)): t[f'{a}.ffn.experts.{k}.weight'] = w[:, j::2]; t[f'{a}.ffn.experts.{k}.bias'] = wb[:, j::2]
            t[f'{a}.ffn.experts.w2.weight'] = get(f'{b}.mlp.experts.down_proj').transpose(1, 2); t[f'{a}.ffn.experts.w2.bias'] = get(f'{b}.mlp.experts.down_proj_bias')
    m = tr.GptOssForCausalLM(tr.GptOssConfig(**dec, **kv, head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=4, **sp))
    r = m.config.rope_parameters
    return m, names, f'({BASE}, kv_heads: 2, d_k: 8, positions: Rotary(base: {float(r["rope_theta"])}, scaling: Yarn(factor: {r["factor"]}, original: {r["original_max_position_embeddings"]}, beta_fast: {r["beta_fast"]}, beta_slow: {r["beta_slow"]}, truncate: {str(r["truncate"]).lower()})), norm: (kind: RmsNorm, position: Pre, eps: {m.config.rms_norm_eps}), attention: (qkv_bias: true, out_bias: true, sinks: true), ffn: (activation: QuickGelu, gated: true, bias: true, clamp: 7.0, linear_offset: 1.0, experts: (count: 4, top_k: 2, scores: TopKThenSoftmax, router_bias: true)), decoder: (layers: [(attention: (window: 4)), ()], final_norm: true))'
@case
def deepseek_v3():
    def names(t, get):
        common(t, get)
        for i in range(L):
            a, b = f'decoder.{i}', f'model.layers.{i}'
            x, y = f'{a}.self_attn', f'{b}.self_attn'
            lin(t, f'{x}.q_a', f'{y}.q_a_proj', get); nrm(t, f'{x}.q_a_norm', f'{y}.q_a_layernorm', get); lin(t, f'{x}.q_b', f'{y}.q_b_proj', get)
            lin(t, f'{x}.kv_a', f'{y}.kv_a_proj_with_mqa', get); nrm(t, f'{x}.kv_a_norm', f'{y}.kv_a_layernorm', get); lin(t, f'{x}.kv_b', f'{y}.kv_b_proj', get)
            lin(t, f'{x}.o', f'{y}.o_proj', get)
            nrm(t, f'{a}.norm1', f'{b}.input_layernorm', get); nrm(t, f'{a}.norm2', f'{b}.post_attention_layernorm', get)
        for k, n in (('w1', 'gate_proj'), ('v1', 'up_proj'), ('w2', 'down_proj')):
            lin(t, f'decoder.0.ffn.{k}', f'model.layers.0.mlp.{n}', get)
            lin(t, f'decoder.1.ffn.shared.{k}', f'model.layers.1.mlp.shared_experts.{n}', get)
        experts(t, get, first=1)
        t['decoder.1.ffn.router.correction'] = get('model.layers.1.mlp.gate.e_score_correction_bias')
    m = tr.DeepseekV3ForCausalLM(tr.DeepseekV3Config(**dec, num_key_value_heads=H, q_lora_rank=12, kv_lora_rank=10, qk_nope_head_dim=4, qk_rope_head_dim=4, v_head_dim=6, n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1, n_shared_experts=1, moe_intermediate_size=12, first_k_dense_replace=1, **sp))
    r = m.config.rope_parameters
    return m, names, f'({BASE}, d_k: 8, d_v: 6, positions: Rotary(layout: Interleaved, base: {float(r["rope_theta"])}), {RMS}, attention: (latent: (q_rank: 12, kv_rank: 10, rope: 4)), {SWIGLU}, decoder: (layers: [(), (ffn: (experts: (count: 4, top_k: 2, d_ff: 12, scores: Sigmoid, normalise: true, correction_bias: true, groups: 2, top_groups: 1, multiplier: {m.config.routed_scaling_factor}, shared_d_ff: 12)))], final_norm: true))'
def t5_names(gated):
    def names(t, get):
        t['embed.weight'] = get('shared.weight')
        if get('lm_head.weight', True) is not None and gated: t['output.weight'] = get('lm_head.weight')
        for side in ('encoder', 'decoder'):
            t[f'{side}.relative.weight'] = get(f'{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight')
            t[f'{side}.final_norm.gamma'] = get(f'{side}.final_layer_norm.weight')
            for i in range(L):
                a, b = f'{side}.{i}', f'{side}.block.{i}.layer'
                last = 1 if side == 'encoder' else 2
                for n, at, kind in ((0, 'self_attn', 'SelfAttention'),) + (((1, 'cross_attn', 'EncDecAttention'),) if last == 2 else ()):
                    for x in 'qkvo': lin(t, f'{a}.{at}.{x}', f'{b}.{n}.{kind}.{x}', get)
                    nrm(t, f'{a}.norm{n + 1}', f'{b}.{n}.layer_norm', get)
                nrm(t, f'{a}.norm{last + 1}', f'{b}.{last}.layer_norm', get)
                for ours, theirs in (('w1', 'wi_0'), ('v1', 'wi_1'), ('w2', 'wo')) if gated else (('w1', 'wi'), ('w2', 'wo')):
                    lin(t, f'{a}.ffn.{ours}', f'{b}.{last}.DenseReluDense.{theirs}', get)
    return names
T5 = 'norm: (kind: RmsNorm, position: Pre, eps: 1e-6), attention: (scale: None), encoder: (layers: [(repeat: 2)], final_norm: true), decoder: (layers: [(repeat: 2)], final_norm: true)'
@case
def t5():
    return tr.T5ForConditionalGeneration(tr.T5Config(vocab_size=V, d_model=D, d_kv=6, d_ff=F, num_layers=L, num_decoder_layers=2, num_heads=H, relative_attention_num_buckets=8, relative_attention_max_distance=12, decoder_start_token_id=0)), t5_names(False), \
        f'({BASE}, d_k: 6, positions: Relative(buckets: 8, max_distance: 12), output: (tied: true, hidden_multiplier: {D ** -0.5}), {T5})'
@case
def t5_gated():
    return tr.T5ForConditionalGeneration(tr.T5Config(vocab_size=V, d_model=D, d_kv=4, d_ff=F, num_layers=L, num_decoder_layers=2, num_heads=H, feed_forward_proj='gated-gelu', tie_word_embeddings=False, decoder_start_token_id=0)), t5_names(True), \
        f'({BASE}, d_k: 4, positions: Relative(), ffn: (activation: GeluTanh, gated: true), {T5})'
def bart_names(marian, mbart=False):
    def names(t, get):
        t['embed.weight'] = get('model.shared.weight'); t['output.bias'] = get('final_logits_bias').reshape(-1)
        for side, ours in (('encoder', 'source'), ('decoder', 'target')):
            if not marian:
                t[f'embed.{ours}.positions.weight'] = get(f'model.{side}.embed_positions.weight')
                nrm(t, f'embed.{ours}.norm', f'model.{side}.layernorm_embedding', get)
            if mbart: nrm(t, f'{side}.final_norm', f'model.{side}.layer_norm', get)
            for i in range(L):
                a, b = f'{side}.{i}', f'model.{side}.layers.{i}'
                for at, kind in (('self_attn', 'self_attn'),) + ((('cross_attn', 'encoder_attn'),) if side == 'decoder' else ()):
                    for x in 'qkv': lin(t, f'{a}.{at}.{x}', f'{b}.{kind}.{x}_proj', get)
                    lin(t, f'{a}.{at}.o', f'{b}.{kind}.out_proj', get)
                    nrm(t, f'{a}.norm{1 if at == "self_attn" else 2}', f'{b}.{kind}_layer_norm', get)
                nrm(t, f'{a}.norm{2 if side == "encoder" else 3}', f'{b}.final_layer_norm', get)
                lin(t, f'{a}.ffn.w1', f'{b}.fc1', get); lin(t, f'{a}.ffn.w2', f'{b}.fc2', get)
    return names
SEQ = 'attention: (qkv_bias: true, out_bias: true), output: (tied: true, bias: true)'
STACKS = 'encoder: (layers: [(repeat: 2)]), decoder: (layers: [(repeat: 2)])'
@case
def mbart():
    return tr.MBartForConditionalGeneration(tr.MBartConfig(**seq, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=None, scale_embedding=True)), bart_names(False, True), \
        f'({BASE}, embedding: (scale: true, norm: true), positions: Learned(max_len: 42, offset: 2), norm: (position: Pre), ffn: (activation: Gelu, bias: true), {SEQ}, encoder: (layers: [(repeat: 2)], final_norm: true), decoder: (layers: [(repeat: 2)], final_norm: true))'
@case
def marian():
    return tr.MarianMTModel(tr.MarianConfig(**seq, pad_token_id=V - 1, eos_token_id=0, decoder_start_token_id=V - 1, forced_eos_token_id=None, activation_function='swish', scale_embedding=True)), bart_names(True), \
        f'({BASE}, embedding: (scale: true), positions: Sinusoidal(layout: Halves), norm: (position: Post), ffn: (activation: Silu, bias: true), {SEQ}, {STACKS})'
def encoder_names(prefix, layer, get, t, n, norms=True):
    for i in range(n):
        a, b = f'encoder.{i}', f'{prefix}{layer}.{i}'
        for x, y in (('q', 'query'), ('k', 'key'), ('v', 'value')): lin(t, f'{a}.self_attn.{x}', f'{b}.attention.self.{y}', get)
        lin(t, f'{a}.self_attn.o', f'{b}.attention.output.dense', get); nrm(t, f'{a}.norm1', f'{b}.attention.output.LayerNorm', get)
        lin(t, f'{a}.ffn.w1', f'{b}.intermediate.dense', get); lin(t, f'{a}.ffn.w2', f'{b}.output.dense', get); nrm(t, f'{a}.norm2', f'{b}.output.LayerNorm', get)
def embeddings(prefix, get, t):
    t['embed.weight'] = get(f'{prefix}embeddings.word_embeddings.weight'); t['embed.source.positions.weight'] = get(f'{prefix}embeddings.position_embeddings.weight')
    t['embed.source.token_types.weight'] = get(f'{prefix}embeddings.token_type_embeddings.weight'); nrm(t, 'embed.source.norm', f'{prefix}embeddings.LayerNorm', get)
ENC = 'embedding: (norm: true, token_types: 2), norm: (position: Post, eps: 1e-12), attention: (qkv_bias: true, out_bias: true), ffn: (activation: Gelu, bias: true)'
@case
def roberta():
    def names(t, get):
        embeddings('', get, t); encoder_names('', 'encoder.layer', get, t, L); lin(t, 'pooler', 'pooler.dense', get)
    return tr.RobertaModel(tr.RobertaConfig(**bert, pad_token_id=1, type_vocab_size=2)), names, \
        f'({BASE}, positions: Learned(max_len: 40, offset: 2, skip_padding: true), {ENC}, pooler: (), output: (none: true), encoder: (layers: [(repeat: 2)]))'
@case
def bert_mlm():
    def names(t, get):
        embeddings('bert.', get, t); encoder_names('bert.', 'encoder.layer', get, t, L)
        lin(t, 'output.transform', 'cls.predictions.transform.dense', get); nrm(t, 'output.transform_norm', 'cls.predictions.transform.LayerNorm', get); t['output.bias'] = get('cls.predictions.bias')
    return tr.BertForMaskedLM(tr.BertConfig(**bert)), names, \
        f'({BASE}, positions: Learned(max_len: 40), {ENC}, output: (tied: true, bias: true, transform: ()), encoder: (layers: [(repeat: 2)]))'
@case
def bert_classifier():
    def names(t, get):
        embeddings('bert.', get, t); encoder_names('bert.', 'encoder.layer', get, t, L); lin(t, 'pooler', 'bert.pooler.dense', get); lin(t, 'classifier', 'classifier', get)
    return tr.BertForSequenceClassification(tr.BertConfig(**bert, num_labels=3)), names, \
        f'({BASE}, positions: Learned(max_len: 40), {ENC}, pooler: (), classifier: (labels: 3), output: (none: true), encoder: (layers: [(repeat: 2)]))'
@case
def albert():
    def names(t, get):
        embeddings('', get, t); lin(t, 'embed.source.project', 'encoder.embedding_hidden_mapping_in', get); lin(t, 'pooler', 'pooler', get)
        b = 'encoder.albert_layer_groups.0.albert_layers.0'; a = 'encoder.0'
        for x, y in (('q', 'query'), ('k', 'key'), ('v', 'value')): lin(t, f'{a}.self_attn.{x}', f'{b}.attention.{y}', get)
        lin(t, f'{a}.self_attn.o', f'{b}.attention.dense', get); nrm(t, f'{a}.norm1', f'{b}.attention.LayerNorm', get)
        lin(t, f'{a}.ffn.w1', f'{b}.ffn', get); lin(t, f'{a}.ffn.w2', f'{b}.ffn_output', get); nrm(t, f'{a}.norm2', f'{b}.full_layer_layer_norm', get)
    return tr.AlbertModel(tr.AlbertConfig(**bert, embedding_size=8)), names, \
        f'({BASE}, embedding: (norm: true, token_types: 2, width: 8, project_bias: true), positions: Learned(max_len: 40), norm: (position: Post, eps: 1e-12), attention: (qkv_bias: true, out_bias: true), ffn: (activation: GeluTanh, bias: true), pooler: (), output: (none: true), encoder: (layers: [(repeat: 2)], weight_groups: 1))'
@case
def modernbert():
    def names(t, get):
        t['embed.weight'] = get('embeddings.tok_embeddings.weight'); nrm(t, 'embed.source.norm', 'embeddings.norm', get); nrm(t, 'encoder.final_norm', 'final_norm', get)
        for i in range(L):
            a, b = f'encoder.{i}', f'layers.{i}'
            for x, w in zip('qkv', split(get(f'{b}.attn.Wqkv.weight'), D, D, D)): t[f'{a}.self_attn.{x}.weight'] = w
            lin(t, f'{a}.self_attn.o', f'{b}.attn.Wo', get)
            if i: nrm(t, f'{a}.norm1', f'{b}.attn_norm', get)
            nrm(t, f'{a}.norm2', f'{b}.mlp_norm', get)
            w1, v1 = split(get(f'{b}.mlp.Wi.weight'), F, F); t[f'{a}.ffn.w1.weight'], t[f'{a}.ffn.v1.weight'] = w1, v1
            lin(t, f'{a}.ffn.w2', f'{b}.mlp.Wo', get)
    m = tr.ModernBertModel(tr.ModernBertConfig(**dec, pad_token_id=0, cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2, local_attention=4, global_attn_every_n_layers=2))
    r = m.config.rope_parameters
    return m, names, f'({BASE}, embedding: (norm: true), positions: Rotary(base: {float(r["full_attention"]["rope_theta"])}), norm: (position: Pre, eps: 1e-5, bias: false), ffn: (activation: Gelu, gated: true), output: (none: true), encoder: (layers: [(norm: (on_attention: false)), (attention: (window: 3, positions: Rotary(base: {float(r["sliding_attention"]["rope_theta"])})))], final_norm: true))'

def build(name, out):
    m, names, model = CASES[name]()
    g = torch.Generator().manual_seed(1000 + sorted(CASES).index(name))
    with torch.no_grad():
        for n, p in sorted(m.named_parameters()):
            if name == 'marian' and 'embed_positions' in n: continue
            p.add_(torch.randn(p.shape, generator=g) * (0.1 if p.dim() == 1 else 0.3))
        for n, b in m.named_buffers():
            if n.endswith(('final_logits_bias', 'e_score_correction_bias')): b.add_(torch.randn(b.shape, generator=g) * 0.1)
    m = m.eval().float()
    m.set_attn_implementation('eager')
    if hasattr(m, 'set_experts_implementation'): m.set_experts_implementation('eager')
    sd = {**dict(m.named_parameters(remove_duplicate=False)), **dict(m.named_buffers())}
    used = set()
    def get(n, optional=False):
        if n not in sd and optional: return None
        used.add(n); return sd[n].detach()
    t = {}; names(t, get)
    left = [n for n, p in m.named_parameters() if n not in used and 'embed_positions' not in n]
    assert not left, left
    ids = torch.randint(3, V - 1, (1, T), generator=g)
    meta = {'model': model, 'transformers': tr.__version__}
    inputs = {'input_ids': ids}
    encoder = 'encoder:' in model; both = encoder and 'decoder:' in model
    if both: inputs['decoder_input_ids'] = torch.randint(3, V - 1, (1, 5), generator=g)
    mask = None
    if encoder and not both:
        mask = torch.ones(1, T, dtype=torch.long); mask[0, -2:] = 0; inputs['attention_mask'] = mask
        if name == 'roberta': ids[0, -2:] = 1
        if name in ('bert_mlm', 'bert_classifier', 'albert', 'roberta'):
            types = torch.zeros(1, T, dtype=torch.long); types[0, T // 2:] = 1; inputs['token_type_ids'] = types; meta['types'] = ' '.join(map(str, types[0].tolist()))
    if mask is not None: meta['real'] = ' '.join(map(str, mask[0].tolist()))
    text = lambda x: ' '.join(map(str, x.flatten().tolist()))
    if encoder: meta['source'] = text(ids)
    if both: meta['target'] = text(inputs['decoder_input_ids'])
    if not encoder: meta['target'] = text(ids)
    with torch.no_grad():
        o = m(**inputs, output_hidden_states=True, output_attentions=True)
        r = {}
        def states(side, hidden, attention, cross=None):
            stack = side == 'source' and 'encoder' or 'decoder'
            r[f'embed.{side}.out'] = hidden[0]
            for i, a in enumerate(attention): r[f'{stack}.{i}.self_attn.weights'] = a
            for i, a in enumerate(cross or ()): r[f'{stack}.{i}.cross_attn.weights'] = a
            for i, h in enumerate(hidden[1:]): r[f'{stack}.{i}.OUT'] = h
        if both:
            states('source', o.encoder_hidden_states, o.encoder_attentions); states('target', o.decoder_hidden_states, o.decoder_attentions, o.cross_attentions)
        else: states('source' if encoder else 'target', o.hidden_states, o.attentions)
        if name == 'opt': r['output.transformed'] = r.pop('decoder.1.OUT')
        if name == 'bert_classifier': r['classifier.logits'] = o.logits
        elif getattr(o, 'logits', None) is not None: r['output.logits'] = o.logits
        if getattr(o, 'pooler_output', None) is not None: r['pooler.out'] = o.pooler_output
        if not encoder or both:
            a = {'input_ids': ids}
            m.generation_config.eos_token_id = m.config.eos_token_id = None
            y = m.generate(**a, max_new_tokens=6, do_sample=False, use_cache=False, num_beams=1)
            meta['greedy'] = text(y)
    t.update({'ref.' + k: v for k, v in r.items()})
    save_file({k: v.detach().float().contiguous().clone() for k, v in t.items()}, os.path.join(out, name + '.safetensors'), metadata=meta)

if __name__ == '__main__':
    torch.manual_seed(1); torch.set_num_threads(1)
    os.makedirs(sys.argv[1], exist_ok=True)
    for n in sys.argv[2:] or CASES:
        try: build(n, sys.argv[1]); print(n)
        except Exception as e: print(n, 'FAILED', type(e).__name__, str(e)[:300])
