#!/usr/bin/env python3
"""Reads a trace folder with json, zlib, numpy and safetensors alone: run by hand as `read_trace.py FOLDER`.

Verifies the length and checksum of every part, and that every node is where the manifest says, with its shape and type.
"""
import json
import os
import sys
import zlib

import numpy
from safetensors.numpy import load_file

TYPES = {"F32": numpy.float32, "F64": numpy.float64, "I64": numpy.int64, "BOOL": numpy.bool_}


def main(folder):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    assert manifest["format"] == "tui-transformer trace" and manifest["version"] == 1
    for part in manifest["parts"]:
        with open(os.path.join(folder, part["file"]), "rb") as file:
            data = file.read()
        assert len(data) == part["bytes"], part["file"]
        assert zlib.crc32(data) == part["crc32"], part["file"]
    loaded, values = {}, 0
    for run in manifest["runs"]:
        for node in run["nodes"]:
            part = node.get("part")
            if part is None:
                continue
            if part not in loaded:
                loaded[part] = load_file(os.path.join(folder, part))
            value = loaded[part][node["path"]]
            assert list(value.shape) == node["shape"], node["path"]
            assert value.dtype == TYPES[node["dtype"]], node["path"]
            values += 1
    print(f"{len(manifest['parts'])} parts right, {values} values read")


if __name__ == "__main__":
    main(sys.argv[1])
