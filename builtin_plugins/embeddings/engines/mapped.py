"""A tensor of a safetensors file, mapped into memory: read where it is looked at, shared by all processes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from builtin_plugins.embeddings.engines.base import Vectors

_LENGTH = 8  # bytes that say how long the header is


def mapped_tensor(file: Path, name: str) -> Vectors:
    """The float32 tensor `name`, without reading it."""
    with file.open("rb") as stream:
        size = int.from_bytes(stream.read(_LENGTH), "little")
        entry = json.loads(stream.read(size))[name]
    if entry["dtype"] != "F32":
        raise ValueError(f"{name} in {file} holds {entry['dtype']}, not F32")
    start = _LENGTH + size + entry["data_offsets"][0]
    return np.asarray(np.memmap(file, "<f4", "r", start, tuple(entry["shape"])))
