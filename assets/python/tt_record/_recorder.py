"""Hooks that write what a model computes to a file."""
import contextlib
import fnmatch
import functools
import inspect
import json
import os
import sys
import threading
import warnings

import torch

from ._errors import RecordError
from ._parallel import fused_parts, mesh_of, placement, rank_and_world, whole
from ._spool import Spool, folder_of, free_name

# What engines and wrappers put into the names of the modules they wrap.
WRAPPERS = ("_fsdp_wrapped_module", "_checkpoint_wrapped_module")


class _Call:
    """A module's call that has begun and not ended."""

    def __init__(self, name, suffix, module):
        self.name, self.suffix, self.module = name, suffix, module
        self.heads = module.num_heads if isinstance(module, torch.nn.MultiheadAttention) else None
        self.weighed = False  # a softmax was seen inside
        self.random = None  # the state of random numbers when it began, where it is computed again


class record:
    """Records the forward passes of `model` between `start()` and `stop()`, or inside a `with` block.

    path       a safetensors file, replaced if it exists; with `.rankN` before the ending where there are several
               processes. It is written whole or not at all, and not where the block raised.
    only       patterns such as `["encoder.layer.0.*", "logits"]`: nothing else is kept
    skip       patterns of names that are not kept
    calls      write and stop by itself after so many passes of the whole model
    backward   keep the gradient of every output too, and of every parameter
    max_bytes  keep no more than so many bytes; what comes after is listed under `skipped`
    mesh       the place of this process: {"dp": (place, size), …} of dp, cp, tp and pp, or a DeviceMesh with names
    rename     a function from the name of a module to the name it has in the whole model, such as of a pipeline's stage
    """

    def __init__(
        self, model, path, *, only=None, skip=None, calls=None, backward=False, max_bytes=None, mesh=None, rename=None
    ):
        if not isinstance(model, torch.nn.Module):
            hint = "; give its `.model`" if isinstance(getattr(model, "model", None), torch.nn.Module) else ""
            raise RecordError(f"a torch.nn.Module is wanted, not {type(model).__name__}{hint}")
        if calls is not None and calls < 1:
            raise RecordError(f"calls must be at least 1, not {calls}")
        if calls is not None and backward:
            raise RecordError("calls ends the recording before gradients are there: leave it out, and call stop()")
        if max_bytes is not None and max_bytes < 0:
            raise RecordError(f"max_bytes must be 0 or more, not {max_bytes}")
        self.model = _unwrapped(model)
        self.rank, self.world = rank_and_world()
        self.mesh = mesh_of(mesh, self.world)
        path = os.fspath(path)
        stem, ending = os.path.splitext(path)
        if ending != ".safetensors":
            raise RecordError(f"{path!r} must end in .safetensors")
        self.path = f"{stem}.rank{self.rank}{ending}" if self.world > 1 else path
        folder_of(self.path)
        self.only, self.skip, self.calls = _patterns("only", only), _patterns("skip", skip), calls
        self.backward, self.max_bytes, self.rename = backward, max_bytes, rename or (lambda name: name)
        self.inputs, self.outputs, self.parameters, self.skipped, self.classes = [], [], [], [], {}
        self.placements, self.fused, self.batch_axis, self.partial_rotary = {}, {}, {}, {}
        self._passes, self._counts = 0, {}
        self._thread, self._lock = threading.local(), threading.Lock()
        self._undo, self._spool, self._fast = None, None, False

    @property
    def tensors(self):
        """Names and shapes of what was recorded so far."""
        return {name: entry[2] for name, entry in self._spool.entries.items()} if self._spool else {}

    # ---- begin and end

    def start(self):
        """Hooks the model. Returns the recording itself."""
        self._start(stacklevel=3)
        return self

    def _start(self, stacklevel):
        if self._undo is not None:
            raise RecordError("this recording has started already")
        drops = any(isinstance(m, torch.nn.Dropout) and m.p > 0 for m in self.model.modules())
        if self.model.training and (drops or not self.backward):
            said = "the model is in training mode: dropout makes this run unrepeatable; model.eval() ends it"
            warnings.warn(said, stacklevel=stacklevel)
        self._spool = Spool(self.path)
        with contextlib.ExitStack() as undo:
            for name, module in self.model.named_modules():
                if any(w in module._modules for w in WRAPPERS):
                    continue  # the module inside has the same name, and is the one meant
                name = ".".join(part for part in name.split(".") if part not in WRAPPERS)
                name = self.rename(name) if name else name
                self._describe(name, module)
                before = module.register_forward_pre_hook(functools.partial(self._before, name), with_kwargs=True)
                undo.callback(before.remove)
                after = module.register_forward_hook(functools.partial(self._after, name), with_kwargs=True)
                undo.callback(after.remove)
            for owner in (torch.nn.functional, torch, torch.Tensor):
                self._patch(undo, owner, "softmax", self._saw_softmax)
            self._patch(undo, torch.nn.functional, "scaled_dot_product_attention", self._saw_fused)
            for home in {type(module).__module__ for module in self.model.modules()}:
                if callable(getattr(sys.modules.get(home), "apply_rotary_pos_emb", None)):
                    self._patch(undo, sys.modules[home], "apply_rotary_pos_emb", self._saw_rotation)
            mha = getattr(torch.backends, "mha", None)
            attends = (torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer)
            if mha is not None and any(isinstance(m, attends) for m in self.model.modules()):
                # The fast path computes layers without calling their modules: it is taken for the result alone.
                self._fast = mha.get_fastpath_enabled()
                undo.callback(mha.set_fastpath_enabled, self._fast)
                mha.set_fastpath_enabled(False)
            self._undo = undo.pop_all()

    def _describe(self, name, module):
        self.classes[name] = type(module).__name__
        parts = fused_parts(name, module)
        if parts is not None:
            self.fused[name] = parts
        if getattr(module, "batch_first", None) is False:
            self.batch_axis[name] = 1

    def stop(self):
        """Takes the hooks off and writes the file. Returns its path."""
        if self._undo is None:
            raise RecordError("this recording has not started, or has ended")
        self._unhook()
        try:
            if self.backward:
                self._keep_parameters()
            return self._write()
        finally:
            self._spool.close()

    def abort(self):
        """Takes the hooks off and writes nothing."""
        self._unhook()
        if self._spool is not None:
            self._spool.close()

    def _unhook(self):
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

    def _quiet(self):
        return getattr(self._thread, "quiet", False)

    def _before(self, name, module, args, kwargs):
        if self._quiet():
            return
        stack = self._stack()
        if not name:
            stack.clear()  # what an exception left there
        with self._lock:
            n = self._counts.get(name, 0)
            self._counts[name] = n + 1
        call = _Call(name, f"#{n}" if n else "", module)
        stack.append(call)
        if not name:
            self._keep_inputs(module, args, kwargs, call.suffix)
        if "Norm" in type(module).__name__:
            for key, tensor in _named(f"{name}.in" if name else "in", args):
                self._keep(key + call.suffix, tensor)
        if call.heads is not None or not name and self._twice():
            call.random = _random_state()

    def _twice(self):
        """Whether the model takes ways for its result that call no modules."""
        return self._fast and not self.model.training and not torch.is_grad_enabled()

    def _after(self, name, module, args, kwargs, output):
        if self._quiet():
            return None
        stack, call = self._stack(), None
        while stack:
            call = stack.pop()
            if call.name == name:
                break
        if call is None or call.name != name:
            return None  # it began before the recording did
        if call.heads is not None and not call.weighed:
            self._attend_again(call, module, args, kwargs)
        for key, tensor in _named(name, output):
            if call.heads is None or not key.endswith("[1]"):  # weights of nn.MultiheadAttention are kept as `.weights`
                self._keep(key + call.suffix, tensor)
                axis = placement(module, tensor)
                if axis is not None:
                    self._place(key + call.suffix, axis)
            if not name and key not in self.outputs:
                self.outputs.append(key)
        if name:
            return None
        if self._twice() and call.random is not None:
            output = self._fast_again(call, module, args, kwargs)
        self._passes += 1
        if self._passes == self.calls:
            self.stop()
        return output

    def _attend_again(self, call, module, args, kwargs):
        """Scores and weights of nn.MultiheadAttention, which its fused way does not hold: computed once more."""
        wanted = [f"{call.name}.{key}{call.suffix}" for key in ("scores", "weights")]
        if not any(self._wanted(name) for name in wanted):
            return
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
        bound.apply_defaults()
        given = {**bound.arguments, "need_weights": True, "average_attn_weights": False}
        self._stack().append(call)
        try:
            with torch.no_grad(), _at_random_state(call.random):
                module.forward(**given)
        finally:
            self._stack().pop()

    def _fast_again(self, call, module, args, kwargs):
        """The result as the model computes it when nobody looks on."""
        self._thread.quiet = True
        torch.backends.mha.set_fastpath_enabled(True)
        try:
            with _at_random_state(call.random):
                return module.forward(*args, **kwargs)
        finally:
            torch.backends.mha.set_fastpath_enabled(False)
            self._thread.quiet = False

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
            if getattr(here, "inside", False) or self._quiet() or not self._stack():
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
        name = (f"{call.name}.{key}" if call.name else key) + call.suffix
        self._keep(name, tensor)
        if tensor.dim() == 4 and self.placements and any(
            n.startswith(f"{call.name}.") and axis == -1 for n, axis in self.placements.items()
        ):
            self._place(name, 1)  # heads, where the products that made them are shared

    def _saw_softmax(self, args, kwargs, result):
        self._stack()[-1].weighed = True
        self._keep_inside("scores", args[0] if args else kwargs["input"])
        self._keep_inside("weights", result)

    def _saw_rotation(self, args, kwargs, result):
        if isinstance(result, tuple) and len(result) == 2:
            call = self._stack()[-1]
            for key, tensor in zip(("q_rotated", "k_rotated"), result):
                self._keep_inside(key, tensor)
                head = getattr(call.module, "head_dim", None) or getattr(call.module, "head_size", None)
                if isinstance(head, int) and tensor.shape[-1] < head:
                    name = f"{call.name}.{key}" if call.name else key
                    self.partial_rotary[name] = {"rotary": tensor.shape[-1], "head": head}

    def _saw_fused(self, args, kwargs, result):
        call = self._stack()[-1]
        if call.heads is not None:
            return  # computed again when the module ends
        reason = "fused attention holds no weights"
        if [call.name + ".weights", reason] not in self.skipped:
            if not any(r == reason for _, r in self.skipped):
                how = 'attn_implementation="eager" in from_pretrained, or model.set_attn_implementation("eager")'
                said = f"{call.name}: {reason}, so that none are recorded; load the model with {how}"
                warnings.warn(said, stacklevel=3)
            self.skipped.append([call.name + ".weights", reason])

    # ---- what is kept

    def _wanted(self, name):
        fits = lambda patterns: any(fnmatch.fnmatchcase(name, p) for p in patterns)
        return (self.only is None or fits(self.only)) and not (self.skip and fits(self.skip))

    def _place(self, name, axis):
        if name in self._spool.entries:
            self.placements[name] = axis

    def _keep(self, name, tensor):
        if self.backward and tensor.requires_grad and self._undo is not None and self._wanted(_grad(name)):
            tensor.register_hook(functools.partial(self._keep_gradient, _grad(name)))
        return self._write_down(name, tensor)

    def _keep_gradient(self, name, gradient):
        if self._undo is not None:
            self._write_down(name, gradient)

    def _keep_parameters(self):
        """Gradients of parameters, gathered where they are in pieces."""
        for name, parameter, gradient in _gradients(self.model):
            name = ".".join(part for part in name.split(".") if part not in WRAPPERS)
            module, dot, last = name.rpartition(".")
            name = f"{self.rename(module)}{dot}{last}.grad" if module else f"{last}.grad"
            if self._write_down(name, gradient):
                self.parameters.append(name)

    def _write_down(self, name, tensor):
        if not self._wanted(name):
            return False
        try:
            kept, reason = _copied(tensor), None
        except (RuntimeError, NotImplementedError) as e:
            kept, reason = None, str(e).strip().split("\n")[0]
        if isinstance(kept, str):
            kept, reason = None, kept
        with self._lock:
            if kept is not None and self.max_bytes is not None:
                if self._spool.bytes + kept.numel() * kept.element_size() > self.max_bytes:
                    kept, reason = None, f"max_bytes={self.max_bytes} would be exceeded"
            if kept is not None:
                try:
                    self._spool.add(free_name(self._spool.entries, name), kept)
                except RecordError as e:
                    kept, reason = None, str(e)
            if kept is None:
                self.skipped.append([name, reason])
        return kept is not None

    # ---- the file

    def _write(self):
        if not self._spool.entries:
            raise RecordError(self._why_nothing())
        config = getattr(self.model, "config", None)
        kind = type(self.model)
        about = {
            "format": "pt",
            "tt_record": "2",
            "framework": f"torch {torch.__version__}",
            "class": f"{kind.__module__}.{kind.__qualname__}",
            "training": str(self.model.training).lower(),
            "rank": str(self.rank),
            "world_size": str(self.world),
            "order": json.dumps(list(self._spool.entries)),
            "inputs": json.dumps(self.inputs),
            "outputs": json.dumps(self.outputs),
            "classes": json.dumps(self.classes),
            "skipped": json.dumps(self.skipped),
        }
        for key in ("mesh", "placements", "fused", "batch_axis", "partial_rotary", "parameters"):
            if getattr(self, key):
                about[key] = json.dumps(getattr(self, key))
        if "transformers" in sys.modules:
            about["framework"] += f", transformers {sys.modules['transformers'].__version__}"
        for key, attribute in (("model_type", "model_type"), ("attention", "_attn_implementation")):
            value = getattr(config, attribute, None)
            if isinstance(value, str):
                about[key] = value
        self._spool.finish(about)
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


def _grad(name):
    base, mark, number = name.partition("#")
    return f"{base}.grad{mark}{number}"


def _gradients(model):
    """Parameters that have a gradient."""
    fsdp = getattr(torch.distributed, "fsdp", None)
    sharded = getattr(fsdp, "FullyShardedDataParallel", None)
    if sharded is not None and any(isinstance(m, sharded) for m in model.modules()):
        with sharded.summon_full_params(model, with_grads=True, writeback=False):
            yield from [(n, p, p.grad.clone()) for n, p in model.named_parameters() if p.grad is not None]
        return
    yield from ((n, p, p.grad) for n, p in model.named_parameters() if p.grad is not None)


def _random_state():
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
    return torch.get_rng_state(), cuda


@contextlib.contextmanager
def _at_random_state(state):
    """Random numbers as they were at `state`; afterwards as they are now."""
    now = _random_state()
    _set_random_state(state)
    try:
        yield
    finally:
        _set_random_state(now)


def _set_random_state(state):
    cpu, cuda = state
    torch.set_rng_state(cpu)
    if cuda is not None:
        torch.cuda.set_rng_state_all(cuda)


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


def _copied(tensor):
    """The numbers on the CPU as one piece, whole, or why there are none."""
    tensor = whole(tensor.detach())
    if tensor.is_nested or tensor.layout is not torch.strided:
        return "a nested or sparse tensor has no rows and columns"
    if tensor.device.type == "meta":
        return "a tensor on the meta device has no numbers"
    if tensor.is_quantized:
        return f"{tensor.dtype} is not a type of safetensors"
    return tensor.resolve_conj().resolve_neg().to("cpu").contiguous()
