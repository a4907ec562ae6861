"""Markdown as HTML (CommonMark with tables), without its front matter."""

from __future__ import annotations

from pathlib import Path

from markdown_it import MarkdownIt

from builtin_plugins.documents.markup.front_matter import front_matter_end
from builtin_plugins.documents.previews.page import PreviewPage
from builtin_plugins.documents.text.encoding import open_text


def preview(path: Path) -> PreviewPage:
    """The rendered text."""
    with open_text(path) as file:
        lines = file.read().splitlines()
    end = front_matter_end(lines)
    text = "\n".join(lines if end is None else lines[end + 1 :])
    rendered = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    return PreviewPage(f'<div class="text">{rendered}</div>')
