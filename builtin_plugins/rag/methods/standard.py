"""`standard`: retrieve once, then answer from the passages with citations."""

from __future__ import annotations

from builtin_plugins.rag.methods.method import Method


class Standard(Method):
    """Only the default phases; the model is asked once."""

    name = "standard"
    thinks = False
