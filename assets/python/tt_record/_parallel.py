"""Which process this is, and how the tensors that it holds are placed among the others."""
import os

import torch

from ._errors import RecordError

# Ways of sharing work: over the batch, the sequence, the width of tensors, and the layers.
WAYS = ("dp", "cp", "tp", "pp")

# Modules that compute several things at once, by the last part of their names, and how many equal ones.
FUSED = {
    "c_attn": 3, "qkv": 3, "qkv_proj": 3, "query_key_value": 3, "Wqkv": 3, "in_proj": 3, "att_proj": 3, "kv_proj": 2,
    "gate_up_proj": 2, "w12": 2, "gate_up": 2, "dense_h_to_4h_gated": 2,
}  # fmt: skip


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


def mesh_of(mesh, world):
    """`mesh` as {way: [place, size]}: a dict, or a DeviceMesh whose dimensions are named."""
    if mesh is None:
        return None
    if not isinstance(mesh, dict):
        names = getattr(mesh, "mesh_dim_names", None)
        if not names:
            raise RecordError("mesh must be a dict such as {'dp': (0, 2)}, or a DeviceMesh with mesh_dim_names")
        coordinate = mesh.get_coordinate()
        mesh = {name: (coordinate[i], mesh.size(i)) for i, name in enumerate(names)}
    unknown = [way for way in mesh if way not in WAYS]
    if unknown:
        raise RecordError(f"mesh has {unknown[0]!r}; there are dp (batch), cp (sequence), tp (width) and pp (layers)")
    known = {}
    for way, (place, size) in mesh.items():
        if not 0 <= place < size:
            raise RecordError(f"mesh says {way}: ({place}, {size}): the place must be below the size")
        known[way] = [int(place), int(size)]
    product = 1
    for _, size in known.values():
        product *= size
    if product != world:
        raise RecordError(f"mesh describes {product} processes, and there are {world}")
    return known


def whole(tensor):
    """All of a DTensor, gathered from every process; other tensors as they are. All processes must come here."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def fused_parts(name, module):
    """How many things a module computes at once, or the widths of them where they are unlike; None for one."""
    if hasattr(module, "q_size") and hasattr(module, "kv_size"):  # attention of vLLM
        return None
    kind = type(module).__name__
    if kind == "QKVParallelLinear":
        head = getattr(module, "head_size", 0)
        sizes = [getattr(module, "num_heads", 0) * head] + [getattr(module, "num_kv_heads", 0) * head] * 2
        return sizes if all(sizes) else 3
    if kind == "MergedColumnParallelLinear":
        return len(getattr(module, "output_sizes", (0, 0)))
    last = name.rpartition(".")[2]
    is_linear = hasattr(module, "weight") and not list(module.children())
    return FUSED.get(last) if is_linear else None


def placement(module, output):
    """Which axis of a module's output this process has a share of; None where it has all, or where nothing says."""
    if not isinstance(output, torch.Tensor) or output.dim() == 0:
        return None
    weight = getattr(module, "weight", None)
    for place in getattr(weight, "placements", None) or ():
        if place.is_shard(0) and isinstance(module, torch.nn.Linear):
            # A column-parallel product, unless its result was gathered.
            if output.shape[-1] < weight.shape[0]:
                return -1
    kind = type(module).__name__
    if kind in ("ColumnParallelLinear", "QKVParallelLinear", "MergedColumnParallelLinear"):
        return None if getattr(module, "gather_output", False) else -1
    return None
