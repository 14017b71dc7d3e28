#!/usr/bin/env python3
"""Records what a PyTorch or Hugging Face model computes; the recorder itself is the package in `python/` next to this
file (`pip install assets/python`). This file runs it without installing anything:

    python assets/tt_record.py --hf PATH --text "a sentence" -o ref.safetensors

and, with `assets` on the path of modules, `from tt_record import record` works as with the package.
"""
import importlib.machinery
import importlib.util
import os
import sys

_HOME = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python", "tt_record")


def _package():
    """The package: next to this file, else the one that is installed."""
    entry = os.path.join(_HOME, "__init__.py")
    if os.path.exists(entry):
        spec = importlib.util.spec_from_file_location("tt_record", entry, submodule_search_locations=[_HOME])
    else:
        here = os.path.dirname(os.path.abspath(__file__))
        places = [p for p in sys.path if os.path.abspath(p or os.getcwd()) != here]
        spec = importlib.machinery.PathFinder.find_spec("tt_record", places)
        if spec is None:
            sys.exit("tt_record.py: the package tt_record is neither in python/ next to this file nor installed: pip install tt-record")
    module = importlib.util.module_from_spec(spec)
    sys.modules["tt_record"] = module
    spec.loader.exec_module(module)
    return module


try:
    _module = _package()
except ImportError as missing:
    if __name__ == "__main__":
        sys.exit(str(missing))
    raise

if __name__ == "__main__":
    sys.exit(_module.main())
# Imported as `tt_record`, this file is replaced by the package of that name.
sys.modules[__name__] = _module
