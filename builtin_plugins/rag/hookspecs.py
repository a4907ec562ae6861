"""Hooks that the RAG plugin brings."""

from __future__ import annotations

from collections.abc import Sequence

from kernel.sdk import contracts, hookspec


@hookspec.declaration
def register_parsers() -> Sequence[contracts.DocumentParser]:
    """Parsers for more document types. Those of plugins are asked before the built-in ones."""
