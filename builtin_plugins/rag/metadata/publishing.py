"""What a document has in its fields once it is read: of its file, of rules, and of its earlier version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from builtin_plugins.rag.dates.validity import VALIDITY, validity_in
from builtin_plugins.rag.metadata.fields import BUILT_IN
from builtin_plugins.rag.metadata.kinds import FieldValue, ValueRefused, value_of
from builtin_plugins.rag.metadata.rules import read_rules
from builtin_plugins.rag.models import Document
from builtin_plugins.rag.services.metadata import (
    PROPOSAL,
    Layers,
    accepts_dates,
    read_layers,
    settle_proposals,
    write_layers,
)
from builtin_plugins.rag.services.versions import hold_earlier
from kernel.sdk import Unit

Properties = Mapping[str, Sequence[str]]
"""What a file says about itself, by the names of built-in fields."""


def settle_metadata(unit: Unit, base_id: str, read: Sequence[tuple[Document, Properties | None]]) -> None:
    """Store what is known of documents that are published in this unit, which has locked them; without
    properties, what their files say is stored already.

    A version takes over what was set by hand on the one before it, unless it has values of its own.
    """
    earlier = {document.id: hold_earlier(unit, document) for document, _ in read}
    ids = {document.id for document, _ in read} | {one.id for some in earlier.values() for one in some}
    layers, rules = read_layers(unit.session, ids), read_rules(unit.session, base_id)
    accepted = accepts_dates(unit.session, base_id)
    for document, properties in sorted(read, key=lambda one: one[0].version):
        own = layers[document.id]
        for before in earlier[document.id]:
            _carry(own, layers[before.id])
        if properties is not None:
            by_field = values_in(properties)
            own.replace(
                "file", {field: values for field, values in by_field.items() if field not in VALIDITY}
            )
            own.replace(PROPOSAL, {field: by_field[field] for field in VALIDITY if field in by_field})
            settle_proposals(own, accepted=accepted)
        own.replace("rule", {} if rules is None else rules.values(document))
    write_layers(unit, base_id, {document.id: layers[document.id] for document, _ in read})


def with_validity(properties: Properties, texts: Iterable[str]) -> Properties:
    """A file's properties, with what its passages, in their order, say about when it applies."""
    return {**properties, **{field: [day.isoformat()] for field, day in validity_in(texts).items()}}


def with_language(properties: Properties, detected: str | None) -> Properties:
    """A file's properties, with the language that was detected in its text: what files say is often wrong."""
    return properties if detected is None else {**properties, "language": [detected]}


def _carry(own: Layers, before: Layers) -> None:
    for field, values in before.of_origin("hand").items():
        if own.get(field, "hand") is None:
            own.put("hand", field, values)


def values_in(properties: Properties) -> dict[str, tuple[FieldValue, ...]]:
    """The values of a file's properties; what no field can have is left out."""
    by_field: dict[str, tuple[FieldValue, ...]] = {}
    for name, texts in properties.items():
        definition = BUILT_IN.get(name)
        if definition is None or definition.of_row:
            continue
        values = []
        for text in texts if definition.many else texts[:1]:
            try:
                values.append(value_of(definition.kind, text))
            except ValueRefused:
                continue
        if values:
            by_field[name] = tuple(values)
    return by_field
