"""Names of models: an id without a tag equals its ``:latest`` form."""

from __future__ import annotations

from typing import Final

_LATEST: Final = ":latest"


def canonical(model: str) -> str:
    """The canonical name of a model, for comparing."""
    return model.removesuffix(_LATEST)


def alias(model: str) -> str:
    """One name for all that Ollama knows a model by: it ignores case, and accepts its registry in front."""
    _, _, address = model.lower().rpartition("://")
    return canonical(address.removeprefix("registry.ollama.ai/").removeprefix("library/"))


def names_host(model: str) -> bool:
    """Whether the first of several parts is a registry; clients must not choose hosts to pull from.

    To Ollama, the first of three parts is one, whatever it looks like: in a private network, a bare word is.
    """
    first, slash, rest = model.partition("/")
    looks_like_one = "." in first or ":" in first or first.lower() == "localhost"
    return bool(slash) and (looks_like_one or "/" in rest)
