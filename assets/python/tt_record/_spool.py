"""Tensors written to disk as they come, and put together to one safetensors file at the end.

In memory there is never more than one tensor: each goes into an unnamed file next to the one that is wanted. At the end
the header is written and the numbers are copied behind it, the widest types first, so that each is aligned.
"""
import contextlib
import json
import os
import shutil
import tempfile

import torch

from ._errors import RecordError

TYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
for _name, _code in (
    ("float8_e4m3fn", "F8_E4M3"), ("float8_e5m2", "F8_E5M2"), ("uint16", "U16"), ("uint32", "U32"), ("uint64", "U64"),
):  # fmt: skip
    if hasattr(torch, _name):
        TYPES[getattr(torch, _name)] = _code


def folder_of(path):
    """The folder a file is to be written into, which must be there."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise RecordError(f"there is no folder {folder!r} to write {os.path.basename(path)!r} into")
    return folder


def free_name(taken, name):
    """The name itself, or else with the first free number, where one call makes several tensors of one name."""
    base, hash_mark, number = name.partition("#")
    i = 0
    while name in taken:
        i += 1
        name = f"{base}[{i}]{hash_mark}{number}"
    return name


class Spool:
    """A safetensors file that is being written; whole or not there at all."""

    def __init__(self, path):
        self.path = path
        self.entries = {}  # name: (type, width, shape, begin, bytes)
        self.bytes = 0
        self._data = tempfile.TemporaryFile(prefix=".tt_record.", dir=folder_of(path))

    def add(self, name, tensor):
        """Writes a contiguous tensor of the CPU. Its name must be free."""
        if tensor.dtype not in TYPES:
            raise RecordError(f"{tensor.dtype} is not a type of safetensors")
        flat = tensor.reshape(-1)
        raw = flat.view(torch.uint8) if flat.numel() else flat.new_empty(0, dtype=torch.uint8)
        self._data.write(memoryview(raw.numpy()))
        size = raw.numel()
        self.entries[name] = (TYPES[tensor.dtype], tensor.element_size(), list(tensor.shape), self.bytes, size)
        self.bytes += size

    def close(self):
        """Forgets what was written."""
        self._data.close()

    def finish(self, about):
        """Writes the file, with metadata `about`."""
        ordered = sorted(self.entries.items(), key=lambda e: (-e[1][1], e[1][3]))
        header, at = {"__metadata__": about}, 0
        for name, (kind, _, shape, _, size) in ordered:
            header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        descriptor, unfinished = tempfile.mkstemp(prefix=".tt_record.", suffix=".tmp", dir=folder_of(self.path))
        try:
            with os.fdopen(descriptor, "wb") as out:
                out.write(len(text).to_bytes(8, "little"))
                out.write(text)
                for _, (_, _, _, begin, size) in ordered:
                    self._data.seek(begin)
                    _copy(self._data, out, size)
                out.flush()
                os.fsync(out.fileno())
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(unfinished, 0o666 & ~mask)  # mkstemp's own is 0600
            os.replace(unfinished, self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)
            raise
        finally:
            self.close()


class _Part:
    """The next bytes of a file, as a file."""

    def __init__(self, file, size):
        self.file, self.left = file, size

    def read(self, most=-1):
        data = self.file.read(self.left if most < 0 else min(most, self.left))
        self.left -= len(data)
        return data


def _copy(source, target, size):
    shutil.copyfileobj(_Part(source, size), target, 1 << 20)
