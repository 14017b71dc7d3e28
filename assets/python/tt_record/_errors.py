"""What goes wrong with a recording, and what is needed for one."""
NEEDS = None
try:
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ImportError as missing:
    NEEDS = f"tt_record: {missing}; it needs torch and safetensors: pip install torch safetensors"
    raise ImportError(NEEDS) from missing


class RecordError(Exception):
    """A recording that cannot be made, and how to fix it."""
