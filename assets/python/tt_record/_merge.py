"""Recordings of several processes as the recording of one."""
import json

import torch
from safetensors import SafetensorError, safe_open

from ._errors import RecordError
from ._parallel import WAYS
from ._spool import Spool


class _File:
    """What one process recorded. Tensors are read when they are wanted."""

    def __init__(self, path):
        self.path = path
        try:
            self.file = safe_open(path, "pt")
            self.file.__enter__()
            self.about = self.file.metadata() or {}
            names = set(self.file.keys())
        except (SafetensorError, OSError) as e:
            raise RecordError(f"{path}: {e}") from e
        if "rank" not in self.about:
            raise RecordError(f"{path} was not written by tt_record")
        if self.about["rank"] == "all":
            raise RecordError(f"{path} is put together already")
        self.rank = int(self.about["rank"])
        self.order = [name for name in self.json("order", []) if name in names]
        self.inputs, self.outputs = self.json("inputs", []), self.json("outputs", [])
        self.parameters = set(self.json("parameters", []))
        self.placements, self.fused = self.json("placements", {}), self.json("fused", {})
        self.batch_axis = self.json("batch_axis", {})
        self.mesh = self.json("mesh", None)

    def json(self, key, default):
        return json.loads(self.about[key]) if key in self.about else default

    def has(self, name):
        return name in self._names

    @property
    def _names(self):
        if not hasattr(self, "_set"):
            self._set = set(self.order)
        return self._set

    def get(self, name):
        return self.file.get_tensor(name)


class _Joined:
    """Several recordings as one; what their kind is says `part`."""

    def __init__(self, parts):
        self.parts = parts
        first = parts[0]
        self.about, self.fused, self.batch_axis = first.about, first.fused, first.batch_axis
        self.order = list(dict.fromkeys(name for part in parts for name in part.order))
        self.inputs, self.outputs = first.inputs, first.outputs
        self.parameters = set().union(*(part.parameters for part in parts))
        self.placements = {}

    def has(self, name):
        return any(part.has(name) for part in self.parts)

    def all(self, name):
        return [part.get(name) for part in self.parts if part.has(name)]

    def axis_of_batch(self, name):
        """1 where a module has the tokens before the batch, else 0."""
        module = _module(name)
        while module:
            if module in self.batch_axis:
                return self.batch_axis[module]
            module = module.rpartition(".")[0]
        return self.batch_axis.get("", 0)


class _Shares(_Joined):
    """Tensor parallel: what all have alike is taken once, the rest are shares."""

    def __init__(self, parts):
        super().__init__(parts)
        for part in parts:
            self.placements.update(part.placements)

    def get(self, name):
        tensors = self.all(name)
        axis = self.placements.get(name)
        if axis is None and all(alike(tensors[0], other) for other in tensors[1:]):
            return tensors[0]
        if axis is None:
            # Nothing says: heads where there are four axes, columns else.
            axis = 1 if tensors[0].dim() == 4 else -1
        parts = self.fused.get(_module(name)) if axis in (-1, tensors[0].dim() - 1) else None
        try:
            if parts is None:
                return torch.cat(tensors, axis)
            return _by_parts(tensors, parts)
        except (RuntimeError, IndexError) as e:
            raise RecordError(f"{name} has shapes {_shapes(tensors)}, which do not go together along axis {axis}") from e


class _Stages(_Joined):
    """Pipeline parallel: the inputs of the first stage, the outputs of the last, and the layers of all."""

    def __init__(self, parts):
        super().__init__(parts)
        self.outputs = parts[-1].outputs
        drop = [set() for _ in parts]
        for i, part in enumerate(parts):
            first, last = i == 0, i == len(parts) - 1
            drop[i] |= set() if first else set(part.inputs)
            drop[i] |= set() if last else set(part.outputs)
            if not last:
                drop[i] |= {f"{name}.grad" for name in part.outputs}
        self.drop = drop
        kept = (name for i, part in enumerate(parts) for name in part.order if name not in drop[i])
        self.order = list(dict.fromkeys(kept))

    def has(self, name):
        return any(p.has(name) and name not in self.drop[i] for i, p in enumerate(self.parts))

    def get(self, name):
        found = [p.get(name) for i, p in enumerate(self.parts) if p.has(name) and name not in self.drop[i]]
        return found[0]


class _Batches(_Joined):
    """Data parallel (`axis` 0): each process had rows of its own. Context parallel (1): each had tokens of its own."""

    def __init__(self, parts, way):
        super().__init__(parts)
        self.tokens = way == "cp"
        first = next((name for name in self.inputs if self.has(name) and parts[0].get(name).dim() > 0), None)
        self.rows = [part.get(first).shape[1 if self.tokens else 0] for part in parts] if first else [1] * len(parts)

    def get(self, name):
        tensors = self.all(name)
        base, mark, call = name.partition("#")
        share = [rows / sum(self.rows) for rows in self.rows]
        mean = lambda: sum(t.double() * w for t, w in zip(tensors, share)).to(tensors[0].dtype)
        is_gradient = base.endswith(".grad")
        if base in self.parameters or tensors[0].dim() == 0:
            return mean() if tensors[0].is_floating_point() and not _all_alike(tensors) else tensors[0]
        axis = self.axis_of_batch(name)
        axis = 1 - axis if self.tokens else axis
        # A gradient lies as what it is the gradient of.
        of = base[: -len(".grad")] + mark + call if is_gradient else name
        if not self._is_batch(of if self.has(of) else name, axis):
            # Positions and tables are alike in all; each had the gradient of the mean loss of its own rows.
            return mean() if is_gradient else tensors[0]
        if is_gradient:
            tensors = [t * w for t, w in zip(tensors, share)]
        return torch.cat(tensors, axis)

    def _is_batch(self, name, axis):
        """Whether a tensor has rows of the batch along an axis, of which each process had some."""
        tensors = self.all(name)
        same = _all_alike(tensors)
        fits = all(t.dim() > axis and t.shape[axis] == rows for t, rows in zip(tensors, self.rows))
        other = {tuple(n for i, n in enumerate(t.shape) if i != axis) for t in tensors}
        if same and not (fits and (name in self.inputs or self.rows[0] > 1 and tensors[0].dim() > 2)):
            return False
        if not fits or len(other) > 1:
            raise RecordError(
                f"{name} has shapes {_shapes(tensors)}, which do not go together along the "
                f"{'tokens' if self.tokens else 'batch'}: pad all processes to one length, or compare each file by itself"
            )
        return True


def _all_alike(tensors):
    return all(alike(tensors[0], other) for other in tensors[1:])


class _Micro:
    """A pipeline stage that was called once for each part of the batch: the calls as one."""

    def __init__(self, part, count):
        self.part, self.count = part, count
        self.about, self.fused, self.placements = part.about, part.fused, part.placements
        self.batch_axis, self.parameters = part.batch_axis, part.parameters
        base = lambda names: list(dict.fromkeys(name.partition("#")[0] for name in names))
        self.order, self.inputs, self.outputs = base(part.order), base(part.inputs), base(part.outputs)

    def has(self, name):
        return self.part.has(name)

    def get(self, name):
        calls = [name] + [f"{name}#{i}" for i in range(1, self.count)]
        tensors = [self.part.get(call) for call in calls if self.part.has(call)]
        alone = name in self.parameters or tensors[0].dim() == 0 or len(tensors) < self.count
        if alone or name not in self.inputs and _all_alike(tensors):
            return tensors[0]  # tables and positions: the same in each call
        return torch.cat(tensors, self.batch_axis.get(_module(name), 0))


def _module(name):
    """The module that a name is of."""
    base = name.partition("#")[0].partition("[")[0]
    for ending in (".grad", ".scores", ".weights", ".in", ".q_rotated", ".k_rotated"):
        if base.endswith(ending):
            base = base[: -len(ending)]
    return base


def _shapes(tensors):
    return ", ".join(str(list(part.shape)) for part in tensors)


def _by_parts(tensors, parts):
    """Shares of several things next to each other: first all shares of the first thing."""
    count = parts if isinstance(parts, int) else len(parts)
    widths = [t.shape[-1] // count for t in tensors] if isinstance(parts, int) else None
    out = []
    for i in range(count):
        for t, width in zip(tensors, widths or [None] * len(tensors)):
            start = i * width if width is not None else sum(parts[:i])
            out.append(t[..., start : start + (width if width is not None else parts[i])])
    return torch.cat(out, -1)


def alike(a, b):
    """Whether two processes computed the same; each may have rounded in its own order."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    return torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-6, equal_nan=True)


def _arranged(files):
    """The recordings of all processes as one, by their places in the mesh."""
    meshes = [f.mesh for f in files]
    if all(m is None for m in meshes):
        first = files[0]
        same_inputs = all(
            alike(first.get(name), f.get(name)) for name in first.inputs if first.has(name) for f in files if f.has(name)
        )
        return _Shares(files) if same_inputs else _Batches(files, "dp")
    if any(m is None or set(m) != set(meshes[0]) for m in meshes):
        raise RecordError("some of these files have a mesh and others have none, or another one")
    # The innermost first: shares of tensors, then layers, then parts of the sequence and of the batch.
    groups = [({way: m[way][0] for way in m}, f) for m, f in zip(meshes, files)]
    for way in ("tp", "pp", "cp", "dp"):
        if way not in meshes[0]:
            continue
        joined = {}
        for place, part in groups:
            rest = tuple(sorted((w, p) for w, p in place.items() if w != way))
            joined.setdefault(rest, []).append((place[way], part))
        groups = []
        for rest, parts in joined.items():
            parts = [part for _, part in sorted(parts, key=lambda p: p[0])]
            kinds = {"tp": _Shares, "pp": _Stages}
            whole = kinds[way](parts) if way in kinds else _Batches(parts, way)
            groups.append((dict(rest), whole))
    return groups[0][1]


def merge(paths, path, *, microbatches=None):
    """Puts the files of all processes together into `path`; returns the names in it. One tensor is in memory at a time.

    microbatches    into how many parts a pipeline cut the batch: the calls of each stage are joined along it
    """
    files = {}
    for one in paths:
        file = _File(one)
        if file.rank in files:
            raise RecordError(f"{one}: another file is of rank {file.rank} too")
        files[file.rank] = file
    world = int(files[min(files)].about["world_size"])
    if sorted(files) != list(range(world)):
        raise RecordError(f"{world} ranks were recorded, and these files are of {sorted(files)}: give all of them")
    for way in (w for w in WAYS if files[0].mesh and w in files[0].mesh):
        if any(f.mesh[way][1] != files[0].mesh[way][1] for f in files.values()):
            raise RecordError(f"the files disagree about the size of {way}")
    parts = [files[r] for r in range(world)]
    if microbatches:
        parts = [_with_mesh(_Micro(f, microbatches), f) for f in parts]
    merged = _arranged(parts)
    spool = Spool(path)
    try:
        for name in merged.order:
            spool.add(name, merged.get(name).contiguous())
        about = dict(merged.about)
        for key in ("mesh", "placements"):
            about.pop(key, None)
        about |= {
            "rank": "all", "order": json.dumps(list(spool.entries)), "inputs": json.dumps(merged.inputs),
            "outputs": json.dumps(merged.outputs), "parameters": json.dumps(sorted(merged.parameters)),
        }  # fmt: skip
        spool.finish(about)
    except BaseException:
        spool.close()
        raise
    return list(spool.entries)


def _with_mesh(part, file):
    part.mesh, part.rank = file.mesh, file.rank
    return part
