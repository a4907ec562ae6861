"""`standard`: retrieve once, then answer from the passages with citations."""

from __future__ import annotations

from builtin_plugins.rag.methods.method import Method


class Standard(Method):
    """Nothing but the phases that all methods share; the model is asked once."""

    name = "standard"
    thinks = False
