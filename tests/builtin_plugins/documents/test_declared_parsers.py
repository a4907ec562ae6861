"""What plugins declare is checked where it is made."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from builtin_plugins.documents import api as documents
from builtin_plugins.documents.refusals import why_refused
from builtin_plugins.documents.registry import Parsers


@pytest.mark.parametrize(
    ("name", "media_types", "target", "reason"),
    [
        ("", ["text/x"], "shop.parsing:parse", "a name"),
        ("x", [], "shop.parsing:parse", "media types"),
        ("x", "text/x", "shop.parsing:parse", "a list of media types"),
        ("x", ["text/x"], "shop.parsing.parse", "target of the parser 'x'"),
    ],
)
def test_a_parser_that_is_none(name: str, media_types: Sequence[str], target: str, reason: str) -> None:
    """A parser without a name, a list of types or a function is refused where it is declared."""
    with pytest.raises(ValueError, match=reason):
        documents.DocumentParser(name, media_types, target, lambda head: None)


def test_a_parser_without_a_way_to_recognize() -> None:
    """A parser that recognizes nothing, or whose extractor is no function, is refused there, too."""
    with pytest.raises(ValueError, match="detect"):
        documents.DocumentParser("x", ["text/x"], "shop.parsing:parse")
    with pytest.raises(ValueError, match="extractor"):
        documents.DocumentParser("x", ["text/x"], "shop.parsing:parse", lambda head: None, extractor="shop")


def test_a_parser_that_is_asked_with_the_file(tmp_path: Path) -> None:
    """It sees the whole file and its name, and one that raises leaves the file to the others."""
    path = tmp_path / "blob"
    path.write_bytes(b"x" * 100_000 + b"the end")

    def raising(_path: Path, _name: str) -> str | None:
        raise RuntimeError

    def by_the_end(path: Path, name: str) -> str | None:
        return "text/x" if path.read_bytes().endswith(b"the end") and name == "a.x" else None

    parsers = Parsers(
        ("shop", documents.DocumentParser(name, [kind], "shop.parsing:parse", detect_file=ask))
        for name, kind, ask in (("broken", "text/y", raising), ("x", "text/x", by_the_end))
    )
    assert asyncio.run(parsers.detect(path, "a.x")) == "text/x"
    assert asyncio.run(parsers.detect(path, "a.y")) == "text/plain"


@pytest.mark.parametrize("brand", [b"heic", b"mif1", b"avif"])
def test_a_picture_of_a_phone(tmp_path: Path, brand: bytes) -> None:
    path = tmp_path / "blob"
    path.write_bytes(b"\0\0\0\x18ftyp" + brand + bytes(40))
    assert "JPEG" in (why_refused(path) or "")
    path.write_bytes(b"\0\0\0\x18ftypisom" + bytes(40))
    assert why_refused(path) is None
