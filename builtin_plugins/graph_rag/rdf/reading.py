"""RDF from outside, read in a child process: which things it relates, by the names that it gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from .names import CLASSES, RDF, SCHEMA, SKOS

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
_LONGEST_NAME = 200


def read(file: str, wanted: str, most: int) -> dict[str, Any]:
    """The relations in a file: `statements` of (subject, predicate, object), and `labels` of names.

    `refused` says why it can't be read, or that it has more than `most` statements.
    """
    import pyoxigraph as ox

    found: list[Any] = []
    try:
        kind = ox.RdfFormat.from_media_type(MEDIA_TYPES[wanted])
        for quad in ox.parse(Path(file).read_bytes(), format=kind):
            found.append(quad)
            if len(found) > most:
                return {"refused": f"has more than {most} statements; import it in parts"}
    except (SyntaxError, ValueError, OSError) as error:
        return {"refused": f"is no {wanted}: {str(error)[:300]}"}
    return _related(found)


def _related(found: list[Any]) -> dict[str, Any]:
    import pyoxigraph as ox

    names = _names(found)
    labels: dict[str, str] = {}
    statements = []
    for quad in found:
        subject, target = names.get(quad.subject), names.get(quad.object)
        predicate = quad.predicate.value
        if subject and predicate == f"{RDF}type" and isinstance(quad.object, ox.NamedNode):
            label = _LABELS.get(_local(quad.object.value))
            if label:
                labels[subject] = label
        elif subject and target and not predicate.startswith(RDF):
            statements.append([subject, _local(predicate), target])
    return {"statements": statements, "labels": labels}


def _names(found: list[Any]) -> dict[Any, str]:
    """What things are called: as the data says, else by the end of their addresses."""
    import pyoxigraph as ox

    names: dict[Any, tuple[int, str]] = {}
    for quad in found:
        for term in (quad.subject, quad.object):
            if isinstance(term, ox.NamedNode) and (name := _local(term.value)):
                names.setdefault(term, (len(_NAMES), name))
        if quad.predicate.value in _NAMES and isinstance(quad.object, ox.Literal):
            rank, name = _NAMES.index(quad.predicate.value), " ".join(quad.object.value.split())
            if name:
                names[quad.subject] = min(
                    names.get(quad.subject, (len(_NAMES) + 1, "")), (rank, name[:_LONGEST_NAME])
                )
    return {term: name for term, (_, name) in names.items()}


def _local(address: str) -> str:
    end = max(address.rfind("/"), address.rfind("#"), address.rfind(":"))
    return " ".join(unquote(address[end + 1 :]).replace("_", " ").split())[:_LONGEST_NAME]
