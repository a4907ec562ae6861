"""Jupyter notebooks (nbformat 4): text, code and its output in order, without pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.markup.from_html import blocks_of
from builtin_plugins.documents.text.from_json import blocks_in, load

_TABLE: Final = "<table"


def parse(path: Path) -> Iterator[Block]:
    """Yield a block per cell and per output; a table is read from its HTML.

    A file that isn't laid out as a notebook is read as JSON. Raises what `from_json.parse` raises.
    """
    value = load(path)
    cells = value.get("cells") if isinstance(value, dict) else None
    if not isinstance(cells, list):
        yield from blocks_in(value)
        return
    for cell in cells:
        if isinstance(cell, dict):
            yield Block(_text(cell.get("source")))
            outputs = cell.get("outputs")
            for output in outputs if isinstance(outputs, list) else ():
                yield from _output_blocks(output)


def _output_blocks(output: Any) -> Iterator[Block]:
    """What an output shows: printed text, a result in its best form, or an error's last line."""
    if not isinstance(output, dict):
        return
    yield Block(_text(output.get("text")))
    if "ename" in output:
        yield Block(f"{_text(output['ename'])}: {_text(output.get('evalue'))}")
    data = output.get("data")
    if not isinstance(data, dict):
        return
    page = _text(data.get("text/html"))
    if _TABLE in page:
        yield from blocks_of([page])
    elif not any(kind.startswith("image/") for kind in data):  # the text beside a picture only names its kind
        yield Block(_text(data.get("text/markdown")) or _text(data.get("text/plain")))


def _text(value: Any) -> str:
    """A text, which a notebook may keep as a list of lines."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""
