"""Recordings of several processes, put together, are what one process records. Run by hand (torch, safetensors):

    python tests/tt_record_distributed.py

Each case starts 2 or 4 processes on the CPU (gloo): data parallel (DDP and FSDP2, with gradients), tensor parallel
(`parallelize_module`, DTensor), a pipeline (whole batches and micro-batches), and data with tensor parallel.
"""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors.torch import load_file
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "assets"))
from tt_record import merge, record  # noqa: E402

D, HEADS, LAYERS = 16, 4, 4


class Attention(nn.Module):
    """Heads from the width that its products give: with shares of them, a share of the heads."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        heads = lambda t: t.unflatten(-1, (-1, D // HEADS)).transpose(1, 2)
        q, k, v = heads(self.q(x)), heads(self.k(x)), heads(self.v(x))
        weights = torch.softmax(q @ k.transpose(-1, -2) / (D // HEADS) ** 0.5, -1)
        return self.o((weights @ v).transpose(1, 2).flatten(-2))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attn, self.up, self.act, self.down = Attention(), nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.pos = nn.Embedding(50, D), nn.Embedding(8, D)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(D, 50)

    def forward(self, input_ids, attention_mask=None):
        x = self.embed(input_ids) + self.pos(torch.arange(input_ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return {"logits": self.head(x)}


class Stage(nn.Module):
    """A part of the layers; the first has the embedding, the last the head. Modules keep their names."""

    def __init__(self, model, index, of):
        super().__init__()
        per = LAYERS // of
        self.index, self.of = index, of
        if index == 0:
            self.embed, self.pos = model.embed, model.pos
        self.layers = nn.ModuleDict({str(i): model.layers[i] for i in range(index * per, (index + 1) * per)})
        if index == of - 1:
            self.head = model.head

    def forward(self, hidden=None, input_ids=None):
        x = hidden if self.index else self.embed(input_ids) + self.pos(torch.arange(input_ids.shape[1]))
        for layer in self.layers.values():
            x = layer(x)
        return {"logits": self.head(x)} if self.index == self.of - 1 else x


def inputs():
    torch.manual_seed(1)
    ids = torch.randint(0, 50, (8, 8))
    return ids, torch.ones_like(ids)


def loss_of(out, ids):
    return nn.functional.cross_entropy(out["logits"].flatten(0, 1), ids.flatten())


def alone(path, backward):
    model, (ids, mask) = Model().eval(), inputs()
    with record(model, path, backward=backward), torch.set_grad_enabled(backward):
        out = model(input_ids=ids, attention_mask=mask)
        if backward:
            loss_of(out, ids).backward()


def data_parallel(rank, world, path, wrap):
    model, (ids, mask) = Model().eval(), inputs()
    rows = slice(rank * len(ids) // world, (rank + 1) * len(ids) // world)
    if wrap == "ddp":
        model = nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.fsdp import fully_shard

        for layer in model.layers:
            fully_shard(layer)
        fully_shard(model)
    with record(model, path, backward=True):
        out = model(input_ids=ids[rows], attention_mask=mask[rows])
        loss_of(out, ids[rows]).backward()


def tensor_parallel(rank, world, path, dp=1):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (dp, world // dp), mesh_dim_names=("dp", "tp"))
    model, (ids, mask) = Model().eval(), inputs()
    plan = {"attn.q": ColwiseParallel(), "attn.k": ColwiseParallel(), "attn.v": ColwiseParallel(), "attn.o": RowwiseParallel()}
    for layer in model.layers:
        parallelize_module(layer, mesh["tp"], {**plan, "up": ColwiseParallel(), "down": RowwiseParallel()})
    place = mesh.get_coordinate()[0]
    rows = slice(place * len(ids) // dp, (place + 1) * len(ids) // dp)
    with torch.no_grad(), record(model, path, mesh=mesh):
        model(input_ids=ids[rows], attention_mask=mask[rows])


def pipeline(rank, world, path, parts):
    stage, (ids, _) = Stage(Model(), rank, world).eval(), inputs()
    with torch.no_grad(), record(stage, path, mesh={"pp": (rank, world)}):
        for piece in ids.chunk(parts):
            if rank == 0:
                out = stage(input_ids=piece)
            else:
                hidden = torch.empty(*piece.shape, D)
                dist.recv(hidden, rank - 1)
                out = stage(hidden)
            if rank < world - 1:
                dist.send(out.contiguous(), rank + 1)


def worker(rank, world, port, work, arguments):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(world)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    work(rank, world, *arguments)
    dist.barrier()
    dist.destroy_process_group()


CASES = [
    ("data parallel, DDP", 2, data_parallel, ("ddp",), True, None),
    ("data parallel, DDP", 4, data_parallel, ("ddp",), True, None),
    ("data parallel, FSDP2", 2, data_parallel, ("fsdp",), True, None),
    ("data parallel, FSDP2", 4, data_parallel, ("fsdp",), True, None),
    ("tensor parallel", 2, tensor_parallel, (), False, None),
    ("tensor parallel", 4, tensor_parallel, (), False, None),
    ("data and tensor parallel", 4, tensor_parallel, (2,), False, None),
    ("pipeline", 2, pipeline, (1,), False, None),
    ("pipeline", 4, pipeline, (1,), False, None),
    ("pipeline of micro-batches", 2, pipeline, (4,), False, 4),
]


def main():
    failed = 0
    for number, (name, world, work, extra, backward, parts) in enumerate(CASES):
        with tempfile.TemporaryDirectory() as folder:
            whole, path, merged = (os.path.join(folder, f"{n}.safetensors") for n in ("whole", "ref", "merged"))
            alone(whole, backward)
            mp.spawn(worker, (world, 29611 + number, work, (path, *extra)), nprocs=world)
            merge([os.path.join(folder, f"ref.rank{r}.safetensors") for r in range(world)], merged, microbatches=parts)
            ours, wanted = load_file(merged), load_file(whole)
            wrong = sorted(set(ours) ^ set(wanted) - ({"attention_mask"} if "pipeline" in name else set()))
            for key in set(ours) & set(wanted):
                a, b = ours[key], wanted[key]
                if a.shape != b.shape or not torch.allclose(a.double(), b.double(), rtol=1e-4, atol=1e-6):
                    far = (a.double() - b.double()).abs().max().item() if a.shape == b.shape else "another shape"
                    wrong.append(f"{key} {list(a.shape)} {list(b.shape)}: {far}")
            failed += bool(wrong)
            print(f"{'wrong' if wrong else 'good '} {name}, {world} processes: {len(ours)} tensors", *wrong[:8], sep="\n  " if wrong else " ")
    return failed


if __name__ == "__main__":
    sys.exit(main())
