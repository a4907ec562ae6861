"""Arrays derived once from packages' data, in files that all processes map into memory.

Mapped data is read on access, is in memory once for all processes, and is released without being written.
Data that a package contains compressed would be in the memory of each of them. Delete or replace such a file,
but never overwrite it: the system kills a process that accesses a missing part.
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
_LENGTH = 8  # bytes that contain the header's length
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
_SPARE = 100 * 2**20  # bytes to leave free on the disk
_LEFT_BEHIND = 600.0  # seconds after which an unfinished file counts as abandoned


class Arrays(Mapping[str, "Array"]):
    """Arrays by name."""

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
        """On Linux, release the memory of what was read from the file; discards what was written into it.

        It is read again on access.
        """
        if self._mapping is not None and sys.platform == "linux":
            self._mapping.madvise(mmap.MADV_DONTNEED)


def arrays_of(file: Path) -> Arrays:
    """The tensors of a safetensors file, read-only.

    Raises OSError, and ValueError for an incomplete file or an unsupported type of numbers.
    """
    return _opened(file, mmap.ACCESS_READ, checked=False)


def derived(home: Path | None, kind: str, version: str, make: Callable[[], Mapping[str, Array]]) -> Arrays:
    """The result of `make`, from a file in `home` that the first caller writes; without a home, in memory.

    `kind` names the arrays uniquely among all plugins, `version` their source and format; files of other
    versions are removed. Writing into an array affects only this process. A damaged file is made again. If
    none can be written, for example on a full disk, each process has its own arrays.
    """
    for name in (kind, version):
        if not _NAME.fullmatch(name):
            raise ValueError(f"'{name}' can't be part of a file's name")
    if home is None:
        return Arrays(_plain(make()))
    file = home / _FOLDER / kind / f"{version}.safetensors"
    with suppress(OSError, ValueError):  # missing or damaged
        return _opened(file, mmap.ACCESS_COPY, checked=True)
    plain = _plain(make())
    try:
        _write(file, plain)
        arrays = _opened(file, mmap.ACCESS_COPY, checked=False)
    except OSError as error:
        log.warning("can't write %s, so every process keeps its own copy in memory: %s", file, error)
        return Arrays(plain)
    _sweep(file)
    return arrays


def _plain(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays, each contiguous. Raises ValueError for an unsupported type of numbers."""
    import numpy as np

    for name, array in arrays.items():
        if array.dtype.str not in _NAMES or name == _ABOUT:
            raise ValueError(f"{name} holds {array.dtype}, and only {', '.join(_KINDS)} are kept")
    # The widest numbers first, so that each array is aligned.
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
    result = Arrays(arrays, mapping)
    result.forget()  # the digest has read all of it
    return result


def _array(mapping: mmap.mmap, start: int, dtype: str, shape: list[int], data_offsets: list[int]) -> Array:
    import numpy as np

    kind = np.dtype(_KINDS[dtype])
    first, last = data_offsets
    flat = np.frombuffer(mapping, kind, (last - first) // kind.itemsize, start + first)
    return flat.reshape(shape)


def _header(stream: IO[bytes]) -> tuple[dict[str, Any], int]:
    """The file's header, and the offset at which the tensors begin."""
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
    """A digest of the header and of all bytes of the arrays."""
    digest = hashlib.sha256(json.dumps(header).encode())
    for chunk in data:
        digest.update(chunk)
    return digest.hexdigest()


def _write(file: Path, arrays: Mapping[str, Array]) -> None:
    """Write the file atomically, even if others write the same. Raises OSError."""
    for folder in (file.parent.parent, file.parent):
        folder.mkdir(exist_ok=True, mode=0o700)
    size = sum(array.nbytes for array in arrays.values())
    if shutil.disk_usage(file.parent).free < size + _SPARE:
        raise OSError(f"the disk has no room for {size // 2**20} MB")
    coming = file.with_name(f"{file.name}.{uuid4().hex}.new")
    try:
        with os.fdopen(os.open(coming, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            # One by one: as a single bytes object, everything would be in memory twice.
            stream.write(_head(arrays))
            for array in arrays.values():
                stream.write(array.data)
            stream.flush()
            os.fsync(stream.fileno())
        coming.replace(file)
    finally:
        coming.unlink(missing_ok=True)


def _head(arrays: Mapping[str, Array]) -> bytes:
    """The safetensors header with its length, padded to align the arrays."""
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
    """Remove other versions and what killed processes have left."""
    for other in file.parent.iterdir():
        with suppress(OSError):  # another process was faster, or has it open on a system that forbids this
            stale = other.suffix == ".new" and time.time() - other.stat().st_mtime > _LEFT_BEHIND
            if stale or (other.suffix == file.suffix and other != file):
                other.unlink()
