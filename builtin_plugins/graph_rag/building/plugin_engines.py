"""Engines of other plugins: what they return is checked, and a failure names the plugin."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from operator import index
from typing import Any, get_args

from kernel.sdk import ANY_ERROR, Unavailable

from ..api import Extractor as OfferedEngine
from ..extraction.mentions import LABELS, Mention, key_of
from .protocol import EntityLink, Extraction, ExtractionEngine, RelationKind

log = logging.getLogger("platform.graph_rag")


def offered(plugin: str, engine: OfferedEngine) -> ExtractionEngine:
    """The engine in the form of the built-in ones; `analyse` raises Unavailable if it fails."""
    failed = f"The extraction engine of the plugin '{plugin}' failed; the server's log says why"

    def missing() -> str | None:
        try:
            return engine.missing()
        except ANY_ERROR:  # boundary: another author's engine
            log.exception("the extraction engine '%s' of the plugin '%s' failed", engine.name, plugin)
            return failed

    def analyse(texts: Sequence[str], language: str | None) -> list[Extraction]:
        try:
            results = list(engine.analyse(texts, language))
            if len(results) != len(texts):
                raise ValueError(f"analyse() returned {len(results)} results for {len(texts)} texts")
            return [_extraction_of(text, one) for text, one in zip(texts, results, strict=True)]
        except ANY_ERROR:  # boundary: another author's engine
            log.exception("the extraction engine '%s' of the plugin '%s' failed", engine.name, plugin)
            raise Unavailable(failed) from None

    return ExtractionEngine(engine.name, engine.version, analyse, missing)


def _extraction_of(text: str, extraction: Any) -> Extraction:
    links = None if extraction.links is None else [_link(text, one) for one in extraction.links]
    return Extraction([_mention(text, one) for one in extraction.mentions], links)


def _mention(text: str, fields: Sequence[Any]) -> Mention:
    start, end, words, key, label = fields
    mention = Mention(index(start), index(end), words, _storable(key), label)
    if not 0 <= mention.start < mention.end <= len(text) or text[mention.start : mention.end] != mention.text:
        raise ValueError(f"a mention is not where it says: {mention}")
    if mention.label not in LABELS:
        raise ValueError(f"a mention has an unknown label: {mention}; labels are {', '.join(sorted(LABELS))}")
    return mention if mention.key else mention._replace(key=key_of(mention.text))


def _link(text: str, fields: Sequence[Any]) -> EntityLink:
    *names, kind, weight, start, end = fields
    subject, predicate, target = map(_storable, names)
    link = EntityLink(subject, predicate, target, kind, float(weight), index(start), index(end))
    if link.kind not in get_args(RelationKind) or not 0 < link.weight <= 1:
        raise ValueError(f"a relation has an unknown kind or weight: {link}")
    if not 0 <= link.start <= link.end <= len(text):
        raise ValueError(f"a relation is not inside the text: {link}")
    return link


def _storable(text: Any) -> str:
    """The text. Raises ValueError for anything else, and for what databases refuse."""
    if not isinstance(text, str) or "\0" in text:
        raise ValueError(f"not a text without NUL characters: {text!r}")
    text.encode()  # raises for half of a surrogate pair
    return text
