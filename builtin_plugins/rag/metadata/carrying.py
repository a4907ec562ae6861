"""Fields, rules and values that go with a knowledge base to another platform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from sqlalchemy.orm import Session

from builtin_plugins.rag.contents import DeclaredMetadata
from builtin_plugins.rag.metadata.fields import RESERVED, fields_of
from builtin_plugins.rag.metadata.kinds import ValueRefused, is_name, nfc, text_of, value_of
from builtin_plugins.rag.metadata.rules import checked_rule, stored_rules
from builtin_plugins.rag.metadata.values import MOST_FIELDS, MOST_VALUES, GivenValues
from builtin_plugins.rag.models import MetadataField, MetadataRule
from builtin_plugins.rag.schemas_metadata import MOST_RULES, FieldPut
from builtin_plugins.rag.services.metadata import (
    PROPOSAL,
    Origin,
    accepts_dates,
    read_layers,
    settle_proposals,
    write_layers,
)
from kernel.sdk import Unit, Unprocessable, utc_now

_CARRIED: Final[tuple[Origin, ...]] = ("hand", "source", "file", PROPOSAL)
_ACCOUNTS: Final = "person"
Carried = Mapping[str, Mapping[str, Sequence[str]]]
"""Values as texts, by origin and field."""


def carried_values(session: Session, base_id: str, document_ids: Sequence[str]) -> dict[str, Carried]:
    """The values of documents, by id. Accounts stay here: another platform has others."""
    kinds = {name: one.kind for name, one in fields_of(session, base_id).items() if one.kind != _ACCOUNTS}
    return {
        document_id: {
            origin: {
                field: [text_of(kinds[field], value) for value in values]
                for field, values in layers.of_origin(origin).items()
                if field in kinds
            }
            for origin in _CARRIED
            if layers.of_origin(origin)
        }
        for document_id, layers in read_layers(session, document_ids).items()
    }


def store_carried(unit: Unit, base_id: str, document_id: str, carried: Carried) -> None:
    """Store values that came with a document; those that its fields can't have are left out."""
    fields = fields_of(unit.session, base_id)
    layers = read_layers(unit.session, [document_id])
    for origin in _CARRIED:
        for name, texts in carried.get(origin, {}).items():
            definition, values = fields.get(name), []
            if definition is None or definition.of_row or definition.kind == _ACCOUNTS:
                continue
            for text in texts[: MOST_VALUES if definition.many else 1]:
                try:
                    values.append(value_of(definition.kind, text))
                except ValueRefused:
                    continue
            if values or not texts:
                layers[document_id].put(origin, name, values)
    settle_proposals(layers[document_id], accepted=accepts_dates(unit.session, base_id))
    write_layers(unit, base_id, layers)


def declared_in(session: Session, base_id: str) -> DeclaredMetadata:
    """The fields and rules of a knowledge base."""
    own = {name: one for name, one in fields_of(session, base_id).items() if not one.built_in}
    rules = stored_rules(session, base_id)
    return DeclaredMetadata(
        {
            name: FieldPut(kind=one.kind, many=one.many, description=one.description)
            for name, one in own.items()
        },
        [one for one in rules if one.field not in own or own[one.field].kind != _ACCOUNTS],
    )


def declare_all(unit: Unit, base_id: str, declared: DeclaredMetadata) -> None:
    """Give a knowledge base fields and rules, unless it has some: a second run of an import adds nothing, and
    what is beyond the limits is left out.
    """
    present = fields_of(unit.session, base_id)
    room = MOST_FIELDS - sum(not field.built_in for field in present.values())
    new = [(name, field) for name, field in declared.fields.items() if name not in present]
    for name, field in new[: max(room, 0)]:
        if name not in RESERVED and is_name(nfc(name)) and name == nfc(name):
            unit.session.add(
                MetadataField(
                    knowledge_base_id=base_id, name=name, created_at=utc_now(), **field.model_dump()
                )
            )
    unit.session.flush()
    if stored_rules(unit.session, base_id):
        return
    reader, position = GivenValues(fields_of(unit.session, base_id)), 0
    for rule in declared.rules[:MOST_RULES]:
        with suppress(Unprocessable):
            values = checked_rule(position, rule, reader).model_dump()
            unit.session.add(MetadataRule(knowledge_base_id=base_id, position=position, **values))
            position += 1
    unit.session.flush()
