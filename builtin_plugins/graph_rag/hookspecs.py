"""Hooks that this plugin offers."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.graph_rag.building.protocol import Extractor
from kernel.sdk import hookspec


@hookspec.declaration
def register_extractors() -> Sequence[Extractor]:
    """Engines that find entities and relations in texts; `PLATFORM_GRAPH_RAG_ENGINE` names the one to use.

    An engine has a `name`, a `version`, a plain function ``analyse(texts, language)`` that returns a `Found`
    for each text and runs in a thread, and ``missing()``: what it lacks, as a remedy, or None.
    """
