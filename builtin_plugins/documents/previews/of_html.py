"""Web pages as they were saved, with their own style sheets, without scripts and what they would load."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from builtin_plugins.documents.markup.from_html import decoded
from builtin_plugins.documents.previews.page import PreviewPage

_STYLE: Final = re.compile(r"<style\b[^>]*>(.*?)</style\s*>", re.IGNORECASE | re.DOTALL)


def preview(path: Path) -> PreviewPage:
    """The page at `path`."""
    return page_of(decoded(path.read_bytes()))


def page_of(html: str) -> PreviewPage:
    """A page of HTML with its own styles."""
    return PreviewPage(html, styles="\n".join(_STYLE.findall(html)))
