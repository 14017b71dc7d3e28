"""The command line."""
import argparse
import inspect
import os
import sys

import torch

from ._errors import RecordError
from ._merge import merge
from ._recorder import record


def _rows(texts, what, pad):
    """Rows of ids, padded to the longest, and which of them are real."""
    rows = []
    for text in texts:
        try:
            rows.append([int(word) for word in text.replace(",", " ").split()])
        except ValueError as e:
            raise RecordError(f"{what} {text!r} must be whole numbers with spaces between: {e}") from e
        if not rows[-1]:
            raise RecordError(f"{what} {text!r} holds no id")
    longest = max(map(len, rows))
    ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
    real = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return ids, real


def _load(path, class_name):
    try:
        import transformers
    except ImportError as e:
        raise RecordError(f"--hf needs transformers: pip install transformers ({e})") from e
    config = transformers.AutoConfig.from_pretrained(path)
    name = class_name or (getattr(config, "architectures", None) or ["AutoModel"])[0]
    kind = getattr(transformers, name, None)
    if kind is None or not hasattr(kind, "from_pretrained"):
        raise RecordError(f"transformers has no model class {name!r}; choose one with --class, such as AutoModel")
    return kind.from_pretrained(path, attn_implementation="eager")


def _inputs(options, model):
    if options.text:
        import transformers

        tokenizer = transformers.AutoTokenizer.from_pretrained(options.hf)
        if len(options.text) > 1 and tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        inputs = dict(tokenizer(options.text, return_tensors="pt", padding=len(options.text) > 1))
    else:
        pad = options.pad if options.pad is not None else (getattr(model.config, "pad_token_id", None) or 0)
        ids, real = _rows(options.ids, "--ids", pad)
        inputs = {"input_ids": ids, "attention_mask": real}
    if options.decoder_ids:
        rows, real = _rows(options.decoder_ids, "--decoder-ids", options.pad or 0)
        if not real.all():
            raise RecordError("--decoder-ids must all be of one length")
        inputs["decoder_input_ids"] = rows
    known = inspect.signature(model.forward).parameters
    for name in [n for n in inputs if n not in known and n != "input_ids"]:
        if name != "attention_mask" or not inputs[name].bool().all():
            print(f"tt_record: {type(model).__name__} takes no {name}: left out", file=sys.stderr)
        del inputs[name]
    return inputs


def main(arguments=None):
    """The command line. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="tt-record", description="Records one forward pass of a Hugging Face model.")
    job = parser.add_mutually_exclusive_group(required=True)
    job.add_argument("--hf", metavar="PATH", help="folder of a checkpoint, or its name on the hub")
    job.add_argument("--merge", nargs="+", metavar="FILE", help="put the files of all ranks together, and record nothing")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--text", action="append", help="a sentence for the checkpoint's tokenizer; once a row of the batch")
    what.add_argument("--ids", action="append", help='token ids, such as "2 7 9 3"; once a row of the batch')
    parser.add_argument("--decoder-ids", action="append", metavar="IDS", help="ids that the decoder of an encoder-decoder reads")
    parser.add_argument("--pad", type=int, metavar="ID", help="id after the end of shorter rows (the checkpoint's, or 0)")
    parser.add_argument("--class", dest="class_name", metavar="NAME", help="class of transformers, if not the checkpoint's own")
    parser.add_argument("--dtype", choices=["float64", "float32", "float16", "bfloat16"], help="compute in this type")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, mps (cpu)")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="keep only names like this; may be repeated")
    parser.add_argument("--skip", action="append", metavar="PATTERN", help="keep no names like this; may be repeated")
    parser.add_argument("--max-bytes", type=int, metavar="N", help="keep no more than so many bytes")
    parser.add_argument("--microbatches", type=int, metavar="N", help="with --merge: into how many parts a pipeline cut the batch")
    parser.add_argument("-o", "--output", default="ref.safetensors", metavar="FILE", help="(ref.safetensors)")
    options = parser.parse_args(arguments)
    try:
        if options.merge:
            tensors = merge(options.merge, options.output, microbatches=options.microbatches)
            print(f"{options.output}: {len(tensors)} tensors, {os.path.getsize(options.output)} bytes")
            return 0
        if not options.text and not options.ids:
            raise RecordError("say what the model reads: --text or --ids")
        model = _load(options.hf, options.class_name).eval().to(options.device)
        if options.dtype:
            model = model.to(getattr(torch, options.dtype))
        inputs = {name: tensor.to(options.device) for name, tensor in _inputs(options, model).items()}
        recording = record(model, options.output, only=options.only, skip=options.skip, max_bytes=options.max_bytes)
        with torch.no_grad(), recording:
            model(**inputs)
    except (RecordError, OSError, ValueError, RuntimeError, IndexError) as e:
        print(f"tt_record: {e}", file=sys.stderr)
        return 2
    for name, reason in recording.skipped:
        print(f"tt_record: not recorded: {name}: {reason}", file=sys.stderr)
    print(f"{recording.path}: {len(recording.tensors)} tensors, {os.path.getsize(recording.path)} bytes")
    return 0


def console():
    """`tt-record`."""
    sys.exit(main())
