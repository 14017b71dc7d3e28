#!/usr/bin/env python3
"""Makes the recorded models of this folder: `python make.py [OUT_DIR]` (torch, transformers, safetensors, numpy).

Each is a tiny model of somebody else's code with seeded random weights, run once under assets/tt_record.py:

    NAME.weights.safetensors     its parameters
    NAME.recorded.safetensors    what it computed

The scenarios beside them (NAME.ron) say the same model and inputs to tui-transformer.
"""
import os
import sys

import torch
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "assets"))
from tt_record import record  # noqa: E402

VOCAB, LENGTH = 20, 12
# A model's dropout modules change nothing here, and some tensors are handed on whole by several modules.
SKIP = ["*dropout", "attentions_*", "*[[]1]"]


def seeded(model, seed):
    """Parameters large enough that a wrong ε, mask or scale shows: HF's own start with biases 0 and all γ 1."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            scale = 0.5 if p.dim() == 2 and p.shape[0] in (VOCAB, LENGTH) else 0.25
            is_gamma = p.dim() == 1 and name.endswith("weight")
            p.copy_(scale * torch.randn(p.shape, generator=g, dtype=torch.float64) + float(is_gamma))
    return model.eval()


def bert():
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=VOCAB, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=LENGTH, attn_implementation="eager",
    )
    model = seeded(BertModel(config, add_pooling_layer=False), 1)
    ids = torch.tensor([[2, 7, 11, 5, 19, 3], [2, 14, 9, 3, 0, 0]])
    types = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]])
    inputs = {"input_ids": ids, "attention_mask": (ids != 0).long(), "token_type_ids": types}
    return model, inputs, dict(model.named_parameters())


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=VOCAB, n_embd=16, n_layer=2, n_head=2, n_inner=24, n_positions=LENGTH, attn_implementation="eager",
        bos_token_id=0, eos_token_id=0,
    )
    model = seeded(GPT2LMHeadModel(config), 2)
    weights = {
        "embed.target.weight": model.transformer.wte.weight,
        "embed.target.positions.weight": model.transformer.wpe.weight,
        "decoder.final_norm.gamma": model.transformer.ln_f.weight,
        "decoder.final_norm.beta": model.transformer.ln_f.bias,
    }
    for i, block in enumerate(model.transformer.h):
        # Conv1D holds [in, out]; c_attn is query, key and value side by side.
        for part, weight, bias in zip("qkv", block.attn.c_attn.weight.T.chunk(3), block.attn.c_attn.bias.chunk(3)):
            weights |= {f"decoder.{i}.self_attn.{part}.weight": weight, f"decoder.{i}.self_attn.{part}.bias": bias}
        for path, conv in [("self_attn.o", block.attn.c_proj), ("ffn.w1", block.mlp.c_fc), ("ffn.w2", block.mlp.c_proj)]:
            weights |= {f"decoder.{i}.{path}.weight": conv.weight.T, f"decoder.{i}.{path}.bias": conv.bias}
        for n, norm in [(1, block.ln_1), (2, block.ln_2)]:
            weights |= {f"decoder.{i}.norm{n}.gamma": norm.weight, f"decoder.{i}.norm{n}.beta": norm.bias}
    return model, {"input_ids": torch.tensor([[4, 17, 8, 2, 13, 6]])}, weights


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCAB, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=24, max_position_embeddings=LENGTH, tie_word_embeddings=False, attn_implementation="eager",
        bos_token_id=1, eos_token_id=2,
    )
    model = seeded(LlamaForCausalLM(config), 3)
    return model, {"input_ids": torch.tensor([[1, 12, 5, 19, 7, 10]])}, dict(model.named_parameters())


class Plain(torch.nn.Module):
    """PyTorch's own encoder, norms before the sublayers, on an embedding."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCAB, 8)
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, norm=torch.nn.LayerNorm(8), enable_nested_tensor=False)

    def forward(self, ids, padding):
        return self.encoder(self.embedding(ids), src_key_padding_mask=padding)


def plain():
    model = seeded(Plain().double(), 4)
    weights = {
        "embed.source.weight": model.embedding.weight,
        "encoder.final_norm.gamma": model.encoder.norm.weight,
        "encoder.final_norm.beta": model.encoder.norm.bias,
    }
    for i, layer in enumerate(model.encoder.layers):
        attn = layer.self_attn
        for part, weight, bias in zip("qkv", attn.in_proj_weight.chunk(3), attn.in_proj_bias.chunk(3)):
            weights |= {f"encoder.{i}.self_attn.{part}.weight": weight, f"encoder.{i}.self_attn.{part}.bias": bias}
        for path, linear in [("self_attn.o", attn.out_proj), ("ffn.w1", layer.linear1), ("ffn.w2", layer.linear2)]:
            weights |= {f"encoder.{i}.{path}.weight": linear.weight, f"encoder.{i}.{path}.bias": linear.bias}
        for n, norm in [(1, layer.norm1), (2, layer.norm2)]:
            weights |= {f"encoder.{i}.norm{n}.gamma": norm.weight, f"encoder.{i}.norm{n}.beta": norm.bias}
    ids = torch.tensor([[3, 16, 9, 11, 2], [8, 5, 18, 0, 0]])
    return model, {"ids": ids, "padding": ids == 0}, weights


def main(out):
    for make in (bert, gpt2, llama, plain):
        model, inputs, weights = make()
        name = make.__name__
        weights = {k: v.detach().clone().contiguous() for k, v in weights.items()}
        save_file(weights, f"{out}/{name}.weights.safetensors", metadata={"format": "pt"})
        with torch.no_grad(), record(model, f"{out}/{name}.recorded.safetensors", skip=SKIP) as recording:
            model(**inputs)
        print(f"{name}: {len(weights)} parameters, {len(recording.tensors)} tensors recorded")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else HERE)
