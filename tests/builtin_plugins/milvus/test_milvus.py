"""Vectors, words and filters in Milvus, with Milvus Lite as a server."""

from __future__ import annotations

from builtin_plugins.vectors.conformance import VectorStoreConformance


class TestMilvusStore(VectorStoreConformance):
    """The conformance suite."""
