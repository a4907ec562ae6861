"""Names of models: an id without a tag equals its ``:latest`` form."""

from __future__ import annotations

from typing import Final

_LATEST: Final = ":latest"


def canonical(model: str) -> str:
    """The canonical name of a model, for comparing."""
    return model.removesuffix(_LATEST)


def alias(model: str) -> str:
    """One name for all under which Ollama serves a model; it ignores case, and its registry may be named."""
    _, _, address = model.lower().rpartition("://")
    return canonical(address.removeprefix("registry.ollama.ai/").removeprefix("library/"))


def names_host(model: str) -> bool:
    """Whether the first of several parts names a registry: nobody pulls from hosts of a client's choice."""
    first, slash, _ = model.partition("/")
    return bool(slash) and ("." in first or ":" in first or first.lower() == "localhost")
