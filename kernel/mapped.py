"""Arrays that are made once from what packages bring, in files that all processes map into memory.

What is mapped is read where it is looked at, is in memory once for all processes, and is let go of without
being written anywhere. What a package brings compressed would be in the memory of each of them.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    import numpy.typing as npt

log = logging.getLogger("platform.mapped")

_FOLDER = "cache"
_LENGTH = 8  # bytes that say how long the header is
_KINDS = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U32": "<u4", "U16": "<u2", "U8": "u1"}


class Arrays(Mapping[str, "npt.NDArray[Any]"]):
    """Arrays by their names. What is written into one of a file stays in this process."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], mapping: mmap.mmap | None = None) -> None:
        self._arrays = arrays
        self._mapping = mapping

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def forget(self) -> None:
        """Give back the memory of what was read of a file, and of what was written into it. It is read again
        where it is looked at.
        """
        if self._mapping is not None and hasattr(mmap, "MADV_DONTNEED"):  # not on every system
            self._mapping.madvise(mmap.MADV_DONTNEED)


def arrays_of(file: Path) -> Arrays:
    """The tensors of a file in safetensors' format.

    Raises OSError, and ValueError for a file that is not whole or holds other kinds of numbers.
    """
    import numpy as np

    with file.open("rb") as stream:
        header, start = _header(stream)
        mapping = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    arrays = {}
    for name, entry in header.items():
        if entry["dtype"] not in _KINDS:
            raise ValueError(f"{name} in {file} holds {entry['dtype']}")
        kind = np.dtype(_KINDS[entry["dtype"]])
        first, last = entry["data_offsets"]
        flat = np.frombuffer(mapping, kind, (last - first) // kind.itemsize, start + first)
        arrays[name] = flat.reshape(entry["shape"])
    return Arrays(arrays, mapping)


def derived(
    home: Path | None, kind: str, version: str, make: Callable[[], Mapping[str, npt.NDArray[Any]]]
) -> Arrays:
    """What `make` answers, from a file in `home` that the first who asks writes; from memory without a home.

    `version` names what the arrays of this kind are made from; files of other versions are removed. Where no
    file can be written, a full disk for example, each process has arrays of its own.
    """
    if home is None:
        return Arrays(make())
    file = home / _FOLDER / kind / f"{version}.safetensors"
    with suppress(OSError, ValueError):  # not there yet, or not whole
        return arrays_of(file)
    made = make()
    try:
        _write(file, made)
        for other in set(file.parent.glob("*.safetensors")) - {file}:
            other.unlink(missing_ok=True)
        return arrays_of(file)
    except OSError as error:
        log.warning("can't write %s, so every process needs memory of its own for it: %s", file, error)
        return Arrays(made)


def _write(file: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """All of it or nothing, whoever else writes the same meanwhile."""
    from safetensors.numpy import save

    file.parent.mkdir(parents=True, exist_ok=True)
    coming = file.with_name(f"{file.name}.{uuid4().hex}.new")
    try:
        with os.fdopen(os.open(coming, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(save(dict(arrays)))
            stream.flush()
            os.fsync(stream.fileno())
        coming.replace(file)
    finally:
        coming.unlink(missing_ok=True)


def _header(stream: IO[bytes]) -> tuple[dict[str, Any], int]:
    """What the file says of its tensors, and where they begin."""
    length = int.from_bytes(stream.read(_LENGTH), "little")
    size = os.fstat(stream.fileno()).st_size
    if length > size:
        raise ValueError(f"{stream.name} is not in safetensors' format")
    header: dict[str, Any] = json.loads(stream.read(length))
    header.pop("__metadata__", None)
    start = _LENGTH + length
    if start + max((entry["data_offsets"][1] for entry in header.values()), default=0) != size:
        raise ValueError(f"{stream.name} is not whole")
    return header, start
