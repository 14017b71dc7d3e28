#!/usr/bin/env python3
"""Two small models in bf16 and what transformers computes of them, right and with a fault, recorded by tt_record.py.

    python make.py        (beside assets/tt_record.py on the path; writes bert/ and neox/)
"""
import types

import torch
from torch import nn
from transformers import BertConfig, BertModel, GPTNeoXConfig, GPTNeoXForCausalLM

import tt_record

IDS = torch.tensor([[3, 17, 8, 42, 96, 5, 23, 64, 2, 11, 90, 33], [7, 7, 61, 15, 2, 88, 54, 31, 12, 9, 77, 50]])


def build(kind):
    torch.manual_seed(5)
    if kind == "bert":
        model = BertModel(BertConfig(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                     intermediate_size=128, max_position_embeddings=32))
    else:
        model = GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=97, hidden_size=32, num_hidden_layers=2,
                                                 num_attention_heads=4, intermediate_size=128,
                                                 max_position_embeddings=64, rotary_pct=0.25))
    model.config._attn_implementation = "eager"
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim >= 2:
                p.normal_(0, 0.6 if "embed" in name else 0.12)
            elif name.endswith("bias"):
                p.normal_(0, 0.1)
            else:
                p.uniform_(0.6, 1.4)
    return model.to(torch.bfloat16).eval()


def unbiased(self, x):
    f = x.float()
    centred = f - f.mean(-1, keepdim=True)
    var = (centred**2).sum(-1, keepdim=True) / (f.shape[-1] - 1)
    return (centred / (var + self.eps).sqrt() * self.weight.float() + self.bias.float()).to(x.dtype)


def bert_variance(model):
    norm = model.encoder.layer[1].attention.output.LayerNorm
    norm.forward = types.MethodType(unbiased, norm)


FAULTS = {
    ("bert", "none"): lambda m: None,
    ("bert", "gelu_tanh"): lambda m: setattr(m.encoder.layer[1].intermediate, "intermediate_act_fn", nn.GELU("tanh")),
    ("bert", "ln_unbiased"): bert_variance,
    ("neox", "none"): lambda m: None,
    ("neox", "gelu_tanh"): lambda m: setattr(m.gpt_neox.layers[1].mlp, "act", nn.GELU("tanh")),
}

for (kind, name), make in FAULTS.items():
    model = build(kind)
    model.save_pretrained(kind)
    make(model)
    inputs = {"input_ids": IDS}
    if kind == "bert":
        inputs["attention_mask"] = torch.ones_like(IDS)
        inputs["attention_mask"][1, 9:] = 0
    with torch.no_grad(), tt_record.record(model, f"{kind}/ref.{name}.safetensors"):
        model(**inputs)
