"""Web pages as they were saved, with their own style sheets, without scripts and what they would load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builtin_plugins.documents.markup.from_html import decoded
from builtin_plugins.documents.previews.page import PreviewPage

_BEGIN: Final = re.compile(r"<style\b", re.IGNORECASE)
_END: Final = re.compile(r"</style\b", re.IGNORECASE)


def preview(path: Path) -> PreviewPage:
    """The page at `path`."""
    return page_of(decoded(path.read_bytes()))


def page_of(html: str) -> PreviewPage:
    """A page of HTML with its own styles."""
    return PreviewPage(html, styles="\n".join(_styles(html)))


def _styles(html: str) -> Iterator[str]:
    """The style sheets of a page; one without an end has all that follows."""
    position = 0
    while (begin := _BEGIN.search(html, position)) and (start := html.find(">", begin.end()) + 1):
        end = _END.search(html, start)
        position = end.start() if end else len(html)
        yield html[start:position]
