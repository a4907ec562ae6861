"""The fields that documents of a knowledge base have: those that are always there, and its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag.metadata.kinds import FieldKind
from builtin_plugins.rag.models import MetadataField
from kernel.sdk import Unprocessable


@dataclass(frozen=True, slots=True)
class FieldDefinition:
    """A field. `of_row`: the server knows it of every document, and nobody sets it."""

    name: str
    kind: FieldKind
    many: bool = False
    description: str = ""
    built_in: bool = False
    of_row: bool = False
    propose: bool = False


def _stored(name: str, kind: FieldKind, description: str, *, many: bool = False) -> FieldDefinition:
    return FieldDefinition(name, kind, many, description, built_in=True)


def _of_row(name: str, kind: FieldKind, description: str) -> FieldDefinition:
    return FieldDefinition(name, kind, False, description, built_in=True, of_row=True)


BUILT_IN: Final[Mapping[str, FieldDefinition]] = {
    one.name: one
    for one in (
        _stored("tags", "text", "Tags, as you set them", many=True),
        _stored("title", "text", "The title that the file gives itself"),
        _stored("subject", "text", "The subject of the file or message"),
        _stored("author", "text", "Who wrote it", many=True),
        _stored("keywords", "text", "Keywords that the file gives itself", many=True),
        _stored("language", "text", "The language of the text, such as de"),
        _stored("created", "date", "When it was made, as the file says"),
        _stored("modified", "date", "When it was changed last, as the file says"),
        _stored("from", "text", "Who sent the message"),
        _stored("to", "text", "Who got the message", many=True),
        _stored("sent", "date", "When the message was sent"),
        _stored("valid_from", "date", "The first day on which it applies"),
        _stored("valid_until", "date", "The last day on which it applies"),
        _of_row("filename", "text", "The name of the file; also called source"),
        _of_row("path", "text", "Where it is, if it was uploaded with a path"),
        _of_row("folder", "text", "The path without the name of the file"),
        _of_row("content_type", "text", "The type of the file"),
        _of_row("size_bytes", "number", "The size of the file"),
        _of_row("page_count", "number", "How many pages it has"),
        _of_row("uploaded_at", "date", "When it was uploaded"),
        _of_row("version", "number", "Counts the uploads under its path or id"),
    )
}
_VALIDITY: Final = ("valid_from", "valid_until")
RESERVED: Final = frozenset((*BUILT_IN, "source", "document_id", "external_id", "parent_id"))
"""Names that a knowledge base's own fields can't have."""


def known_date_field(fields: Mapping[str, FieldDefinition], name: str | None) -> str | None:
    """The name of a field with dates; None for another."""
    try:
        return checked_date_field(fields, name)
    except Unprocessable:
        return None


def checked_date_field(fields: Mapping[str, FieldDefinition], name: str | None) -> str | None:
    """The name of a field with dates. Raises Unprocessable about `date_field` for another."""
    if name is not None and (name not in fields or fields[name].kind != "date" or name in _VALIDITY):
        dates = ", ".join(
            one.name for one in fields.values() if one.kind == "date" and one.name not in _VALIDITY
        )
        raise Unprocessable.field(("body", "date_field"), f"must be a field with dates: {dates}", name)
    return name


def fields_of(session: Session, base_id: str) -> dict[str, FieldDefinition]:
    """The fields of a knowledge base by name, the built-in ones first."""
    rows = session.scalars(
        select(MetadataField).where(MetadataField.knowledge_base_id == base_id).order_by(MetadataField.name)
    )
    own = {
        row.name: FieldDefinition(
            row.name, cast(FieldKind, row.kind), row.many, row.description, propose=row.propose
        )
        for row in rows
    }
    return {**BUILT_IN, **own}
