"""What other plugins may import of graph_rag: its graphs as rows, who sees them, and the hook for engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from builtin_plugins.graph_rag.building.statements import NothingStated, store_statements
from builtin_plugins.graph_rag.errors import GraphNotFound
from builtin_plugins.graph_rag.extraction.mentions import NOUN_PHRASE, key_of
from builtin_plugins.graph_rag.models import Alias, Entity, Graph, GraphPassage, Relation, seal_of
from builtin_plugins.graph_rag.schemas import Constructed, DocumentId
from builtin_plugins.graph_rag.storing.access import GraphSight, sight_of
from builtin_plugins.graph_rag.storing.writing import GRAPHS_GONE
from kernel.sdk import Body, hookspec

__all__ = [
    "GRAPHS_GONE",
    "NOUN_PHRASE",
    "Alias",
    "Body",
    "Constructed",
    "DocumentId",
    "Entity",
    "Extractor",
    "Graph",
    "GraphNotFound",
    "GraphPassage",
    "GraphSight",
    "NothingStated",
    "Relation",
    "key_of",
    "register_extractors",
    "seal_of",
    "sight_of",
    "store_statements",
]


@runtime_checkable
class Extractor(Protocol):
    """An engine that another plugin offers; any object with these members is one."""

    name: str
    version: str

    def analyse(self, texts: Sequence[str], language: str | None) -> Sequence[Any]:
        """What each text contains."""
        ...

    def missing(self) -> str | None:
        """What the engine lacks, as a remedy; None if it can work."""
        ...


@hookspec.declaration
def register_extractors() -> Sequence[Extractor]:
    """Engines that find entities and relations in texts; `PLATFORM_GRAPH_RAG_ENGINE` names the one to use.

    An engine has a `name`; a `version`, to be raised when results change; ``missing()``: what it lacks, as a
    remedy, or None; and a plain function ``analyse(texts, language)``, which runs in a thread and must end.

    It returns an object for each text. Its `mentions` are tuples ``(start, end, text, key, label)``: `text`
    is ``passage[start:end]``, mentions with the same `key` are one entity (``""``: judged by spelling), and
    `label` is one of OntoNotes 5 or ``NOUN_PHRASE``. Its `links` are None, which relates entities that
    are close together, or tuples ``(subject, predicate, object, kind, weight, start, end)``: keys of two
    entities, `kind` ``SVO`` or ``CO_OCCURRENCE``, and a `weight` up to 1.
    """
