"""Records the tiny models in `tests/data/checkpoints/families` with `assets/python/tt_record`: of those that predict
the next token a training step, gradients included, of others what they compute.

    python tests/data/recorded_families/make.py            all
    python tests/data/recorded_families/make.py qwen3      one of them
"""

import pathlib
import sys

import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "assets" / "python"))
from tt_record import record  # noqa: E402

CAUSAL = """bloom codegen cohere cohere2 deepseek_v3 falcon gemma gemma2 gemma3 glm4 gpt2 gpt_bigcode gpt_neo gpt_neox
    gpt_oss gptj granite llama llama3 mistral mixtral mpt nemotron olmo olmo2 olmoe opt phi phi3 qwen2 qwen2_moe qwen3
    qwen3_moe smollm3 stablelm stablelm_qk starcoder2""".split()
ENCODERS = "albert bert distilbert electra modernbert roberta".split()
PAIRS = "bart marian mbart t5 t5_gated umt5".split()
IDS = torch.tensor([[5, 9, 11, 3, 7]])

for name in sys.argv[1:] or CAUSAL + ENCODERS + PAIRS:
    folder = HERE.parent / "checkpoints" / "families" / name
    load = {"dtype": torch.float32, "attn_implementation": "eager"}
    to = HERE / f"{name}.safetensors"
    if name in CAUSAL:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, **load).eval()
        with record(model, to, backward=True):
            model(input_ids=IDS, labels=IDS).loss.backward()
    elif name in ENCODERS:
        model = transformers.AutoModel.from_pretrained(folder, **load).eval()
        with torch.no_grad(), record(model, to):
            model(input_ids=IDS)
    else:
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, **load).eval()
        with torch.no_grad(), record(model, to):
            model(input_ids=IDS, decoder_input_ids=IDS[:, :4])
    print(name)
