"""Editing the values of documents by hand: of one, of one that arrives, and of many at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.errors import DocumentNotFound
from builtin_plugins.rag.filters.binding import FilterSource, bind
from builtin_plugins.rag.metadata.fields import fields_of
from builtin_plugins.rag.metadata.kinds import FieldValue
from builtin_plugins.rag.metadata.people import NOBODY, People, find_people
from builtin_plugins.rag.metadata.rendering import (
    VALUES,
    metadata_by_document,
    name_people,
    origins_in,
    shown_values,
)
from builtin_plugins.rag.metadata.values import MOST_VALUES, FieldRefused, GivenValues, people_in
from builtin_plugins.rag.models import Document
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.rag.schemas_metadata import MOST_EDITED, DocumentMetadata, MetadataEdit, MetadataEdited
from builtin_plugins.rag.services import knowledge_bases, loading
from builtin_plugins.rag.services.identities import CURRENT
from builtin_plugins.rag.services.metadata import (
    Layers,
    Origin,
    hold_base,
    read_layers,
    write_layers,
)
from kernel.sdk import Caller, Scope, Unit, Unprocessable, scope_of

_AT_ONCE: Final = 500
_PLACE: Final = "metadata"


@dataclass(frozen=True)
class IncomingMetadata:
    """Values that arrive with a document. `people` are the accounts in them that the caller sees."""

    values: Mapping[str, object]
    people: People = NOBODY
    origin: Origin = "hand"


async def look_up_people(caller: Caller, kb_id: str, value_sets: Sequence[Mapping[str, object]]) -> People:
    """The accounts that are given as values and that the caller sees."""
    if not any(value_sets):
        return NOBODY
    fields = await caller.platform.database.read(fields_of, kb_id)
    return await find_people(caller, people_in(fields, value_sets))


def store_incoming(unit: Unit, base_id: str, document_id: str, incoming: IncomingMetadata) -> None:
    """Store the metadata of a document that arrives. Raises Unprocessable for a mistake of a person; a
    source states all that it knows, and what no field can have is left out.
    """
    reader = GivenValues(fields_of(unit.session, base_id), incoming.people)
    layers = read_layers(unit.session, [document_id])[document_id]
    if incoming.origin == "hand":
        try:
            layers.set("hand", reader.read(incoming.values))
        except FieldRefused as error:
            raise error.within(_PLACE) from None
    else:
        layers.replace(incoming.origin, reader.read_fitting(incoming.values))
    write_layers(unit, base_id, {document_id: layers})


async def describe(caller: Caller, kb_id: str, document_id: str, incoming: IncomingMetadata) -> None:
    """Store metadata of a document that is there. Raises what `change` raises."""
    people = await look_up_people(caller, kb_id, [incoming.values])
    scope = await scope_of(caller.platform, caller.principal)

    def write(unit: Unit) -> None:
        loading.hold_own(unit.session, scope, kb_id)
        hold_documents(unit, scope, kb_id, [document_id])
        store_incoming(unit, kb_id, document_id, replace(incoming, people=people))

    await caller.platform.database.write(write)


async def show(caller: Caller, kb_id: str, document_id: str) -> DocumentMetadata:
    """The values of a document. Raises KnowledgeBaseNotFound, DocumentNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    document = await caller.platform.database.read(_show, scope, kb_id, document_id)
    await name_people(caller, [document.metadata])
    return document


def _show(session: Session, scope: Scope, kb_id: str, document_id: str) -> DocumentMetadata:
    knowledge_bases.find(session, scope, kb_id)
    mine = (Document.id == document_id) & (Document.knowledge_base_id == kb_id)
    if session.scalar(select(Document.id).where(mine, readable(scope))) is None:
        raise DocumentNotFound()
    return _document_metadata(session, kb_id, document_id)


def _document_metadata(session: Session, kb_id: str, document_id: str) -> DocumentMetadata:
    rows = VALUES.all(session, {"document_ids": [document_id]})
    metadata = metadata_by_document(rows).get(document_id, {})
    origins = {field: one for field, one in origins_in(rows).items() if field in metadata}
    proposed = read_layers(session, [document_id])[document_id].proposed()
    fields = fields_of(session, kb_id)
    proposals = {
        field: shown_values(fields[field], values) for field, values in proposed.items() if field in fields
    }
    return DocumentMetadata(document_id=document_id, metadata=metadata, origins=origins, proposals=proposals)


async def change(
    caller: Caller, kb_id: str, document_id: str, values: Mapping[str, object]
) -> DocumentMetadata:
    """Set values of a document by hand; null removes.

    Raises KnowledgeBaseNotFound, NotOwner, DocumentNotFound, Unprocessable.
    """
    people = await look_up_people(caller, kb_id, [values])
    scope = await scope_of(caller.platform, caller.principal)
    document = await caller.platform.database.write(_change, scope, kb_id, document_id, values, people)
    await name_people(caller, [document.metadata])
    return document


def _change(
    unit: Unit, scope: Scope, kb_id: str, document_id: str, values: Mapping[str, object], people: People
) -> DocumentMetadata:
    loading.hold_own(unit.session, scope, kb_id)
    hold_documents(unit, scope, kb_id, [document_id])
    layers = read_layers(unit.session, [document_id])[document_id]
    try:
        layers.set("hand", GivenValues(fields_of(unit.session, kb_id), people).keeping(layers).read(values))
    except FieldRefused as error:
        raise error.within() from None
    write_layers(unit, kb_id, {document_id: layers})
    return _document_metadata(unit.session, kb_id, document_id)


async def check(caller: Caller, kb_id: str, values: Mapping[str, object]) -> None:
    """Refuse values that no document of a knowledge base can have. Raises Unprocessable."""
    people = await look_up_people(caller, kb_id, [values])
    fields = await caller.platform.database.read(fields_of, kb_id)
    try:
        GivenValues(fields, people).read(values)
    except FieldRefused as error:
        raise error.within() from None


async def edit_many(caller: Caller, kb_id: str, body: MetadataEdit) -> MetadataEdited:
    """Change many documents by hand, in one transaction.

    Raises KnowledgeBaseNotFound, NotOwner, DocumentNotFound, Unprocessable.
    """
    people = await look_up_people(caller, kb_id, [body.set, body.add, body.remove])
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.write(_edit_many, scope, kb_id, body, people)


def _edit_many(unit: Unit, scope: Scope, kb_id: str, body: MetadataEdit, people: People) -> MetadataEdited:
    loading.hold_own(unit.session, scope, kb_id)
    hold_base(unit, kb_id)
    ids = sorted(set(body.document_ids or ())) or _matching(unit.session, scope, kb_id, body)
    edit = _Edit(GivenValues(fields_of(unit.session, kb_id), people), body)
    hold_documents(unit, scope, kb_id, ids)
    changed = 0
    for start in range(0, len(ids), _AT_ONCE):
        layers = read_layers(unit.session, ids[start : start + _AT_ONCE])
        for document_layers in layers.values():
            edit.apply(document_layers)
            changed += bool(document_layers.changed)
        write_layers(unit, kb_id, layers)
    return MetadataEdited(documents=changed)


def _matching(session: Session, scope: Scope, kb_id: str, body: MetadataEdit) -> list[str]:
    """The newest versions that the filter of an edit leaves. Raises Unprocessable."""
    matching = bind(session, scope, [kb_id], [FilterSource(body.filter, ("body", "filter"))])
    query = select(Document.id).where(CURRENT, matching.condition()).order_by(Document.id)
    ids = list(session.scalars(query.limit(MOST_EDITED + 1)))
    if len(ids) > MOST_EDITED:
        why = f"matches more than {MOST_EDITED:,} documents; change them in parts"
        raise Unprocessable.field(("body", "filter"), why)
    return ids


class _Edit:
    """What a bulk edit does to each document. Raises Unprocessable for values that a field can't have."""

    def __init__(self, reader: GivenValues, body: MetadataEdit) -> None:
        self._set = _checked(reader, "set", body.set)
        self._add = _checked(reader, "add", body.add)
        self._remove = _checked(reader, "remove", body.remove)
        single = [name for name in self._add if not reader.field(name).many]
        if single:
            why = "takes one value; use set to change it"
            raise FieldRefused(single[0], why).within("add")

    def apply(self, layers: Layers) -> None:
        """Change one document. Raises Unprocessable if a field would get too many values."""
        layers.set("hand", self._set)
        for field in {**self._add, **self._remove}:
            winning = layers.winning(field)
            before = () if winning is None else winning[1]
            gone = self._remove.get(field, ())
            after = tuple(dict.fromkeys(_without((*before, *self._add.get(field, ())), gone)))
            if len(after) > MOST_VALUES:
                raise FieldRefused(field, f"takes at most {MOST_VALUES} values", len(after)).within("add")
            if after != before:
                layers.set("hand", {field: after})


def _without(values: Iterable[FieldValue], gone: Sequence[FieldValue]) -> list[FieldValue]:
    """Those that are none of these; texts are compared without capitals."""
    keys = {_key(one) for one in gone}
    return [one for one in values if _key(one) not in keys]


def _key(value: FieldValue) -> Any:
    return value.folded if value.folded is not None else value.number


def _checked(
    reader: GivenValues, place: str, values: Mapping[str, object]
) -> dict[str, tuple[FieldValue, ...]]:
    try:
        return reader.read(values)
    except FieldRefused as error:
        raise error.within(place) from None


def hold_documents(unit: Unit, scope: Scope, kb_id: str, document_ids: Sequence[str]) -> None:
    """Lock documents of a knowledge base until the unit ends.

    Raises DocumentNotFound for one that it hasn't, or that the scope may not read.
    """
    mine: ColumnElement[bool] = (Document.knowledge_base_id == kb_id) & readable(scope)
    for start in range(0, len(document_ids), _AT_ONCE):
        some = document_ids[start : start + _AT_ONCE]
        query = select(Document.id).where(mine, Document.id.in_(some)).order_by(Document.id)
        present = set(unit.session.scalars(query.with_for_update()))
        missing = [one for one in some if one not in present]
        if missing:
            raise DocumentNotFound(f"This knowledge base has no document {missing[0][:64]}")
