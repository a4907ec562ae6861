"""Hooks that the RAG plugin brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernel.sdk import hookspec


@hookspec.declaration
def register_parsers() -> Sequence[Mapping[str, Any]]:
    """Parsers of further document types.

    Each is a mapping: ``name``; ``media_types`` (list of str); ``target`` (``"package.module:function"``,
    which takes the file's path, yields texts or ``(text, page)`` pairs, and runs in a limited subprocess);
    ``detect`` (called with the first 64 KiB of an upload, answers one of the media types or None). Parsers
    of plugins are asked before the built-in ones.
    """
