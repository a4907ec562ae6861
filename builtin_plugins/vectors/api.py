"""Vector search for other plugins: ``platform.resource(VECTORS)``, and what a backend is made of.

A plugin brings a store of its own by `register_stores` with `StoreOffer(VECTOR_STORE, …)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from builtin_plugins.vectors.fusion import Judged, Labels, Ranking, both_legs, fuse
from builtin_plugins.vectors.fusion import weight_for as hybrid_weight
from builtin_plugins.vectors.groups import group_names
from builtin_plugins.vectors.index_checks import indexes_built_before
from builtin_plugins.vectors.index_folders import IndexFolders, index_folders
from builtin_plugins.vectors.indexes import Follower, term_reader, text_in_language, text_software
from builtin_plugins.vectors.models import CollectionRecord, PointRecord, TombstoneRecord
from builtin_plugins.vectors.point_rows import check_fit, read_collection
from builtin_plugins.vectors.protocol import (
    CONTEXT,
    LANGUAGE,
    WORDS_ONLY,
    EngineMismatch,
    GroupQuery,
    Hit,
    Point,
    Query,
    StoredPoint,
    Vector,
    VectorStore,
    WordQuery,
    searched_text,
)
from builtin_plugins.vectors.purging import DROPPED
from builtin_plugins.vectors.settings import VectorSettings
from builtin_plugins.vectors.store import SqlVectorStore
from builtin_plugins.vectors.supervision import supervised
from kernel.sdk import ResourceKey
from kernel.sdk.storage import StoreKind

if TYPE_CHECKING:
    from builtin_plugins.vectors.text import TermReader, WeighedTerms

__all__ = [
    "CONTEXT",
    "DROPPED",
    "LANGUAGE",
    "VECTORS",
    "VECTOR_STORE",
    "WORDS_ONLY",
    "CollectionRecord",
    "EngineMismatch",
    "Follower",
    "GroupQuery",
    "Hit",
    "IndexFolders",
    "Judged",
    "Labels",
    "Point",
    "PointRecord",
    "Query",
    "Ranking",
    "SqlVectorStore",
    "StoredPoint",
    "TermReader",
    "TombstoneRecord",
    "Vector",
    "VectorSettings",
    "VectorStore",
    "WeighedTerms",
    "WordQuery",
    "both_legs",
    "check_fit",
    "fuse",
    "group_names",
    "hybrid_weight",
    "index_folders",
    "indexes_built_before",
    "read_collection",
    "searched_text",
    "term_reader",
    "text_in_language",
    "text_software",
]

VECTORS: ResourceKey[VectorStore] = ResourceKey("vectors")
"""The vector store that the settings choose."""

VECTOR_STORE: StoreKind[VectorStore] = StoreKind(
    "vector store", VECTORS, VectorSettings, "store", fallback="faiss", supervised=supervised
)
"""Stores of vectors. It must pass `builtin_plugins.vectors.conformance.VectorStoreConformance`. If a method
of a plugin's store fails, or is awaited for more than 30 seconds, the response is 503 with the plugin's name;
a write inside a unit can't be ended, but the log names it after 30 seconds.
"""
