#!/usr/bin/env python3
"""Makes tiny GGUF files of several architectures, and what transformers computes from the same weights.

usage: make_gguf_archs.py SEED OUT [NAME,NAME]

For each architecture OUT/NAME.gguf (float32; names by the tensor map of the gguf package, layouts as llama.cpp's converter
writes them) and OUT/NAME_ref.safetensors (input_ids, logits, hidden states, attention weights; float32, eager).
"""
import os
import sys

import gguf
import numpy as np
import torch
import transformers as tr
from gguf.constants import MODEL_ARCH_NAMES
from safetensors.torch import save_file

S, OUT = int(sys.argv[1]), sys.argv[2]
D, H, KV, F, V, L, T = 16, 4, 2, 24, 20, 2, 6
base = dict(vocab_size=V, hidden_size=D, num_hidden_layers=L, num_attention_heads=H, intermediate_size=F, max_position_embeddings=64)
kv = dict(num_key_value_heads=KV)
sp = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
A = {
    'llama3': ('llama', tr.LlamaForCausalLM, tr.LlamaConfig(**base, **kv, head_dim=8, rope_parameters=dict(rope_type='llama3', rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16))),
    'mixtral': ('llama', tr.MixtralForCausalLM, tr.MixtralConfig(**base, **kv, num_local_experts=4, num_experts_per_tok=2, **sp)),
    'qwen2': ('qwen2', tr.Qwen2ForCausalLM, tr.Qwen2Config(**base, **kv, tie_word_embeddings=True)),
    'qwen2_yarn': ('qwen2', tr.Qwen2ForCausalLM, tr.Qwen2Config(**base, **kv, rope_parameters=dict(rope_type='yarn', rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16))),
    'qwen3': ('qwen3', tr.Qwen3ForCausalLM, tr.Qwen3Config(**base, **kv, head_dim=8)),
    'qwen3moe': ('qwen3moe', tr.Qwen3MoeForCausalLM, tr.Qwen3MoeConfig(**base, **kv, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12, norm_topk_prob=True, **sp)),
    'gemma': ('gemma', tr.GemmaForCausalLM, tr.GemmaConfig(**base, num_key_value_heads=1, head_dim=8, **sp)),
    'gemma2': ('gemma2', tr.Gemma2ForCausalLM, tr.Gemma2Config(**base, **kv, head_dim=8, query_pre_attn_scalar=8, sliding_window=4, **sp)),
    'gemma3': ('gemma3', tr.Gemma3ForCausalLM, tr.Gemma3TextConfig(**{**base, 'num_hidden_layers': 6, 'intermediate_size': 16}, **kv, head_dim=8, query_pre_attn_scalar=8, sliding_window=4, **sp)),
    'phi3': ('phi3', tr.Phi3ForCausalLM, tr.Phi3Config(**base, **kv, sliding_window=4, **sp)),
    'phi2': ('phi2', tr.PhiForCausalLM, tr.PhiConfig(**base, partial_rotary_factor=0.5)),
    'gpt2': ('gpt2', tr.GPT2LMHeadModel, tr.GPT2Config(vocab_size=V, n_embd=D, n_layer=L, n_head=H, n_positions=64, bos_token_id=0, eos_token_id=0)),
    'gptneox': ('gptneox', tr.GPTNeoXForCausalLM, tr.GPTNeoXConfig(**base, rotary_pct=0.5, bos_token_id=0, eos_token_id=0)),
    'starcoder2': ('starcoder2', tr.Starcoder2ForCausalLM, tr.Starcoder2Config(**base, **kv, sliding_window=None, **sp)),
    'stablelm': ('stablelm', tr.StableLmForCausalLM, tr.StableLmConfig(**{**base, 'hidden_size': 32}, **kv, partial_rotary_factor=0.5, use_qkv_bias=True, **sp)),
    'stablelm_qk': ('stablelm', tr.StableLmForCausalLM, tr.StableLmConfig(**{**base, 'hidden_size': 32}, **kv, partial_rotary_factor=0.5, qk_layernorm=True, use_parallel_residual=True, **sp)),
    'olmo': ('olmo', tr.OlmoForCausalLM, tr.OlmoConfig(**base, clip_qkv=0.8, **sp)),
    'olmo2': ('olmo2', tr.Olmo2ForCausalLM, tr.Olmo2Config(**base, **kv, **sp)),
    'bloom': ('bloom', tr.BloomForCausalLM, tr.BloomConfig(vocab_size=V, hidden_size=D, n_layer=L, n_head=H)),
    'falcon': ('falcon', tr.FalconForCausalLM, tr.FalconConfig(vocab_size=V, hidden_size=D, num_hidden_layers=L, num_attention_heads=H, new_decoder_architecture=False, multi_query=True, parallel_attn=True)),
    'granite': ('granite', tr.GraniteForCausalLM, tr.GraniteConfig(**base, **kv, embedding_multiplier=12.0, logits_scaling=8.0, residual_multiplier=0.22, attention_multiplier=0.3, **sp)),
    'command-r': ('command-r', tr.CohereForCausalLM, tr.CohereConfig(**base, **kv, **sp)),
    'smollm3': ('smollm3', tr.SmolLM3ForCausalLM, tr.SmolLM3Config(**{**base, 'num_hidden_layers': 4}, **kv, **sp)),
    'gpt-oss': ('gpt-oss', tr.GptOssForCausalLM, tr.GptOssConfig(**base, **kv, head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=4, rope_parameters=dict(rope_type='yarn', rope_theta=150000.0, factor=4.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, truncate=False), **sp)),
}


def paired(x, heads):
    """Rows of each head that rotate in halves, side by side."""
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def regrouped(x, heads):
    """Rows `head, (q, k, v)` as q, then k, then v."""
    return np.concatenate([x.reshape(heads, 3, -1, *x.shape[1:])[:, i].reshape(-1, *x.shape[1:]) for i in range(3)])


def settings(w, arch, c):
    get = lambda *names: next((getattr(c, n) for n in names if getattr(c, n, None) is not None), None)
    d, heads = get('hidden_size', 'n_embd'), get('num_attention_heads', 'n_head')
    w.add_context_length(64)
    w.add_embedding_length(d)
    w.add_block_count(get('num_hidden_layers', 'n_layer'))
    w.add_feed_forward_length(get('intermediate_size', 'ffn_hidden_size') or 4 * d)
    w.add_head_count(heads)
    w.add_vocab_size(V)
    if arch not in ('gpt2', 'bloom', 'gptneox', 'phi2'):
        w.add_head_count_kv(1 if arch == 'falcon' else get('num_key_value_heads') or heads)
    for eps in ('rms_norm_eps',):
        if get(eps) is not None and arch != 'olmo': w.add_layer_norm_rms_eps(get(eps))
    layer_eps = get('layer_norm_eps', 'layer_norm_epsilon', 'norm_epsilon')
    if arch == 'olmo': layer_eps = 1e-5
    if layer_eps is not None: w.add_layer_norm_eps(layer_eps)
    rope = getattr(c, 'rope_parameters', None) or {}
    if arch == 'gemma3': rope = rope['full_attention']
    if rope.get('rope_theta'): w.add_rope_freq_base(rope['rope_theta'])
    head = get('head_dim') or d // heads
    if get('head_dim') and arch in ('qwen3', 'qwen3moe', 'gemma', 'gemma2', 'gemma3', 'gpt-oss', 'llama'):
        w.add_key_length(head)
        w.add_value_length(head)
    if rope and arch not in ('gemma', 'gemma2', 'gemma3', 'starcoder2', 'falcon'):
        w.add_rope_dimension_count(int(head * rope.get('partial_rotary_factor', 1.0)))
    if rope.get('rope_type') == 'yarn':
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rope['factor'])
        w.add_rope_scaling_orig_ctx_len(rope['original_max_position_embeddings'])
    experts = get('num_local_experts', 'num_experts')
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(c.num_experts_per_tok)
        if arch in ('qwen3moe', 'gpt-oss'): w.add_expert_feed_forward_length(get('moe_intermediate_size') or F)
    if arch in ('gemma2', 'gemma3', 'phi3', 'gpt-oss'): w.add_sliding_window(c.sliding_window)
    if arch == 'gemma2':
        w.add_attn_logit_softcapping(c.attn_logit_softcapping)
        w.add_final_logit_softcapping(c.final_logit_softcapping)
    if arch in ('gptneox', 'stablelm'): w.add_parallel_residual(c.use_parallel_residual)
    if arch == 'olmo': w.add_clamp_kqv(c.clip_qkv)
    if arch == 'granite':
        w.add_attention_scale(c.attention_multiplier)
        w.add_embedding_scale(c.embedding_multiplier)
        w.add_residual_scale(c.residual_multiplier)
        w.add_logit_scale(c.logits_scaling)
    if arch == 'command-r': w.add_logit_scale(c.logit_scale)
    if arch == 'bloom': w.add_max_alibi_bias(8.0) if hasattr(w, 'add_max_alibi_bias') else None


def tensors(arch, c, m):
    """Names and arrays as the converter writes them."""
    heads = getattr(c, 'num_attention_heads', None) or c.n_head
    keys = getattr(c, 'num_key_value_heads', None) or heads
    tied = {n for n, p in m.named_parameters(remove_duplicate=False) if n.endswith('lm_head.weight') and p.data_ptr() == m.get_input_embeddings().weight.data_ptr()}
    out = {}
    layers = getattr(c, 'num_hidden_layers', None) or c.n_layer
    which = next(k for k, n in MODEL_ARCH_NAMES.items() if n == arch)
    names = gguf.get_tensor_name_map(which, layers)
    for name, p in m.state_dict().items():
        if name in tied or name.endswith(('.attn.bias', '.attn.masked_bias', 'inv_freq', '.attention.bias')) and arch in ('gpt2', 'gptneox'): continue
        x = p.detach().float().numpy()
        if arch in ('llama', 'olmo', 'granite', 'smollm3'):
            if 'q_proj' in name: x = paired(x, heads)
            if 'k_proj' in name: x = paired(x, keys)
        if arch in ('gemma', 'gemma2', 'gemma3') and name.endswith('norm.weight'): x = x + 1
        if arch == 'gpt2' and name.endswith(('c_attn.weight', 'c_proj.weight', 'c_fc.weight')): x = x.T
        if arch in ('bloom', 'gptneox') and 'query_key_value' in name: x = regrouped(x, heads)
        experts = None
        if 'mlp.experts.gate_up_proj' in name or 'mlp.experts.down_proj' in name:
            blk = name.split('.')[2]
            end = '.bias' if name.endswith('_bias') else '.weight'
            if 'down_proj' in name:
                out[f'blk.{blk}.ffn_down_exps{end}'] = x.swapaxes(1, 2) if arch == 'gpt-oss' and end == '.weight' else x
            elif arch == 'gpt-oss':
                g, u = (x[..., ::2], x[..., 1::2])
                if end == '.weight': g, u = g.swapaxes(1, 2), u.swapaxes(1, 2)
                out[f'blk.{blk}.ffn_gate_exps{end}'], out[f'blk.{blk}.ffn_up_exps{end}'] = g, u
            else:
                half = x.shape[1] // 2
                out[f'blk.{blk}.ffn_gate_exps{end}'], out[f'blk.{blk}.ffn_up_exps{end}'] = x[:, :half], x[:, half:]
            continue
        if arch == 'stablelm' and 'layernorm.norms.' in name:
            parts = name.split('.')
            key = f'blk.{parts[2]}.attn_{parts[4][0]}_norm.weight'
            out.setdefault(key, []).append(x)
            continue
        if name.endswith('.sinks'):
            out[f"blk.{name.split('.')[2]}.attn_sinks.weight"] = x
            continue
        plain = name.removeprefix('transformer.') if arch == 'bloom' else name
        mixtral = plain.replace('mlp.gate.', 'block_sparse_moe.gate.') if arch == 'llama' else plain
        mapped = names.get_name(mixtral, try_suffixes=('.weight', '.bias'))
        assert mapped, (arch, name)
        out[mapped] = x
    if arch == 'llama' and c.rope_parameters.get('rope_type') == 'llama3':
        r = c.rope_parameters
        factors = []
        for i in range(0, c.head_dim, 2):
            freq = r['rope_theta'] ** (-i / c.head_dim)
            wave = 2 * np.pi / freq
            low, high, old = r['low_freq_factor'], r['high_freq_factor'], r['original_max_position_embeddings']
            if wave < old / high: factors.append(1.0)
            elif wave > old / low: factors.append(r['factor'])
            else:
                smooth = (old / wave - low) / (high - low)
                factors.append(1 / ((1 - smooth) / r['factor'] + smooth))
        out['rope_freqs.weight'] = np.array(factors, dtype=np.float32)
    return {k: np.ascontiguousarray(np.stack(x) if isinstance(x, list) else x, dtype=np.float32) for k, x in out.items()}


def make(name):
    arch, cls, c = A[name]
    torch.manual_seed(S)
    m = cls._from_config(c, attn_implementation='eager').eval()
    g = torch.Generator().manual_seed(S * 1000 + 7)
    with torch.no_grad():
        for _, p in sorted(m.named_parameters()): p.add_(torch.randn(p.shape, generator=g) * (0.1 if p.dim() == 1 else 0.3))
    ids = torch.randint(3, V, (1, T), generator=g)
    with torch.no_grad(): o = m(ids, output_hidden_states=True, output_attentions=True)
    t = {'input_ids': ids, 'logits': o.logits}
    for i, x in enumerate(o.hidden_states): t[f'hidden_states_{i}'] = x
    for i, x in enumerate(o.attentions or ()): t[f'attentions_{i}'] = x
    save_file({k: v.contiguous().clone() for k, v in t.items()}, f'{OUT}/{name}_ref.safetensors')
    w = gguf.GGUFWriter(f'{OUT}/{name}.gguf', arch)
    settings(w, arch, c)
    for key, x in tensors(arch, c, m).items(): w.add_tensor(key, x)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


os.makedirs(OUT, exist_ok=True)
for n in (sys.argv[3].split(',') if len(sys.argv) > 3 else A):
    make(n)
    print(n, 'ok', flush=True)
