"""Times the same shapes in PyTorch and here, alternating in one session, and prints ratios (ours / PyTorch's).

    cargo build --release --example timing
    python assets/bench_torch.py [--threads 2] [--rounds 7] [CASE ...]

PyTorch runs plainly (eager, no hooks, under inference_mode); ours records every value of the forward passes. `hooks` is
the forward pass with every module's output cloned by a hook, which is what a recording in PyTorch costs. Ratios are of
medians; `first` is the first run of a case, into fresh memory, against its warm median.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Attention(nn.Module):
    def __init__(self, d, heads, causal):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.heads, self.causal = heads, causal

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, past=None):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        if past is not None:
            if past:
                k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
            past[:] = [k, v]
        causal = self.causal and q.shape[2] > 1
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.o(out.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, d, heads, ff, eps, pre, causal, tanh=False):
        super().__init__()
        self.attention = Attention(d, heads, causal)
        self.norm1, self.norm2 = nn.LayerNorm(d, eps), nn.LayerNorm(d, eps)
        self.up, self.down = nn.Linear(d, ff), nn.Linear(ff, d)
        self.act = nn.GELU("tanh" if tanh else "none")
        self.pre = pre

    def forward(self, x, past=None):
        if self.pre:
            x = x + self.attention(self.norm1(x), past)
            return x + self.down(self.act(self.up(self.norm2(x))))
        x = self.norm1(x + self.attention(x, past))
        return self.norm2(x + self.down(self.act(self.up(x))))


class Model(nn.Module):
    def __init__(self, d, heads, ff, layers, words, places, eps, pre, causal, head, tanh=False):
        super().__init__()
        self.words, self.places = nn.Embedding(words, d), nn.Embedding(places, d)
        self.layers = nn.ModuleList(Layer(d, heads, ff, eps, pre, causal, tanh) for _ in range(layers))
        self.norm = nn.LayerNorm(d, eps) if pre else nn.Identity()
        self.head = head

    def forward(self, ids, start=0, past=None):
        x = self.words(ids) + self.places(torch.arange(start, start + ids.shape[1]))
        for i, layer in enumerate(self.layers):
            x = layer(x, None if past is None else past[i])
        x = self.norm(x)
        return F.linear(x, self.words.weight) if self.head else x


def forward(tokens, dtype, hooks=False):
    model = Model(768, 12, 3072, 12, 1000, 512, 1e-12, False, False, False).to(dtype).eval()
    ids = torch.arange(tokens)[None] * 7 % 1000
    kept = []
    if hooks:
        for module in model.modules():
            module.register_forward_hook(lambda _m, _i, out: kept.append(out.clone()))

    def run():
        kept.clear()
        with torch.inference_mode():
            model(ids)

    return run


def decode(tokens):
    model = Model(768, 12, 3072, 12, 50257, 1024, 1e-5, True, True, True, tanh=True).eval()

    def run():
        past = [[] for _ in model.layers]
        token = torch.tensor([[1]])
        with torch.inference_mode():
            for i in range(tokens):
                token = model(token, i, past)[:, -1:].argmax(-1)

    return run


def train():
    model = Model(256, 4, 1024, 6, 1000, 64, 1e-5, True, True, False)
    model.out = nn.Linear(256, 1000, bias=False)
    ids = (torch.arange(8 * 64) * 37 % 1000).view(8, 64)
    labels = (ids + 37) % 1000
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)

    def run():
        optimiser.zero_grad()
        F.cross_entropy(model.out(model(ids)).flatten(0, 1), labels.flatten()).backward()
        optimiser.step()

    return run


CASES = {
    "forward-128-f32": lambda: forward(128, torch.float32),
    "forward-512-f32": lambda: forward(512, torch.float32),
    "forward-128-f64": lambda: forward(128, torch.float64),
    "hooks-128-f32": lambda: forward(128, torch.float32, hooks=True),
    "decode-64": lambda: decode(64),
    "train": train,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--binary", default=os.path.join(HERE, "target", "release", "examples", "timing"))
    args = parser.parse_args()
    if unknown := [name for name in args.cases if name not in CASES]:
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(CASES)}")
    torch.set_num_threads(args.threads)
    environment = {**os.environ, "RAYON_NUM_THREADS": str(args.threads)}
    ours = subprocess.Popen([args.binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def here(case):
        print(case, file=ours.stdin, flush=True)
        return float(ours.stdout.readline() or sys.exit("the program ended"))

    def there(run):
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    def weights(case):
        """Bytes of weights that one run of a decoding reads: those of all layers and of the output, for each token."""
        return 64 * 4 * (12 * (12 * 768 * 768 + 13 * 768) + 50257 * 768) if case == "decode-64" else 0

    here("read")
    speed = 2**29 / min(here("read") for _ in range(5))
    print(f"{args.threads} threads, {args.rounds} alternations, milliseconds; memory is read at {speed / 1e9:.1f} GB/s")
    print(f"{'case':16} {'ours':>9} {'torch':>9} {'ratio':>6} {'best':>6} {'first/warm':>10}")
    for name in args.cases or CASES:
        run = CASES[name]()
        case = name.replace("hooks", "forward")
        first = here(case)
        here(case)
        for _ in range(2):
            run()
        pairs = [(here(case), there(run)) for _ in range(args.rounds)]
        a, b = (statistics.median(side) for side in zip(*pairs))
        best = min(p[0] for p in pairs) / min(p[1] for p in pairs)
        reads = f"  {weights(case) / a / speed:.0%} of that speed" if weights(case) else ""
        print(f"{name:16} {a * 1e3:9.1f} {b * 1e3:9.1f} {a / b:6.2f} {best:6.2f} {first / a:10.2f}{reads}", flush=True)


if __name__ == "__main__":
    main()
