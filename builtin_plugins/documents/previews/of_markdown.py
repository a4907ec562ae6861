"""Markdown as HTML (CommonMark with tables), without its front matter."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

from builtin_plugins.documents.previews.page import PreviewPage
from builtin_plugins.documents.text.encoding import open_text

_FRONT_MATTER: Final = re.compile(r"\A---\s*\n.*?\n(?:---|\.\.\.)\s*\n", re.DOTALL)


def preview(path: Path) -> PreviewPage:
    """The rendered text."""
    with open_text(path) as file:
        text = _FRONT_MATTER.sub("", file.read(), count=1)
    rendered = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    return PreviewPage(f'<div class="text">{rendered}</div>')
