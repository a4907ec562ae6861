"""Files embedded in old Office files are taken out, and what can't be is counted."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from pathlib import Path

import pytest

from builtin_plugins.documents.omissions import COUNTED, Omission
from builtin_plugins.old_office.embedded import extract, omit_unread

pytestmark = pytest.mark.long

SECTOR = 512
LEAST = 4096
END, FREE, NONE = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFF
Tree = dict[str, "bytes | Tree"]


def compound(tree: Tree) -> bytes:
    """A compound file ([MS-CFB]) with these storages and streams, each stream at least 4,096 bytes."""
    entries: list[list[int | str]] = []  # name, kind, next beside it, first within, start, size
    sectors: list[bytes] = []
    chains: list[int] = []

    def keep(content: bytes) -> int:
        start, count = len(sectors), -(-len(content) // SECTOR)
        sectors.extend(content[at * SECTOR :][:SECTOR].ljust(SECTOR, b"\0") for at in range(count))
        chains.extend([*range(start + 1, start + count), END])
        return start

    def add(name: str, item: bytes | Tree) -> int:
        at = len(entries)
        if isinstance(item, bytes):
            entries.append([name, 2, NONE, NONE, keep(item.ljust(LEAST, b"\0")), max(len(item), LEAST)])
            return at
        entries.append([name, 1 if at else 5, NONE, NONE, END, 0])
        inside = [add(*place) for place in item.items()]
        for place, following in zip(inside, [*inside[1:], NONE], strict=True):
            entries[place][2] = following
        entries[at][3] = inside[0] if inside else NONE
        return at

    add("Root Entry", tree)
    directory = b""
    for name, kind, beside, within, start, size in entries:
        letters = str(name).encode("utf-16-le")
        directory += letters.ljust(64, b"\0") + struct.pack("<HBB", len(letters) + 2, int(kind), 1)
        directory += struct.pack("<III", NONE, beside, within) + bytes(36) + struct.pack("<IQ", start, size)
    first = keep(directory)
    table = [*chains, 0xFFFFFFFD]
    assert len(table) <= SECTOR // 4
    table += [FREE] * (SECTOR // 4 - len(table))
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH6x", 62, 3, 0xFFFE, 9, 6)
    head += struct.pack("<IIIIIIIII", 0, 1, first, 0, LEAST, END, 0, END, 0)
    head += struct.pack("<I", len(sectors)) + struct.pack("<I", FREE) * 108
    return head + b"".join(sectors) + struct.pack("<128I", *table)


def packed(name: str, content: bytes) -> bytes:
    """A file as Windows packs it ([MS-OLEDS], 2.3.6)."""
    ascii_name = name.encode()
    head = bytes(4) + b"\2\0" + ascii_name + b"\0C:\\" + ascii_name + b"\0\0\0\3\0"
    place = ascii_name + b"\0"
    return head + struct.pack("<I", len(place)) + place + struct.pack("<I", len(content)) + content


NOTE = packed("note.txt", b"The berth costs 25 euro.")
OLD_BOOK: Tree = {"Workbook": b"an old workbook"}


def slides(*storages: Tree) -> bytes:
    """Objects of a presentation, compressed and plain."""
    stream = b""
    for at, storage in enumerate(storages):
        whole = compound(storage)
        content = struct.pack("<I", len(whole)) + zlib.compress(whole) if at % 2 == 0 else whole
        stream += struct.pack("<HHI", 0x10 if at % 2 == 0 else 0, 0x1011, len(content)) + content
    return stream


@pytest.mark.parametrize(
    "tree",
    [
        {"WordDocument": b"text", "ObjectPool": {"_1": {"\x01Ole10Native": NOTE}, "_2": OLD_BOOK}},
        {"Workbook": b"cells", "MBD0001": {"\x01Ole10Native": NOTE}, "MBD0002": OLD_BOOK},
        {"PowerPoint Document": slides({"\x01Ole10Native": NOTE}, OLD_BOOK)},
    ],
    ids=["doc", "xls", "ppt"],
)
def test_embedded(tmp_path: Path, tree: Tree) -> None:
    """A packed file comes out with its name; an old workbook within a file is counted."""
    path = tmp_path / "a"
    path.write_bytes(compound(tree))
    assert [(one.name, one.content) for one in extract(path)] == [("note.txt", b"The berth costs 25 euro.")]
    counted = Counter[Omission]()
    token = COUNTED.set(counted)
    try:
        omit_unread(path)
    finally:
        COUNTED.reset(token)
    assert counted == {"part": 1}


def test_a_damaged_directory(tmp_path: Path) -> None:
    """It costs the files inside, and nothing else."""
    path = tmp_path / "a"
    path.write_bytes(compound({"Workbook": b"cells", "MBD0001": {"\x01Ole10Native": NOTE}})[:1500])
    assert list(extract(path)) == []
