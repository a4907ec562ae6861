"""Hooks that this plugin offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kernel.sdk import hookspec


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
