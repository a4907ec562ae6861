"""The values of documents as clients see them: of many documents in one query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import String, bindparam, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.metadata.fields import BUILT_IN, FieldDefinition
from builtin_plugins.rag.metadata.kinds import FieldValue, value_as_json
from builtin_plugins.rag.metadata.people import names_of
from builtin_plugins.rag.models import MetadataField, MetadataValue
from kernel.sdk import Caller, Prepared
from kernel.sdk.storage import Among, Ids

_VALUE: Any = MetadataValue.__table__
_FIELD: Any = MetadataField.__table__
_OF_FIELD = (_FIELD.c.knowledge_base_id == _VALUE.c.knowledge_base_id) & (_FIELD.c.name == _VALUE.c.field)
VALUES: Final = Prepared(
    select(
        *(_VALUE.c.document_id, _VALUE.c.field, _VALUE.c.text, _VALUE.c.number, _VALUE.c.origin),
        *(_FIELD.c.kind, _FIELD.c.many),
    )
    .select_from(_VALUE.outerjoin(_FIELD, _OF_FIELD))
    .where(Among(_VALUE.c.document_id, bindparam("document_ids", type_=Ids(String))))
    .order_by(_VALUE.c.document_id, _VALUE.c.field, _VALUE.c.position)
)
"""The values of the documents `document_ids`, with their fields' kinds."""

Metadata = dict[str, Any]


def metadata_by_document(rows: Iterable[Mapping[str, Any]]) -> dict[str, Metadata]:
    """Rows of `VALUES` as they are shown, by document. The names of persons are still to come."""
    by_document: dict[str, Metadata] = {}
    for row in rows:
        built_in = BUILT_IN.get(row["field"])
        kind, many = (row["kind"], row["many"]) if built_in is None else (built_in.kind, built_in.many)
        if kind is None:  # its field was removed just now
            continue
        value = value_as_json(kind, FieldValue(row["text"], None, row["number"]), {})
        mine = by_document.setdefault(row["document_id"], {})
        if many:
            mine.setdefault(row["field"], []).append(value)
        else:
            mine[row["field"]] = value
    return by_document


def shown_values(field: FieldDefinition, values: Sequence[FieldValue]) -> Any:
    """The values of a field, such as proposed ones, as they are shown: a list for one with several."""
    items = [value_as_json(field.kind, one, {}) for one in values]
    return items if field.many else items[0]


def read_metadata(session: Session, document_id: str) -> Metadata:
    """The values of one document, without the names of persons."""
    return metadata_by_document(VALUES.all(session, {"document_ids": [document_id]})).get(document_id, {})


async def load_metadata(caller: Caller, document_ids: Sequence[str]) -> dict[str, Metadata]:
    """The values of documents that the caller may read, by id."""
    if not document_ids:
        return {}
    rows = await caller.platform.database.read(VALUES.all, {"document_ids": document_ids})
    metadata = metadata_by_document(rows)
    await name_people(caller, metadata.values())
    return metadata


async def name_people(caller: Caller, documents: Iterable[Metadata]) -> None:
    """Add the names of persons that the caller sees."""
    shown_people = [person for one in documents for person in _people_in(one)]
    if not shown_people:
        return
    names = await names_of(caller, {person["id"] for person in shown_people})
    for person in shown_people:
        person["name"] = names.get(person["id"])


def _people_in(metadata: Metadata) -> list[dict[str, Any]]:
    several: Iterable[Any] = (
        one for value in metadata.values() for one in (value if isinstance(value, list) else (value,))
    )
    return [one for one in several if isinstance(one, dict)]


def origins_in(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Who says so, by field, from rows of `VALUES` of one document."""
    return {row["field"]: row["origin"] for row in rows}
