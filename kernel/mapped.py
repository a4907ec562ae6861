"""Arrays that are made once from what packages bring, in files that all processes map into memory.

What is mapped is read where it is looked at, is in memory once for all processes, and is released without
being written anywhere. What a package brings compressed would be in the memory of each of them. Delete such
a file or replace it, but never overwrite it: the system ends a process that looks for what is gone.
"""

from __future__ import annotations

import hashlib
import json
import logging
import mmap
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

if TYPE_CHECKING:
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]

log = logging.getLogger("platform.mapped")

_FOLDER = "cache"
_NAME = re.compile(r"[\w-][\w.-]*")
_LENGTH = 8  # bytes that say how long the header is
_ABOUT = "__metadata__"
_DIGEST = "sha256"
_KINDS = {
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "I8": "|i1",
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_SPARE = 100 * 2**20  # bytes that are left free on the disk
_LEFT_BEHIND = 600.0  # seconds after which nobody writes a file any more


class Arrays(Mapping[str, "Array"]):
    """Arrays by their names."""

    def __init__(self, arrays: Mapping[str, Array], mapping: mmap.mmap | None = None) -> None:
        self._arrays = arrays
        self._mapping = mapping

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def forget(self) -> None:
        """On Linux, give back the memory of what was read of a file, and lose what was written into it.

        It is read again where it is looked at.
        """
        if self._mapping is not None and sys.platform == "linux":
            self._mapping.madvise(mmap.MADV_DONTNEED)


def arrays_of(file: Path) -> Arrays:
    """The tensors of a file in safetensors' format, to be read only.

    Raises OSError, and ValueError for a file that is not whole or holds other kinds of numbers.
    """
    return _opened(file, mmap.ACCESS_READ, checked=False)


def derived(home: Path | None, kind: str, version: str, make: Callable[[], Mapping[str, Array]]) -> Arrays:
    """What `make` returns, from a file in `home` that the first caller writes; from memory without a home.

    `kind` names the arrays among those of all plugins, `version` what they are made from and their form;
    files of other versions are removed. What is written into an array stays in this process. A damaged file
    is made again. Where none can be written, on a full disk for example, each process has its own arrays.
    """
    for name in (kind, version):
        if not _NAME.fullmatch(name):
            raise ValueError(f"'{name}' can't be part of a file's name")
    if home is None:
        return Arrays(_plain(make()))
    file = home / _FOLDER / kind / f"{version}.safetensors"
    with suppress(OSError, ValueError):  # not there yet, or damaged
        return _opened(file, mmap.ACCESS_COPY, checked=True)
    made = _plain(make())
    try:
        _write(file, made)
        found = _opened(file, mmap.ACCESS_COPY, checked=False)
    except OSError as error:
        log.warning("can't write %s, so every process keeps its own copy in memory: %s", file, error)
        return Arrays(made)
    _sweep(file)
    return found


def _plain(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays, each in one piece. Raises ValueError for a kind of numbers that is not kept."""
    import numpy as np

    for name, array in arrays.items():
        if array.dtype.str not in _NAMES or name == _ABOUT:
            raise ValueError(f"{name} holds {array.dtype}, and only {', '.join(_KINDS)} are kept")
    # The widest numbers first, so that each array begins at a multiple of its numbers' width.
    ordered = sorted(arrays.items(), key=lambda item: -item[1].itemsize)
    return {name: np.ascontiguousarray(array) for name, array in ordered}


def _opened(file: Path, access: int, *, checked: bool) -> Arrays:
    with file.open("rb") as stream:
        header, start = _header(stream)
        mapping = mmap.mmap(stream.fileno(), 0, access=access)
    about = header.pop(_ABOUT, {})
    if checked and about != {_DIGEST: _digest(header, [memoryview(mapping)[start:]])}:
        raise ValueError(f"{file} is damaged")
    try:
        arrays = {name: _array(mapping, start, **entry) for name, entry in header.items()}
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{file} can't be read: {error!r}") from None
    found = Arrays(arrays, mapping)
    found.forget()  # the digest has read all of it
    return found


def _array(mapping: mmap.mmap, start: int, dtype: str, shape: list[int], data_offsets: list[int]) -> Array:
    import numpy as np

    kind = np.dtype(_KINDS[dtype])
    first, last = data_offsets
    flat = np.frombuffer(mapping, kind, (last - first) // kind.itemsize, start + first)
    return flat.reshape(shape)


def _header(stream: IO[bytes]) -> tuple[dict[str, Any], int]:
    """What the file says about its tensors, and where they begin."""
    length = int.from_bytes(stream.read(_LENGTH), "little")
    size = os.fstat(stream.fileno()).st_size
    if length > size:
        raise ValueError(f"{stream.name} is not in safetensors' format")
    start = _LENGTH + length
    try:
        header: dict[str, Any] = json.loads(stream.read(length))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != _ABOUT]
        whole = start + max(ends) == size
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"{stream.name} is not in safetensors' format: {error!r}") from None
    if not whole:
        raise ValueError(f"{stream.name} is incomplete")
    return header, start


def _digest(header: Mapping[str, Any], data: Iterable[Any]) -> str:
    """Of what the file says about its arrays, and of all their bytes."""
    digest = hashlib.sha256(json.dumps(header).encode())
    for one in data:
        digest.update(one)
    return digest.hexdigest()


def _write(file: Path, arrays: Mapping[str, Array]) -> None:
    """All of it or nothing, whoever else writes the same meanwhile. Raises OSError."""
    for folder in (file.parent.parent, file.parent):
        folder.mkdir(exist_ok=True, mode=0o700)
    size = sum(array.nbytes for array in arrays.values())
    if shutil.disk_usage(file.parent).free < size + _SPARE:
        raise OSError(f"the disk has no room for {size // 2**20} MB")
    coming = file.with_name(f"{file.name}.{uuid4().hex}.new")
    try:
        with os.fdopen(os.open(coming, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            # One by one: the whole as one piece of bytes would be in memory twice.
            stream.write(_head(arrays))
            for array in arrays.values():
                stream.write(array.data)
            stream.flush()
            os.fsync(stream.fileno())
        coming.replace(file)
    finally:
        coming.unlink(missing_ok=True)


def _head(arrays: Mapping[str, Array]) -> bytes:
    """The header of safetensors' format with its length, padded so that the arrays are aligned."""
    header, start = dict[str, Any](), 0
    for name, array in arrays.items():
        end = start + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype.str],
            "shape": array.shape,
            "data_offsets": (start, end),
        }
        start = end
    header[_ABOUT] = {_DIGEST: _digest(header, (array.data for array in arrays.values()))}
    text = json.dumps(header).encode()
    text += b" " * (-(_LENGTH + len(text)) % 64)
    return len(text).to_bytes(_LENGTH, "little") + text


def _sweep(file: Path) -> None:
    """Remove other versions, and what killed processes have left."""
    for other in file.parent.iterdir():
        with suppress(OSError):  # somebody else was quicker, or has it open where that matters
            stale = other.suffix == ".new" and time.time() - other.stat().st_mtime > _LEFT_BEHIND
            if stale or (other.suffix == file.suffix and other != file):
                other.unlink()
