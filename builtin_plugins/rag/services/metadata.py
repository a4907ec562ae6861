"""The values of documents' fields: stored within a unit, read for many documents at once.

A field may get values from several origins; the first of `ORIGINS` that says anything wins. What wins is in
`MetadataValue`, where filters look; what is overruled waits in `ShadowedValue`, in case what overrules it is
removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, get_args

from sqlalchemy import String, bindparam, delete, func, insert, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.dates.validity import VALIDITY
from builtin_plugins.rag.metadata.changes import raise_version
from builtin_plugins.rag.metadata.kinds import FieldValue
from builtin_plugins.rag.models import (
    KnowledgeBase,
    MetadataField,
    MetadataRule,
    MetadataValue,
    MetadataVersion,
    ShadowedValue,
)
from kernel.sdk import Unit
from kernel.sdk.storage import Among, Ids

Origin = Literal["hand", "source", "rule", "file", "text", "proposal"]
PROPOSAL: Final = "proposal"
"""What a rule or a model found in the text and nobody has accepted: it is kept and never counts."""
ORIGINS: Final[tuple[Origin, ...]] = tuple(one for one in get_args(Origin) if one != PROPOSAL)
Values = Mapping[str, Sequence[FieldValue]]
"""The values of some fields, by name."""

_VALUE: Any = MetadataValue.__table__
_SHADOWED: Any = ShadowedValue.__table__


def hold_base(unit: Unit, base_id: str) -> bool:
    """Lock a knowledge base also against publishing, before several of its documents are locked: a version
    that is published locks those before it. False if it was deleted.
    """
    query = select(KnowledgeBase.id).where(KnowledgeBase.id == base_id).with_for_update()
    return unit.session.scalar(query) is not None


class Layers:
    """What each origin says about a document. A field without values in a layer is empty because it says
    so: somebody has removed what a file says.
    """

    def __init__(self) -> None:
        self._by_field: dict[str, dict[str, tuple[FieldValue, ...]]] = {}
        self.changed: set[str] = set()
        """The fields that were changed since the layers were read."""

    def read(self, field: str, origin: str, value: FieldValue | None) -> None:
        """Take a stored value, the next of its field; None if the field is empty."""
        by_origin = self._by_field.setdefault(field, {})
        by_origin[origin] = (*by_origin.get(origin, ()), *([] if value is None else [value]))

    def get(self, field: str, origin: Origin) -> tuple[FieldValue, ...] | None:
        """What an origin says about a field; None if nothing."""
        return self._by_field.get(field, {}).get(origin)

    def of_origin(self, origin: Origin) -> dict[str, tuple[FieldValue, ...]]:
        """All that an origin says."""
        return {
            field: by_origin[origin] for field, by_origin in self._by_field.items() if origin in by_origin
        }

    def put(self, origin: Origin, field: str, values: Iterable[FieldValue] | None) -> None:
        """Let an origin say this about a field; None for nothing any more."""
        after, before = None if values is None else tuple(dict.fromkeys(values)), self.get(field, origin)
        if after == before:
            return
        self.changed.add(field)
        if after is None:
            del self._by_field[field][origin]
        else:
            self._by_field.setdefault(field, {})[origin] = after

    def proposed(self) -> dict[str, tuple[FieldValue, ...]]:
        """What is proposed for fields about which nobody has said anything."""
        proposals = self.of_origin(PROPOSAL)
        return {
            field: values for field, values in proposals.items() if values and self.winning(field) is None
        }

    def replace(self, origin: Origin, values_by_field: Values) -> None:
        """Let an origin say only this."""
        for field in self.of_origin(origin).keys() - values_by_field.keys():
            self.put(origin, field, None)
        for field, values in values_by_field.items():
            self.put(origin, field, values)

    def set(self, origin: Origin, values_by_field: Values) -> None:
        """Let an origin say this about some fields. Without values, it says nothing more about one; a person
        empties it, whatever others say.
        """
        for field, values in values_by_field.items():
            others = any(self.get(field, other) for other in (*ORIGINS[1:], PROPOSAL))
            empty = () if origin == "hand" and others else None
            self.put(origin, field, values or empty)

    def winning(self, field: str) -> tuple[Origin, tuple[FieldValue, ...]] | None:
        """The values of a field, and who says so; None if nobody says anything."""
        by_origin = self._by_field.get(field, {})
        return next(((origin, by_origin[origin]) for origin in ORIGINS if origin in by_origin), None)

    def overruled(self, field: str) -> list[tuple[Origin, tuple[FieldValue, ...]]]:
        """What is said about a field and does not count; with it, that it is empty by hand."""
        by_origin, winner = self._by_field.get(field, {}), self.winning(field)
        ranked = [(origin, by_origin[origin]) for origin in (*ORIGINS, PROPOSAL) if origin in by_origin]
        return [one for one in ranked if one != winner or not one[1]]


def read_layers(session: Session, document_ids: Collection[str]) -> dict[str, Layers]:
    """What each origin says about these documents, by id."""
    layers = {document_id: Layers() for document_id in document_ids}
    if not layers:
        return layers
    binds = {"ids": list(layers)}
    for table in (_VALUE, _SHADOWED):
        columns = (table.c.document_id, table.c.field, table.c.origin)
        values = (table.c.text, table.c.folded, table.c.number)
        mine = Among(table.c.document_id, bindparam("ids", type_=Ids(String)))
        query = select(*columns, *values).where(mine).order_by(table.c.field, table.c.position)
        for document_id, field, origin, *value in session.execute(query, binds):
            is_empty = value == [None, None, None]
            layers[document_id].read(field, origin, None if is_empty else FieldValue(*value))
    return layers


def write_layers(unit: Unit, base_id: str, documents: Mapping[str, Layers]) -> None:
    """Store the fields that were changed. The documents must be locked, or new."""
    changed = [
        {"d": document_id, "f": field} for document_id, one in documents.items() for field in one.changed
    ]
    if not changed:
        return
    raise_version(unit.session, base_id)
    connection = unit.session.connection()
    for table in (_VALUE, _SHADOWED):
        one_field = (table.c.document_id == bindparam("d")) & (table.c.field == bindparam("f"))
        connection.execute(delete(table).where(one_field), changed)
    current, shadowed = [], []
    for document_id, layers in documents.items():
        for field in layers.changed:
            place = {"knowledge_base_id": base_id, "document_id": document_id, "field": field}
            winner = layers.winning(field)
            if winner is not None:
                current += _rows(place, *winner)
            for origin, values in layers.overruled(field):
                shadowed += _rows(place, origin, values or (FieldValue(),))
        layers.changed = set()
    for table, rows in ((_VALUE, current), (_SHADOWED, shadowed)):
        if rows:
            connection.execute(insert(table), rows)


def _rows(place: Mapping[str, str], origin: Origin, values: Sequence[FieldValue]) -> list[dict[str, Any]]:
    return [
        {**place, "origin": origin, "position": position, **value._asdict()}
        for position, value in enumerate(values)
    ]


def accepts_dates(session: Session, base_id: str) -> bool:
    """Whether what texts say about when they apply counts in a knowledge base without being accepted."""
    query = select(KnowledgeBase.accept_dates).where(KnowledgeBase.id == base_id)
    return bool(session.scalar(query))


def settle_proposals(layers: Layers, *, accepted: bool) -> None:
    """Let the dates that are proposed about a document count, or no longer."""
    proposed = layers.of_origin(PROPOSAL) if accepted else {}
    layers.replace("text", {field: proposed[field] for field in VALIDITY if field in proposed})


def read_values(session: Session, document_ids: Collection[str]) -> dict[str, dict[str, list[FieldValue]]]:
    """The values of these documents by id and field, in one query."""
    by_document: dict[str, dict[str, list[FieldValue]]] = {}
    mine = Among(_VALUE.c.document_id, bindparam("ids", type_=Ids(String)))
    columns = (_VALUE.c.document_id, _VALUE.c.field, _VALUE.c.text, _VALUE.c.folded, _VALUE.c.number)
    query = select(*columns).where(mine).order_by(_VALUE.c.field, _VALUE.c.position)
    for document_id, field, *value in session.execute(query, {"ids": list(document_ids)}):
        by_document.setdefault(document_id, {}).setdefault(field, []).append(FieldValue(*value))
    return by_document


def remove_values(unit: Unit, document_ids: Collection[str]) -> int:
    """Remove all values of these documents; returns how many there were."""
    removed, binds = 0, {"ids": list(document_ids)}
    for table in (_VALUE, _SHADOWED):
        mine = Among(table.c.document_id, bindparam("ids", type_=Ids(String)))
        result: Any = unit.session.execute(delete(table).where(mine), binds)
        removed += result.rowcount
    return removed


def remove_field_values(unit: Unit, base_id: str, field: str) -> None:
    """Remove the values of a field from every document of a knowledge base."""
    raise_version(unit.session, base_id)
    for table in (_VALUE, _SHADOWED):
        of_field = (table.c.knowledge_base_id == base_id) & (table.c.field == field)
        unit.session.execute(delete(table).where(of_field))


def remove_declarations(unit: Unit, base_id: str) -> None:
    """Remove the fields and rules of a deleted knowledge base; its values go with its documents."""
    for table in (MetadataField, MetadataRule, MetadataVersion):
        unit.session.execute(delete(table).where(table.knowledge_base_id == base_id))


def count_values(session: Session, base_id: str, document_ids: Collection[str] | None) -> int:
    """How many values these documents have, or, without them, all documents of a knowledge base."""
    counted = 0
    for table in (_VALUE, _SHADOWED):
        query = select(func.count()).select_from(table)
        if document_ids is None:
            counted += session.scalar(query.where(table.c.knowledge_base_id == base_id)) or 0
        else:
            mine = Among(table.c.document_id, bindparam("ids", type_=Ids(String)))
            counted += session.scalar(query.where(mine), {"ids": list(document_ids)}) or 0
    return counted


def remove_person(unit: Unit, account_id: int) -> None:
    """Remove a deleted account from the fields of persons, and from the rules that give them values."""
    fields = select(MetadataField.knowledge_base_id, MetadataField.name)
    persons = fields.where(MetadataField.kind == "person").order_by(MetadataField.knowledge_base_id)
    for base_id, name in unit.session.execute(persons).all():
        removed = 0
        for table in (_VALUE, _SHADOWED):
            of_field = (table.c.knowledge_base_id == base_id) & (table.c.field == name)
            person = delete(table).where(of_field, table.c.folded == str(account_id))
            result: Any = unit.session.execute(person)
            removed += result.rowcount
        if removed:
            raise_version(unit.session, base_id)
        rules = (MetadataRule.knowledge_base_id == base_id) & (MetadataRule.field == name)
        for rule in unit.session.scalars(select(MetadataRule).where(rules)):
            several = rule.value if isinstance(rule.value, list) else [rule.value]
            left = [one for one in several if one != account_id]
            if not left:
                unit.session.delete(rule)
            elif left != several:
                rule.value = left
