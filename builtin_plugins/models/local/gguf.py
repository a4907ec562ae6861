"""Metadata of a GGUF file (ggml's docs/gguf.md). Runs in child processes, as the files are untrusted."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO, Final

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_MOST_ENTRIES: Final = 4_096
_LONGEST_TEXT: Final = 1 << 20
_MOST_ITEMS: Final = 1 << 21
_STRING: Final = 8
_ARRAY: Final = 9
_NUMBERS: Final = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip


def metadata(path: str) -> dict[str, Any]:
    """The keys and values at the head of the file, without lists. Raises ValueError for any other file."""
    with Path(path).open("rb") as file:
        if file.read(4) != _MAGIC:
            raise ValueError("it is not a GGUF file")
        version, _tensors, entries = struct.unpack("<IQQ", _exactly(file, 20))
        if version not in _VERSIONS or entries > _MOST_ENTRIES:
            raise ValueError("its version of GGUF is unknown")
        values = {}
        for _ in range(entries):
            key = _text(file)
            value = _value(file, _number(file, "<I"))
            if value is not None:
                values[key] = value
        return values


def describe(path: str) -> dict[str, Any]:
    """What people want to know about the file, in plain values; unknown ones are left out."""
    values = metadata(path)
    architecture = str(values.get("general.architecture", ""))
    facts = {
        "name": values.get("general.name"),
        "family": architecture or None,
        "parameter_size": values.get("general.size_label"),
        "context_length": values.get(f"{architecture}.context_length"),
        "embedding_length": values.get(f"{architecture}.embedding_length"),
        "licence": values.get("general.license"),
        "pooling": values.get(f"{architecture}.pooling_type"),
        "chat": "tokenizer.chat_template" in values,
    }
    return {
        key: value[:500] if isinstance(value, str) else value
        for key, value in facts.items()
        if value is not None
    }


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _text(file)
    if kind == _ARRAY:
        return _skip_list(file)
    if kind not in _NUMBERS:
        raise ValueError("it has a value of an unknown kind")
    return _number(file, _NUMBERS[kind])


def _skip_list(file: BinaryIO) -> None:
    kind, count = _number(file, "<I"), _number(file, "<Q")
    if count > _MOST_ITEMS or kind not in (*_NUMBERS, _STRING):
        raise ValueError("it has a list that is too long")
    if kind != _STRING:
        file.seek(struct.calcsize(_NUMBERS[kind]) * count, 1)
        return
    for _ in range(count):
        file.seek(_length(file), 1)


def _text(file: BinaryIO) -> str:
    return _exactly(file, _length(file)).decode("utf-8", "replace")


def _length(file: BinaryIO) -> int:
    length: int = _number(file, "<Q")
    if length > _LONGEST_TEXT:
        raise ValueError("it has a text that is too long")
    return length


def _number(file: BinaryIO, form: str) -> Any:
    return struct.unpack(form, _exactly(file, struct.calcsize(form)))[0]


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise ValueError("it ends too early")
    return data
