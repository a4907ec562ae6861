"""Lists of addresses (text/uri-list, RFC 2483 section 5) as documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from builtin_plugins.documents import api as documents

MEDIA_TYPE = "text/uri-list"
_MARK = b"# uri-list"


def detect(head: bytes) -> str | None:
    """The media type, where a file says on its first line that it is such a list."""
    return MEDIA_TYPE if head.lstrip().lower().startswith(_MARK) else None


def parse(path: str | Path) -> Iterator[str]:
    """One text for each address, with the comment lines above it."""
    comments: list[str] = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            comments.append(line.lstrip("# "))
        elif line.strip():
            yield "\n".join([*comments, line.strip()])
            comments = []


URI_LIST = documents.DocumentParser("uri-list", [MEDIA_TYPE], "sample_plugin.parsing:parse", detect)
