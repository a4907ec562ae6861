"""Reads imported RDF in a child process: which things it relates, by their names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from builtin_plugins.graph_rag.api import NOUN_PHRASE, key_of

from . import names
from .names import CLASSES, RDF, SCHEMA, SKOS, VOCABULARY

MEDIA_TYPES: Final = {
    "turtle": "text/turtle",
    "n-quads": "application/n-quads",
    "json-ld": "application/ld+json",
}
_NAMES = (
    f"{SKOS}prefLabel",
    "http://www.w3.org/2000/01/rdf-schema#label",
    f"{SCHEMA}name",
    "http://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
)
_LABELS: Final = {name: label for label, name in reversed(CLASSES.items())}
_PARTS = ("subject", "predicate", "object")
_NAMING = (f"{VOCABULARY}names", f"{SKOS}altLabel", f"{VOCABULARY}reason")
_BOOKKEEPING = {
    f"{VOCABULARY}Mention",
    f"{VOCABULARY}Passage",
    f"{VOCABULARY}Naming",
    f"{RDF}Statement",
}
_LONGEST_NAME = 200
_LONGEST_LABEL = 32
_HEAVIEST = 1e6


def read(file: str, format_name: str, most: int) -> dict[str, Any]:
    """Read a file.

    `things` are lists of key, name and label. `statements` are lists of subject, predicate, object and
    weight, and `namings` of another name, the reason and the thing, with things as indexes. `refused` tells
    why the file can't be read, or that it has more than `most` statements.
    """
    import pyoxigraph as ox

    statements: list[Any] = []
    try:
        kind = ox.RdfFormat.from_media_type(MEDIA_TYPES[format_name])
        for quad in ox.parse(Path(file).read_bytes(), format=kind):
            statements.append(quad)
            if len(statements) > most:
                return {"refused": f"has more than {most} statements; import it in parts"}
    except (SyntaxError, ValueError, OSError) as error:
        return {"refused": f"is not valid {format_name}: {str(error)[:300]}"}
    answer = _Content(statements).answer()
    if any("\x00" in text for text in _texts(answer)):
        return {
            "refused": "has a name with a NUL character, which may be written as \\u0000 or %00; remove it"
        }
    return answer


def _texts(answer: dict[str, Any]) -> Iterator[str]:
    """All texts that would be stored."""
    for part in answer.values():
        for row in part:
            yield from (one for one in row if isinstance(one, str))


class _Content:
    """The statements of a file. Those in our own vocabulary have the same meaning as in an export."""

    def __init__(self, statements: list[Any]) -> None:
        self._statements = statements
        self._names = _names(statements)
        self._about: dict[Any, dict[str, Any]] = {}
        self._types: dict[Any, set[str]] = {}
        for quad in statements:
            if quad.predicate.value == f"{RDF}type":
                self._types.setdefault(quad.subject, set()).add(quad.object.value)
            else:
                self._about.setdefault(quad.subject, {})[quad.predicate.value] = quad.object
        self._things: dict[Any, int] = {}

    def answer(self) -> dict[str, Any]:
        statements = [*self._reified(), *self._plain()]
        namings = list(self._namings())
        for term, types in self._types.items():
            if f"{SKOS}Concept" in types:
                self._thing(term)
        things = [self._entity_row(term) for term in self._things]
        return {"things": things, "statements": statements, "namings": namings}

    def _reified(self) -> Iterator[list[Any]]:
        """Reified statements: an export's relations, with their weights."""
        for term, types in self._types.items():
            parts = self._about.get(term, {})
            if f"{RDF}Statement" in types and {f"{RDF}{one}" for one in _PARTS} <= parts.keys():
                subject, predicate, target = (parts[f"{RDF}{one}"] for one in _PARTS)
                weight = _number(parts.get(f"{VOCABULARY}weight"))
                yield from self._statement(subject, predicate.value, target, weight)

    def _plain(self) -> Iterator[list[Any]]:
        """Other statements between two named things, unless a reified one says the same."""
        reified = {
            tuple(parts.get(f"{RDF}{one}") for one in _PARTS)
            for term, parts in self._about.items()
            if f"{RDF}Statement" in self._types.get(term, ())
        }
        for quad in self._statements:
            if (quad.subject, quad.predicate, quad.object) in reified or self._is_ours(quad.subject):
                continue
            if not quad.predicate.value.startswith((RDF, VOCABULARY)):
                yield from self._statement(quad.subject, quad.predicate.value, quad.object, 1.0)

    def _statement(self, subject: Any, predicate: str, target: Any, weight: float) -> Iterator[list[Any]]:
        if subject in self._names and target in self._names:
            yield [self._thing(subject), names.predicate_name(predicate) or _local(predicate),
                   self._thing(target), weight]  # fmt: skip

    def _namings(self) -> Iterator[list[Any]]:
        for term, types in self._types.items():
            parts = self._about.get(term, {})
            named, name, reason = (parts.get(one) for one in _NAMING)
            if f"{VOCABULARY}Naming" in types and named in self._names and name is not None:
                yield [name.value[:_LONGEST_NAME], reason.value if reason else "", self._thing(named)]

    def _is_ours(self, term: Any) -> bool:
        types = self._types.get(term, set())
        return not _BOOKKEEPING.isdisjoint(types) or names.is_document(getattr(term, "value", ""))

    def _thing(self, term: Any) -> int:
        return self._things.setdefault(term, len(self._things))

    def _entity_row(self, term: Any) -> list[str]:
        name = self._names[term]
        label = self._about.get(term, {}).get(f"{VOCABULARY}label")
        labels = (_LABELS.get(_local(one)) for one in sorted(self._types.get(term, ())))
        text = label.value if label is not None else next((one for one in labels if one), NOUN_PHRASE)
        key = key_of(names.entity_key(getattr(term, "value", "")) or name)
        return [key, name, text[:_LONGEST_LABEL]]


def _number(term: Any) -> float:
    """A weight; 1 if it isn't a number."""
    try:
        weight = float(term.value) if term is not None else 1.0
    except ValueError:
        return 1.0
    return weight if 0 < weight < _HEAVIEST else 1.0


def _names(statements: list[Any]) -> dict[Any, str]:
    """The names of things: from the data, else from the end of their IRIs."""
    import pyoxigraph as ox

    named: dict[Any, tuple[int, str]] = {}
    for quad in statements:
        for term in (quad.subject, quad.object):
            if isinstance(term, ox.NamedNode) and (name := _local(term.value)):
                named.setdefault(term, (len(_NAMES), name))
        if quad.predicate.value in _NAMES and isinstance(quad.object, ox.Literal):
            rank, name = _NAMES.index(quad.predicate.value), " ".join(quad.object.value.split())
            if name:
                named[quad.subject] = min(
                    named.get(quad.subject, (len(_NAMES) + 1, "")), (rank, name[:_LONGEST_NAME])
                )
    return {term: name for term, (_, name) in named.items()}


def _local(address: str) -> str:
    end = max(address.rfind("/"), address.rfind("#"), address.rfind(":"))
    return " ".join(unquote(address[end + 1 :]).replace("_", " ").split())[:_LONGEST_NAME]
