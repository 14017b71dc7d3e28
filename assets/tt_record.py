#!/usr/bin/env python3
"""Records what a PyTorch or Hugging Face model computes, for `tui-transformer compare SCENARIO FILE`.

As a module, around one forward pass (or several) of any `torch.nn.Module`:

    from tt_record import record
    model.eval()
    with torch.no_grad(), record(model, "ref.safetensors"):
        model(**inputs)

As a script, for a Hugging Face checkpoint in a folder (or on the hub):

    python tt_record.py --hf PATH --text "a sentence" -o ref.safetensors
    python tt_record.py --hf PATH --ids "2 7 9 3" --ids "2 5 3" --dtype float64 -o ref.safetensors

Inside an engine that owns the forward pass (vLLM, DeepSpeed, a server), from a function it runs in its workers;
the file is written when the first pass ends. Turn CUDA graphs and compilation off there ("eager" mode), since
neither calls hooks:

    record(model, "ref.safetensors", calls=1).start()

Where several processes share the work (torch.distributed, or RANK and WORLD_SIZE in the environment) each writes
what it saw itself: `ref.rank0.safetensors`, `ref.rank1.safetensors`, … Each can be compared alone where every process
had whole tensors of a batch of its own (data parallel, FSDP). Where they shared tensors (tensor parallel) or layers
(pipeline), put them together first:

    python tt_record.py --merge ref.rank*.safetensors -o ref.safetensors

What is in the file, every tensor in the type it had, copied the moment it was there:

    NAME             output of the module NAME, such as `encoder.layer.0.attention.self.query`; the first one of a tuple
    NAME[1]          further outputs of a tuple
    NAME.KEY         output KEY of a module that returns a dict; in the whole model's own outputs just KEY, such as
                     `logits`, and KEY_0, KEY_1, … where that is a tuple, such as `hidden_states_0`; `output` where the
                     whole model returns a bare tensor
    NAME.scores      what a softmax inside the module NAME was given: attention scores, scaled and masked
    NAME.weights     what it returned: attention weights
    NAME.in          what a norm was given: the residual stream after a sum that no module makes
    NAME.q_rotated   queries and keys after rotary positions (`.k_rotated`), where the model's file has the usual
                     `apply_rotary_pos_emb` of transformers
    input_ids, …     arguments of the whole model, by parameter name
    …#1              the same in the second call, …#2 in the third

Metadata, text all of it: `framework`, `class`, `model_type` and `attention` (Hugging Face), `training`, `rank`,
`world_size`, and as JSON `order` (names as they came to be), `inputs`, `classes` (class by module name) and `skipped`
(name and reason).

Attention must be "eager": a fused kernel never holds scores or weights, so that nothing of them can be recorded (a
warning says so). `nn.MultiheadAttention` is made to take its unfused way for as long as the recording lasts.
"""
import argparse
import contextlib
import fnmatch
import functools
import inspect
import json
import os
import sys
import tempfile
import threading
import warnings

try:
    import torch
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import save_file
except ImportError as missing:
    NEEDS = f"tt_record: {missing}; it needs torch and safetensors: pip install torch safetensors"
    if __name__ == "__main__":
        sys.exit(NEEDS)
    raise ImportError(NEEDS) from missing

__all__ = ["record", "merge", "RecordError", "rank_and_world"]

# What engines and wrappers put into the names of the modules they wrap.
WRAPPERS = ("_fsdp_wrapped_module", "_checkpoint_wrapped_module")


class RecordError(Exception):
    """A recording that cannot be made, and how to mend it."""


def rank_and_world():
    """Rank of this process among how many: from torch.distributed, or else RANK and WORLD_SIZE; (0, 1) alone."""
    dist = torch.distributed
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    try:
        rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    except ValueError as e:
        raise RecordError(f"RANK and WORLD_SIZE in the environment must be whole numbers: {e}") from e
    if not 0 <= rank < world:
        raise RecordError(f"RANK={rank} does not fit WORLD_SIZE={world}")
    return rank, world


class _Call:
    """A module's call that has begun and not ended."""

    def __init__(self, name, suffix, heads=None, asked=None):
        self.name, self.suffix = name, suffix
        self.heads = heads  # of an nn.MultiheadAttention
        self.asked = asked  # (need_weights, average_attn_weights) as its caller said


class record:
    """Records the forward passes of `model` between `start()` and `stop()`, or inside a `with` block.

    path    a safetensors file, replaced if it exists; with `.rankN` before the ending where there are several
            processes. It is written whole or not at all, and not where the block raised.
    only    patterns such as `["encoder.layer.0.*", "logits"]`: nothing else is kept
    skip    patterns of names that are not kept
    calls   write and stop by itself after so many passes of the whole model
    """

    def __init__(self, model, path, *, only=None, skip=None, calls=None):
        if not isinstance(model, torch.nn.Module):
            hint = "; give its `.model`" if isinstance(getattr(model, "model", None), torch.nn.Module) else ""
            raise RecordError(f"a torch.nn.Module is wanted, not {type(model).__name__}{hint}")
        if calls is not None and calls < 1:
            raise RecordError(f"calls must be at least 1, not {calls}")
        self.model = _unwrapped(model)
        self.rank, self.world = rank_and_world()
        path = os.fspath(path)
        stem, ending = os.path.splitext(path)
        if ending != ".safetensors":
            raise RecordError(f"{path!r} must end in .safetensors")
        self.path = f"{stem}.rank{self.rank}{ending}" if self.world > 1 else path
        _folder(self.path)
        self.only, self.skip, self.calls = _patterns("only", only), _patterns("skip", skip), calls
        self.tensors, self.inputs, self.skipped, self.classes = {}, [], [], {}
        self._passes, self._counts = 0, {}
        self._thread, self._lock = threading.local(), threading.Lock()
        self._undo = None

    # ---- begin and end

    def start(self):
        """Hooks the model. Returns the recording itself."""
        self._start(stacklevel=3)
        return self

    def _start(self, stacklevel):
        if self._undo is not None:
            raise RecordError("this recording has started already")
        if self.model.training:
            said = "the model is in training mode: dropout makes this run unrepeatable; model.eval() ends it"
            warnings.warn(said, stacklevel=stacklevel)
        with contextlib.ExitStack() as undo:
            for name, module in self.model.named_modules():
                if any(w in module._modules for w in WRAPPERS):
                    continue  # the module inside has the same name, and is the one meant
                name = ".".join(part for part in name.split(".") if part not in WRAPPERS)
                self.classes[name] = type(module).__name__
                before = module.register_forward_pre_hook(functools.partial(self._before, name), with_kwargs=True)
                undo.callback(before.remove)
                after = module.register_forward_hook(functools.partial(self._after, name))
                undo.callback(after.remove)
            for owner in (torch.nn.functional, torch, torch.Tensor):
                self._patch(undo, owner, "softmax", self._saw_softmax)
            self._patch(undo, torch.nn.functional, "scaled_dot_product_attention", self._saw_fused)
            for home in {type(module).__module__ for module in self.model.modules()}:
                if callable(getattr(sys.modules.get(home), "apply_rotary_pos_emb", None)):
                    self._patch(undo, sys.modules[home], "apply_rotary_pos_emb", self._saw_rotation)
            mha = getattr(torch.backends, "mha", None)
            if mha is not None:  # the fast path of nn.TransformerEncoder computes layers without calling their modules
                undo.callback(mha.set_fastpath_enabled, mha.get_fastpath_enabled())
                mha.set_fastpath_enabled(False)
            self._undo = undo.pop_all()

    def stop(self):
        """Takes the hooks off and writes the file. Returns its path."""
        if self._undo is None:
            raise RecordError("this recording has not started, or has ended")
        self.abort()
        return self._write()

    def abort(self):
        """Takes the hooks off and writes nothing."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo.close()

    def __enter__(self):
        self._start(stacklevel=3)
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.abort()
        elif self._undo is not None:  # `calls` may have ended it
            self.stop()

    # ---- what hooks see

    def _stack(self):
        if not hasattr(self._thread, "calls"):
            self._thread.calls = []
        return self._thread.calls

    def _before(self, name, module, args, kwargs):
        stack = self._stack()
        if not name:
            stack.clear()  # what an exception left there
        with self._lock:
            n = self._counts.get(name, 0)
            self._counts[name] = n + 1
        call = _Call(name, f"#{n}" if n else "")
        stack.append(call)
        if not name:
            self._keep_inputs(module, args, kwargs, call.suffix)
        if "Norm" in type(module).__name__:
            for key, tensor in _named(f"{name}.in" if name else "in", args):
                self._keep(key + call.suffix, tensor)
        if isinstance(module, torch.nn.MultiheadAttention):
            bound = inspect.signature(module.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            given = dict(bound.arguments)
            call.heads = module.num_heads
            call.asked = (given["need_weights"], given["average_attn_weights"])
            return (), {**given, "need_weights": True, "average_attn_weights": False}
        return None

    def _after(self, name, module, args, output):
        stack, call = self._stack(), None
        while stack:
            call = stack.pop()
            if call.name == name:
                break
        if call is None or call.name != name:
            return None  # it began before the recording did
        if call.asked is not None:
            need, average = call.asked
            out, weights = output
            output = (out, (weights.mean(dim=-3) if average else weights) if need else None)
        for key, tensor in _named(name, output):
            if call.asked is None or not key.endswith("[1]"):  # weights of nn.MultiheadAttention are kept as `.weights`
                self._keep(key + call.suffix, tensor)
        if not name:
            self._passes += 1
            if self._passes == self.calls:
                self.stop()
        return output if call.asked is not None else None

    def _keep_inputs(self, module, args, kwargs, suffix):
        try:
            given = inspect.signature(module.forward).bind(*args, **kwargs).arguments
        except (TypeError, ValueError):  # the forward pass will say better what is wrong
            return
        parameters = inspect.signature(module.forward).parameters
        for name, value in given.items():
            if parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                pairs = [p for k, v in value.items() for p in _named(k, v)]
            else:
                pairs = _named(name, value)
            for key, tensor in pairs:
                if self._keep(key + suffix, tensor):
                    self.inputs.append(key + suffix)

    def _patch(self, undo, owner, attribute, saw):
        """Lets `saw` see each outermost call of a function, for as long as the recording lasts."""
        original = getattr(owner, attribute)

        @functools.wraps(original)
        def watched(*args, **kwargs):
            here = self._thread
            if getattr(here, "inside", False) or not self._stack():
                return original(*args, **kwargs)
            here.inside = True
            try:
                result = original(*args, **kwargs)
            finally:
                here.inside = False
            saw(args, kwargs, result)
            return result

        setattr(owner, attribute, watched)
        undo.callback(setattr, owner, attribute, original)

    def _keep_inside(self, key, tensor):
        """Keeps what was computed inside the module that runs now."""
        call = self._stack()[-1]
        if call.heads is not None and tensor.dim() == 3:  # batch and heads are one axis there
            tensor = tensor.reshape(-1, call.heads, *tensor.shape[1:])
        self._keep((f"{call.name}.{key}" if call.name else key) + call.suffix, tensor)

    def _saw_softmax(self, args, kwargs, result):
        self._keep_inside("scores", args[0] if args else kwargs["input"])
        self._keep_inside("weights", result)

    def _saw_rotation(self, args, kwargs, result):
        if isinstance(result, tuple) and len(result) == 2:
            self._keep_inside("q_rotated", result[0])
            self._keep_inside("k_rotated", result[1])

    def _saw_fused(self, args, kwargs, result):
        name = self._stack()[-1].name + ".weights"
        reason = "fused attention holds no weights"
        if [name, reason] not in self.skipped:
            if not any(r == reason for _, r in self.skipped):
                how = 'attn_implementation="eager" in from_pretrained, or model.set_attn_implementation("eager")'
                said = f"{self._stack()[-1].name}: {reason}, so that none are recorded; load the model with {how}"
                warnings.warn(said, stacklevel=3)
            self.skipped.append([name, reason])

    # ---- what is kept

    def _wanted(self, name):
        fits = lambda patterns: any(fnmatch.fnmatchcase(name, p) for p in patterns)
        return (self.only is None or fits(self.only)) and not (self.skip and fits(self.skip))

    def _keep(self, name, tensor):
        if not self._wanted(name):
            return False
        try:
            kept, reason = _copied(tensor), None
        except (RuntimeError, NotImplementedError) as e:
            kept, reason = None, str(e).strip().split("\n")[0]
        if isinstance(kept, str):
            kept, reason = None, kept
        with self._lock:
            if kept is None:
                self.skipped.append([name, reason])
                return False
            self.tensors[_free(self.tensors, name)] = kept
        return True

    # ---- the file

    def _write(self):
        if not self.tensors:
            raise RecordError(self._why_nothing())
        config = getattr(self.model, "config", None)
        kind = type(self.model)
        about = {
            "format": "pt",
            "tt_record": "1",
            "framework": f"torch {torch.__version__}",
            "class": f"{kind.__module__}.{kind.__qualname__}",
            "training": str(self.model.training).lower(),
            "rank": str(self.rank),
            "world_size": str(self.world),
            "order": json.dumps(list(self.tensors)),
            "inputs": json.dumps(self.inputs),
            "classes": json.dumps(self.classes),
            "skipped": json.dumps(self.skipped),
        }
        if "transformers" in sys.modules:
            about["framework"] += f", transformers {sys.modules['transformers'].__version__}"
        for key, attribute in (("model_type", "model_type"), ("attention", "_attn_implementation")):
            value = getattr(config, attribute, None)
            if isinstance(value, str):
                about[key] = value
        _save(self.tensors, self.path, about)
        return self.path

    def _why_nothing(self):
        if not self._counts:
            return (
                "nothing was recorded: no forward pass of this model happened. Call the very object given to record(); "
                "compiled models and CUDA graphs call no hooks"
            )
        if self.skipped:
            name, reason = self.skipped[0]
            return f"nothing was recorded: {name}: {reason}"
        return f"nothing was recorded: no name fits only={self.only}, skip={self.skip}"


def _folder(path):
    """The folder a file is to be written into, which must be there."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise RecordError(f"there is no folder {folder!r} to write {os.path.basename(path)!r} into")
    return folder


def _save(tensors, path, about):
    """Writes a file whole or not at all."""
    descriptor, unfinished = tempfile.mkstemp(prefix=".tt_record.", suffix=".tmp", dir=_folder(path))
    try:
        os.close(descriptor)
        save_file(tensors, unfinished, metadata=about)
        with open(unfinished, "rb+") as f:
            os.fsync(f.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(unfinished, 0o666 & ~mask)  # mkstemp's own is 0600
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def merge(paths, path):
    """Puts the files of the ranks of one engine together, in order of rank; returns the tensors.

    What all ranks have alike is taken once. What differs is a share of each: heads where there are four axes (axis 1),
    columns else. What only some ranks have (layers of a pipeline) is theirs. Ranks that read different inputs have no
    shares of the same tensors.
    """
    ranks = {}
    for one in paths:
        try:
            with safe_open(one, "pt") as f:
                about = f.metadata() or {}
                tensors = {name: f.get_tensor(name) for name in f.keys()}
        except (SafetensorError, OSError) as e:
            raise RecordError(f"{one}: {e}") from e
        if "rank" not in about:
            raise RecordError(f"{one} was not written by tt_record")
        if int(about["rank"]) in ranks:
            raise RecordError(f"{one}: another file is of rank {about['rank']} too")
        ranks[int(about["rank"])] = (about, tensors)
    about = dict(ranks[min(ranks)][0])
    world = int(about["world_size"])
    if sorted(ranks) != list(range(world)):
        raise RecordError(f"{world} ranks were recorded, and these files are of {sorted(ranks)}: give all of them")
    order = dict.fromkeys(name for r in range(world) for name in json.loads(ranks[r][0]["order"]))
    for name in json.loads(about.get("inputs", "[]")):
        parts = [ranks[r][1][name] for r in range(world) if name in ranks[r][1]]
        if not all(_alike(parts[0], other) for other in parts[1:]):
            raise RecordError(
                f"the ranks read different inputs ({name}): each had a batch of its own, or a part of the sequence; "
                "compare each file by itself"
            )
    merged = {}
    for name in order:
        parts = [ranks[r][1][name] for r in range(world) if name in ranks[r][1]]
        if all(_alike(parts[0], other) for other in parts[1:]):
            merged[name] = parts[0]
            continue
        axis = 1 if parts[0].dim() == 4 else parts[0].dim() - 1
        try:
            merged[name] = torch.cat(parts, axis)
        except (RuntimeError, IndexError) as e:
            shapes = ", ".join(str(list(part.shape)) for part in parts)
            raise RecordError(f"{name} has shapes {shapes}, which do not go together along axis {axis}") from e
    about |= {"rank": "all", "order": json.dumps(list(merged))}
    _save(merged, path, about)
    return merged


def _alike(a, b):
    """Whether two ranks computed the same; each may have rounded in its own order."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    return torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-6, equal_nan=True)


def _patterns(what, patterns):
    if isinstance(patterns, str):
        raise RecordError(f"{what} must be a list of patterns: [{patterns!r}]")
    return None if patterns is None else list(patterns)


def _unwrapped(model):
    """The model inside DistributedDataParallel, FSDP, DeepSpeedEngine and the like, whose forward pass calls it."""
    while True:
        inside = model._modules
        if "_orig_mod" in inside:
            raise RecordError("a compiled model calls no hooks: record and call `model._orig_mod` instead")
        if isinstance(model, torch.jit.ScriptModule):
            raise RecordError("a TorchScript model calls no Python hooks: record the model it was made from")
        wrapped = next((name for name in ("module", *WRAPPERS) if list(inside) == [name]), None)
        if wrapped is None or inside[wrapped] is None:
            return model
        model = inside[wrapped]


def _named(name, value):
    """The tensors of an output or argument, each with its name."""
    if isinstance(value, torch.Tensor):
        return [(name or "output", value)]
    if isinstance(value, dict):  # also transformers.ModelOutput
        pairs = []
        for key, inner in value.items():
            key = f"{name}.{key}" if name else str(key)
            if isinstance(inner, (tuple, list)):
                for i, one in enumerate(inner):
                    if isinstance(one, torch.Tensor):
                        pairs.append((f"{key}_{i}", one))
            else:
                pairs += _named(key, inner)
        return pairs
    if isinstance(value, (tuple, list)):
        base = name or "output"
        return [(f"{base}[{i}]" if i else base, one) for i, one in enumerate(value) if isinstance(one, torch.Tensor)]
    return []


def _free(taken, name):
    """The name itself, or else with the first free number, where one call makes several tensors of one name."""
    base, hash_mark, number = name.partition("#")
    i = 0
    while name in taken:
        i += 1
        name = f"{base}[{i}]{hash_mark}{number}"
    return name


def _copied(tensor):
    """A copy on the CPU that nobody changes any more, or why there is none."""
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):  # DTensor: this process's part
        tensor = tensor.to_local()
    if tensor.is_nested or tensor.layout is not torch.strided:
        return "a nested or sparse tensor has no rows and columns"
    if tensor.device.type == "meta":
        return "a tensor on the meta device has no numbers"
    if tensor.is_quantized:
        return f"{tensor.dtype} is not a type of safetensors"
    return tensor.resolve_conj().resolve_neg().to("cpu", copy=True).contiguous()


# ---- as a script


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
    parser = argparse.ArgumentParser(prog="tt_record.py", description="Records one forward pass of a Hugging Face model.")
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
    parser.add_argument("-o", "--output", default="ref.safetensors", metavar="FILE", help="(ref.safetensors)")
    options = parser.parse_args(arguments)
    try:
        if options.merge:
            tensors = merge(options.merge, options.output)
            print(f"{options.output}: {len(tensors)} tensors, {os.path.getsize(options.output)} bytes")
            return 0
        if not options.text and not options.ids:
            raise RecordError("say what the model reads: --text or --ids")
        model = _load(options.hf, options.class_name).eval().to(options.device)
        if options.dtype:
            model = model.to(getattr(torch, options.dtype))
        inputs = {name: tensor.to(options.device) for name, tensor in _inputs(options, model).items()}
        recording = record(model, options.output, only=options.only, skip=options.skip)
        with torch.no_grad(), recording:
            model(**inputs)
    except (RecordError, OSError, ValueError, RuntimeError, IndexError) as e:
        print(f"tt_record: {e}", file=sys.stderr)
        return 2
    for name, reason in recording.skipped:
        print(f"tt_record: not recorded: {name}: {reason}", file=sys.stderr)
    print(f"{recording.path}: {len(recording.tensors)} tensors, {os.path.getsize(recording.path)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
