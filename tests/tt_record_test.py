"""Tests of the recorder in assets/python, which assets/tt_record.py runs. They need torch and safetensors (and transformers, for some), so they are run by hand:

    pip install torch transformers safetensors numpy
    python -m unittest tests/tt_record_test.py

`cargo test` does not call them; what it checks (tests/recorded.rs) are the files that tests/data/recorded/make.py wrote.
"""
import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ASSETS = os.path.join(HERE, "..", "assets")
sys.path.insert(0, ASSETS)

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

import tt_record
from tt_record import RecordError, record

with_transformers = unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")


def contents(path):
    with open(path, "rb") as f:
        return f.read()


def metadata(path):
    with safe_open(path, "pt") as f:
        return f.metadata()


class Block(nn.Module):
    """Calls one module twice, returns a dict with a tuple, and changes a tensor after a module returned it."""

    def __init__(self):
        super().__init__()
        self.twice = nn.Linear(4, 4)
        self.pair = Pair()
        self.norm = nn.LayerNorm(4)

    def forward(self, x, mask=None, *, scale=None):
        y = self.twice(self.twice(x))
        kept = y.clone()
        y.mul_(0)  # what was recorded of the second call must not see this
        a, b = self.pair(kept)
        return {"logits": self.norm(a + b), "hidden_states": (x, kept), "cache": object(), "nothing": None}


class Pair(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1), x.half()


class Recording(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "ref.safetensors")
        self.model = Block().eval()
        self.x = torch.randn(2, 3, 4)

    def run_once(self, model=None, *args, **options):
        model = model or self.model
        with torch.no_grad(), record(model, self.path, **options):
            model(*(args or (self.x,)))
        return load_file(self.path)

    def test_every_output_has_its_modules_name(self):
        t = self.run_once()
        first = self.model.twice(self.x)
        second = self.model.twice(first)
        self.assertEqual(
            set(t),
            {
                "x", "twice", "twice#1", "pair.scores", "pair.weights", "pair", "pair[1]", "norm.in", "norm", "logits",
                "hidden_states_0", "hidden_states_1",
            },
        )
        torch.testing.assert_close(t["twice"], first)
        torch.testing.assert_close(t["twice#1"], second)
        torch.testing.assert_close(t["pair.scores"], second)
        torch.testing.assert_close(t["pair.weights"], second.softmax(-1))
        torch.testing.assert_close(t["norm.in"], second.softmax(-1) + second.half())
        self.assertEqual(t["pair[1]"].dtype, torch.float16)

    def test_a_second_pass_is_numbered(self):
        with torch.no_grad(), record(self.model, self.path):
            self.model(self.x)
            self.model(self.x * 2, scale=torch.ones(1))
        t = load_file(self.path)
        torch.testing.assert_close(t["x#1"], self.x * 2)
        self.assertLessEqual({"logits", "logits#1", "twice#2", "twice#3", "pair.weights#1", "scale#1"}, set(t))

    def test_metadata(self):
        self.run_once(None, self.x, torch.ones(2, 3, dtype=torch.bool))
        about = metadata(self.path)
        self.assertIn(torch.__version__, about["framework"])
        self.assertTrue(about["class"].endswith(".Block"), about["class"])
        self.assertEqual(json.loads(about["inputs"]), ["x", "mask"])
        order = json.loads(about["order"])
        self.assertEqual(sorted(order), sorted(load_file(self.path)))
        self.assertLess(order.index("twice"), order.index("pair.scores"))
        self.assertEqual(json.loads(about["classes"])["norm"], "LayerNorm")
        self.assertEqual((about["rank"], about["world_size"], about["training"]), ("0", "1", "false"))

    def test_types_are_kept(self):
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            t = self.run_once(nn.Sequential(nn.Linear(4, 2)).to(dtype), self.x.to(dtype))
            self.assertEqual({k: v.dtype for k, v in t.items()}, dict.fromkeys(("input", "0", "output"), dtype))

    def test_only_and_skip(self):
        self.assertEqual(set(self.run_once(only=["twice*", "pair"])), {"twice", "twice#1", "pair"})
        self.assertEqual(set(self.run_once(only=["twice*"], skip=["*#1"])), {"twice"})
        with self.assertRaisesRegex(RecordError, "only=.'nothing'"):
            self.run_once(only=["nothing"])
        with self.assertRaisesRegex(RecordError, "must be a list"):
            record(self.model, self.path, only="pair")

    def test_it_stops_by_itself(self):
        recording = record(self.model, self.path, calls=1).start()
        with torch.no_grad():
            self.model(self.x)
            self.assertTrue(os.path.exists(self.path))
            self.model(self.x)
        self.assertNotIn("logits#1", load_file(self.path))
        with self.assertRaisesRegex(RecordError, "has ended"):
            recording.stop()

    def test_nothing_is_left_behind(self):
        functions = (nn.functional.softmax, torch.softmax, torch.Tensor.softmax, nn.functional.scaled_dot_product_attention)
        self.run_once()
        now = (nn.functional.softmax, torch.softmax, torch.Tensor.softmax, nn.functional.scaled_dot_product_attention)
        self.assertEqual(functions, now)
        self.assertTrue(torch.backends.mha.get_fastpath_enabled())
        self.assertFalse(any(m._forward_hooks or m._forward_pre_hooks for m in self.model.modules()))
        self.assertEqual(os.listdir(self.folder), ["ref.safetensors"])

    def test_whole_or_not_at_all(self):
        self.run_once()
        before = contents(self.path)
        with self.assertRaises(RuntimeError), record(self.model, self.path):
            self.model(torch.randn(2, 3, 5))
        self.assertEqual(contents(self.path), before)
        with unittest.mock.patch.object(os, "replace", side_effect=OSError("disk full")):
            with self.assertRaisesRegex(OSError, "disk full"):
                self.run_once()
        self.assertEqual(contents(self.path), before)
        self.assertEqual(os.listdir(self.folder), ["ref.safetensors"])

    def test_max_bytes_bounds_the_file(self):
        with torch.no_grad(), record(self.model, self.path, max_bytes=200) as recording:
            self.model(self.x)
        t = load_file(self.path)
        self.assertLessEqual(sum(v.numel() * v.element_size() for v in t.values()), 200)
        self.assertIn(["norm", "max_bytes=200 would be exceeded"], recording.skipped)
        self.assertEqual(json.loads(metadata(self.path)["skipped"]), recording.skipped)

    def test_memory_stays_bounded(self):
        """64 outputs of 4 MB each: never more than a few of them in memory."""
        program = """
import resource, sys, torch
sys.path.insert(0, sys.argv[1])
from tt_record import record
model = torch.nn.Sequential(*[torch.nn.ReLU() for _ in range(64)]).eval()
x = torch.randn(1, 1 << 20)
with torch.no_grad():
    model(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with record(model, sys.argv[2]):
        model(x)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
        done = subprocess.run([sys.executable, "-c", program, ASSETS, self.path], capture_output=True, text=True, check=True)
        self.assertGreater(os.path.getsize(self.path), 64 << 22)
        self.assertLess(int(done.stdout), 64 << 10)  # KiB

    def test_gradients(self):
        for p in self.model.parameters():
            p.grad = None
        x = self.x.clone().requires_grad_()
        with record(self.model, self.path, backward=True):
            out = self.model(x)
            out["logits"].square().sum().backward()
        t, about = load_file(self.path), metadata(self.path)
        torch.testing.assert_close(t["twice.weight.grad"], self.model.twice.weight.grad)
        torch.testing.assert_close(t["x.grad"], x.grad)
        logits = self.model(self.x)["logits"]
        torch.testing.assert_close(t["logits.grad"], 2 * logits)
        self.assertIn("twice.grad", t)
        self.assertIn("twice.grad#1", t)
        self.assertEqual(set(json.loads(about["parameters"])), {f"{n}.grad" for n, _ in self.model.named_parameters()})

    def test_the_result_is_the_same_to_the_bit(self):
        """Also where modules would take a fused way, and where dropout draws numbers."""
        encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        late = nn.TransformerEncoder(encoder, 2)
        models = {
            "fast path": (late, torch.randn(2, 5, 8), {}),
            "padded": (late, torch.randn(2, 5, 8), {"src_key_padding_mask": torch.tensor([[0, 0, 0, 1, 1], [0] * 5]).bool()}),
            "tokens first": (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 1), torch.randn(5, 2, 8), {}),
            "block": (self.model, self.x, {}),
        }
        for name, (model, x, given) in models.items():
            for training in (False, True):
                model.train(training)
                for gradients in (False, True):
                    with self.subTest(name, training=training, gradients=gradients), torch.set_grad_enabled(gradients):
                        results = []
                        for recorded in (False, True):
                            torch.manual_seed(3)
                            model.zero_grad()
                            with warnings.catch_warnings():
                                warnings.simplefilter("ignore")
                                with record(model, self.path, backward=gradients) if recorded else contextlib.nullcontext():
                                    out = model(x.clone(), **given)
                                    out = out["logits"] if isinstance(out, dict) else out
                                    if gradients:
                                        out.square().sum().backward()
                            grads = [p.grad.clone() for p in model.parameters() if p.grad is not None]
                            results.append([out.detach(), *grads, torch.rand(1)])
                        for a, b in zip(*results):
                            self.assertTrue(torch.equal(a, b) or torch.equal(a.isnan(), b.isnan()) and a.isnan().any())
                        self.assertEqual(len(results[0]), len(results[1]))

    def test_attention_of_fused_modules(self):
        attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
        x = torch.randn(2, 3, 8)
        with torch.no_grad(), record(nn.ModuleDict({"a": attention})["a"], self.path):
            attention(x, x, x, need_weights=False)
        weights = attention(x, x, x, average_attn_weights=False)[1]
        torch.testing.assert_close(load_file(self.path)["weights"], weights)
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 1).eval()
        with torch.no_grad(), record(model, self.path):
            model(torch.randn(5, 2, 8))
        self.assertEqual(load_file(self.path)["layers.0.self_attn.weights"].shape, (2, 2, 5, 5))
        self.assertEqual(json.loads(metadata(self.path)["batch_axis"])["layers.0.self_attn"], 1)

    def test_two_in_one_modules_are_marked(self):
        class Fused(nn.Module):
            def __init__(self):
                super().__init__()
                self.c_attn, self.gate_up_proj = nn.Linear(4, 12), nn.Linear(4, 16)

            def forward(self, x):
                return self.c_attn(x).sum() + self.gate_up_proj(x).sum()

        model = Fused().eval()
        with torch.no_grad(), record(model, self.path):
            model(torch.randn(1, 4))
        self.assertEqual(json.loads(metadata(self.path)["fused"]), {"c_attn": 3, "gate_up_proj": 2})

    def test_mistakes_are_told(self):
        cases = [
            (lambda: record(object(), self.path), "torch.nn.Module is wanted, not object"),
            (lambda: record(type("Pipe", (), {"model": self.model})(), self.path), "give its `.model`"),
            (lambda: record(self.model, self.path + ".npz"), "must end in .safetensors"),
            (lambda: record(self.model, os.path.join(self.folder, "no", "ref.safetensors")), "no folder"),
            (lambda: record(self.model, self.path, calls=0), "at least 1"),
            (lambda: record(torch.jit.trace(nn.Linear(4, 4), self.x), self.path), "TorchScript"),
            (lambda: record(torch.compile(self.model), self.path), "_orig_mod"),
            (lambda: record(self.model, self.path).stop(), "not started"),
        ]
        for make, message in cases:
            with self.subTest(message), warnings.catch_warnings(), self.assertRaisesRegex(RecordError, message):
                warnings.simplefilter("ignore")
                make()
        with self.assertRaisesRegex(RecordError, "no forward pass"), record(self.model, self.path):
            pass
        self.assertEqual(os.listdir(self.folder), [])
        with self.assertWarnsRegex(UserWarning, "training mode"):
            self.run_once(Block().train())

    def test_attention_of_pytorch_takes_its_unfused_way(self):
        attention = nn.MultiheadAttention(4, 2, batch_first=True).eval()
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
        padding = torch.tensor([[False, False, True], [False, False, False]])
        with torch.no_grad():
            plain = layer(self.x, src_key_padding_mask=padding)
            with record(layer, self.path):
                recorded = layer(self.x, src_key_padding_mask=padding)
            torch.testing.assert_close(recorded, plain)
            t = load_file(self.path)
            self.assertEqual(t["self_attn.weights"].shape, (2, 2, 3, 3))
            torch.testing.assert_close(t["self_attn.scores"].softmax(-1), t["self_attn.weights"])
            self.assertTrue((t["self_attn.weights"][0, :, :, 2] == 0).all())
            for need, average in ((True, True), (True, False), (False, True)):
                asked = {"need_weights": need, "average_attn_weights": average}
                plain = attention(self.x, self.x, self.x, **asked)
                with record(attention, self.path):
                    recorded = attention(self.x, self.x, self.x, **asked)
                torch.testing.assert_close(recorded[0], plain[0])
                self.assertEqual(recorded[1] is None, plain[1] is None)
                if need:
                    torch.testing.assert_close(recorded[1], plain[1])
                self.assertLessEqual({"output", "scores", "weights"}, set(load_file(self.path)))

    def test_fused_attention_is_told(self):
        class Fused(nn.Module):
            def forward(self, x):
                return nn.functional.scaled_dot_product_attention(x, x, x)

        with self.assertWarnsRegex(UserWarning, "attn_implementation"):
            self.run_once(nn.Sequential(Fused()))
        self.assertEqual(json.loads(metadata(self.path)["skipped"]), [["0.weights", "fused attention holds no weights"]])

    def test_wrappers_leave_no_trace_in_names(self):
        class Engine(nn.Module):
            def __init__(self, module):
                super().__init__()
                self.module = module

            def forward(self, *args):
                return self.module(*args)

        inner = Block().eval()
        wrapped = Engine(inner).eval()
        expected = set(self.run_once(inner))
        self.assertEqual(set(self.run_once(wrapped)), expected)
        inner.pair = Wrapped(inner.pair)
        self.assertEqual(set(self.run_once(wrapped)), expected)
        self.assertEqual(set(self.run_once(Wrapped(inner))), expected)
        self.assertTrue(metadata(self.path)["class"].endswith(".Block"))


class Wrapped(nn.Module):
    """As FSDP and activation checkpoints wrap."""

    def __init__(self, module):
        super().__init__()
        self._checkpoint_wrapped_module = module

    def forward(self, *args):
        return self._checkpoint_wrapped_module(*args)


class Share(nn.Module):
    """What one of two ranks computes under tensor and pipeline parallelism."""

    def __init__(self, rank):
        super().__init__()
        self.rank = rank
        self.heads, self.columns, self.whole = (nn.Identity() for _ in range(3))
        self.add_module(f"only{rank}", nn.Identity())

    def forward(self, x):
        self.heads(x[:, self.rank : self.rank + 1])
        self.columns(x[0, :, :, 2 * self.rank : 2 * self.rank + 2])
        self.get_submodule(f"only{self.rank}")(x + self.rank)
        return self.whole(x * (1 + 1e-7 * self.rank))


class Ranks(unittest.TestCase):
    def test_two_processes_of_one_engine_write_a_file_each(self):
        program = (
            "import os, sys, torch\n"
            "from torch import nn, distributed as dist\n"
            "from tt_record import record\n"
            "dist.init_process_group('gloo', init_method='file://' + sys.argv[1] + '/meet', rank=int(sys.argv[2]), world_size=2)\n"
            "model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(2, 2))).eval()\n"
            "with torch.no_grad(), record(model, sys.argv[1] + '/ref.safetensors'):\n"
            "    model(torch.full((1, 2), float(sys.argv[2])))\n"
            "dist.barrier()\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "PYTHONPATH": ASSETS}
            both = [subprocess.Popen([sys.executable, "-c", program, folder, str(r)], env=env) for r in (0, 1)]
            self.assertEqual([p.wait(timeout=120) for p in both], [0, 0])
            for rank in (0, 1):
                path = os.path.join(folder, f"ref.rank{rank}.safetensors")
                t = load_file(path)
                self.assertEqual(set(t), {"input", "0", "output"})
                self.assertEqual(t["input"].tolist(), [[rank, rank]])
                about = metadata(path)
                self.assertEqual((about["rank"], about["world_size"]), (str(rank), "2"))

    def test_shares_of_tensors_go_together(self):
        x = torch.arange(24.0).reshape(1, 2, 3, 4)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ref.safetensors")
            for rank in (0, 1):
                model = Share(rank).eval()
                with changed(RANK=str(rank), WORLD_SIZE="2"), record(model, path):
                    model(x)
            files = [os.path.join(folder, f"ref.rank{rank}.safetensors") for rank in (1, 0)]
            code, text, errors = script("--merge", *files, "-o", path)
            self.assertEqual((code, errors), (0, ""))
            t = load_file(path)
            self.assertEqual(set(t), {"x", "heads", "columns", "only0", "only1", "whole", "output"})
            for name, tensor in {"x": x, "heads": x, "columns": x[0], "only0": x, "only1": x + 1, "whole": x}.items():
                torch.testing.assert_close(t[name], tensor)
            self.assertEqual(metadata(path)["rank"], "all")
            for given, message in (
                (files[:1], r"2 ranks were recorded, and these files are of \[1\]"),
                (files[:1] * 2, "another file is of rank 1"),
                ([os.path.join(folder, "no.safetensors")], "no.safetensors"),
            ):
                code, _, errors = script("--merge", *given, "-o", path)
                self.assertEqual(code, 2)
                self.assertRegex(errors, message)
            self.assertEqual(len(load_file(path)), 7)

    def test_batches_of_their_own_are_joined(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ref.safetensors")
            model = nn.Sequential(nn.Linear(2, 2)).eval()
            x = torch.randn(5, 2)
            for rank, rows in ((0, x[:2]), (1, x[2:])):
                with changed(RANK=str(rank), WORLD_SIZE="2"), torch.no_grad(), record(model, path):
                    model(rows)
            files = [os.path.join(folder, f"ref.rank{rank}.safetensors") for rank in (0, 1)]
            self.assertEqual(script("--merge", *files, "-o", path)[0], 0)
            merged = load_file(path)
            torch.testing.assert_close(merged["input"], x)
            torch.testing.assert_close(merged["output"], model(x))

    def test_lengths_of_their_own_do_not_go_together(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ref.safetensors")
            model = nn.Sequential(nn.Linear(2, 2)).eval()
            for rank in (0, 1):
                with changed(RANK=str(rank), WORLD_SIZE="2"), torch.no_grad(), record(model, path):
                    model(torch.full((1, 3 + rank, 2), float(rank)))
            files = [os.path.join(folder, f"ref.rank{rank}.safetensors") for rank in (0, 1)]
            code, _, errors = script("--merge", *files, "-o", path)
            self.assertEqual(code, 2)
            self.assertRegex(errors, "do not go together along")
            self.assertFalse(os.path.exists(path))

    def test_rank_from_the_environment(self):
        for rank, world, wanted in (("1", "4", "ref.rank1.safetensors"), ("0", "1", "ref.safetensors")):
            with changed(RANK=rank, WORLD_SIZE=world):
                self.assertEqual(os.path.basename(record(nn.Linear(1, 1), "ref.safetensors").path), wanted)
        for rank, world, message in (("x", "2", "whole numbers"), ("2", "2", "does not fit")):
            with changed(RANK=rank, WORLD_SIZE=world), self.assertRaisesRegex(RecordError, message):
                record(nn.Linear(1, 1), "ref.safetensors")


@contextlib.contextmanager
def changed(**values):
    before = {k: os.environ.get(k) for k in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for k, v in before.items():
            os.environ.pop(k) if v is None else os.environ.__setitem__(k, v)


@with_transformers
class HuggingFace(unittest.TestCase):
    def test_attention_weights_are_those_of_output_attentions(self):
        recorded = make_recorded()
        for make, attention in (
            (recorded.bert, "encoder.layer.{}.attention.self"),
            (recorded.gpt2, "transformer.h.{}.attn"),
            (recorded.llama, "model.layers.{}.self_attn"),
        ):
            model, inputs, _ = make()
            with tempfile.TemporaryDirectory() as folder, torch.no_grad():
                path = os.path.join(folder, "ref.safetensors")
                with record(model, path):
                    outputs = model(**inputs, output_attentions=True, output_hidden_states=True)
                t, about = load_file(path), metadata(path)
            self.assertEqual((about["model_type"], about["attention"]), (make.__name__, "eager"))
            for i, weights in enumerate(outputs.attentions):
                torch.testing.assert_close(t[attention.format(i) + ".weights"], weights, rtol=0, atol=0)
                torch.testing.assert_close(t[f"attentions_{i}"], weights, rtol=0, atol=0)
            for i, hidden in enumerate(outputs.hidden_states):
                torch.testing.assert_close(t[f"hidden_states_{i}"], hidden, rtol=0, atol=0)

    def test_the_fixtures_are_what_make_py_makes(self):
        recorded = make_recorded()
        with tempfile.TemporaryDirectory() as folder:
            with contextlib.redirect_stdout(io.StringIO()):
                recorded.main(folder)
            names = sorted(os.listdir(folder))
            self.assertEqual(len(names), 8)
            for name in names:
                made, kept = load_file(os.path.join(folder, name)), load_file(os.path.join(recorded.HERE, name))
                self.assertEqual(set(made), set(kept))
                for key, tensor in made.items():
                    torch.testing.assert_close(tensor, kept[key], msg=lambda m, key=key, name=name: f"{name} {key}: {m}")

    def test_the_script(self):
        recorded = make_recorded()
        with tempfile.TemporaryDirectory() as folder:
            model, inputs, _ = recorded.llama()
            model.save_pretrained(folder)
            out = os.path.join(folder, "out.safetensors")
            ids = " ".join(map(str, inputs["input_ids"][0].tolist()))
            self.assertEqual(script("--hf", folder, "--ids", ids, "-o", out)[0], 0)
            with torch.no_grad():
                torch.testing.assert_close(load_file(out)["logits"], model(**inputs).logits)
            code, text, _ = script("--hf", folder, "--ids", ids, "--ids", "3, 4", "--dtype", "float64", "--only", "logits", "-o", out)
            self.assertEqual(code, 0)
            self.assertIn("1 tensors", text)
            self.assertEqual((load_file(out)["logits"].dtype, load_file(out)["logits"].shape), (torch.float64, (2, 6, 20)))
            for arguments, message in (
                (["--ids", "1 two"], "whole numbers"),
                (["--ids", " "], "holds no id"),
                (["--ids", "99"], "index out of range"),
                (["--ids", "1", "--class", "NoSuchModel"], "no model class 'NoSuchModel'"),
                (["--ids", "1", "-o", os.path.join(folder, "no", "f.safetensors")], "no folder"),
            ):
                code, _, errors = script("--hf", folder, *arguments)
                self.assertEqual(code, 2)
                self.assertRegex(errors, message)
            self.assertEqual(script("--hf", os.path.join(folder, "no"), "--ids", "1")[0], 2)

    def test_the_script_reads_text(self):
        from transformers import BertTokenizer

        recorded = make_recorded()
        with tempfile.TemporaryDirectory() as folder:
            recorded.bert()[0].save_pretrained(folder)
            words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "water", "is", "cold"]
            with open(os.path.join(folder, "vocab.txt"), "w") as f:
                f.write("\n".join(words))
            BertTokenizer(os.path.join(folder, "vocab.txt")).save_pretrained(folder)
            out = os.path.join(folder, "out.safetensors")
            self.assertEqual(script("--hf", folder, "--text", "water is cold", "--text", "cold", "-o", out)[0], 0)
            t = load_file(out)
            self.assertEqual(t["input_ids"].tolist(), [[2, 5, 6, 7, 3], [2, 7, 3, 0, 0]])
            self.assertEqual(t["attention_mask"].tolist(), [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
            code, _, errors = script("--hf", folder, "--text", "water", "--class", "NoSuchModel", "-o", out)
            self.assertEqual(code, 2, errors)


def script(*arguments):
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = tt_record.main(list(arguments))
    return code, out.getvalue(), errors.getvalue()


def make_recorded():
    where = os.path.join(HERE, "data", "recorded", "make.py")
    spec = importlib.util.spec_from_file_location("make_recorded", where)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    unittest.main()
