"""Prefixes by which some embedding models were trained to know the purpose of a text.

From the model cards of nomic-ai/nomic-embed-text-v1.5, mixedbread-ai/mxbai-embed-large-v1 and
Snowflake/snowflake-arctic-embed-l. No runtime adds them; without them, these models find less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from builtin_plugins.inference import api as inference

_SEARCHING: Final = "Represent this sentence for searching relevant passages: "
_PREFIXES: Final[dict[str, dict[inference.Purpose, str]]] = {
    "nomic-embed-text": {"passage": "search_document: ", "query": "search_query: "},
    "mxbai-embed-large": {"passage": "", "query": _SEARCHING},
    "snowflake-arctic-embed": {"passage": "", "query": _SEARCHING},
}


def prepared(model: str, texts: Sequence[str], purpose: inference.Purpose) -> list[str]:
    """The texts as `model` expects them; a tag after its name (``:latest``) makes no difference."""
    prefix = _PREFIXES.get(model.partition(":")[0].lower(), {}).get(purpose, "")
    return [prefix + text for text in texts]
