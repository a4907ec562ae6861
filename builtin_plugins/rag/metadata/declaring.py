"""A knowledge base's own fields: listed, declared, changed and removed."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import delete, exists, func, select, update
from sqlalchemy.orm import Session

from builtin_plugins.rag.errors import BuiltInField, FieldInUse, FieldNotFound
from builtin_plugins.rag.metadata.fields import BUILT_IN, RESERVED, FieldDefinition, fields_of
from builtin_plugins.rag.metadata.kinds import LONGEST_NAME, is_name, nfc
from builtin_plugins.rag.metadata.proposing import queue_proposals
from builtin_plugins.rag.metadata.values import MOST_FIELDS
from builtin_plugins.rag.models import (
    KnowledgeBase,
    MetadataField,
    MetadataRule,
    MetadataValue,
    ShadowedValue,
)
from builtin_plugins.rag.schemas_metadata import FieldOut, FieldPut
from builtin_plugins.rag.services import knowledge_bases, loading
from builtin_plugins.rag.services.metadata import PROPOSAL, remove_field_values
from kernel.sdk import Caller, Scope, Unit, Unprocessable, scope_of, utc_now

_VALUE: Any = MetadataValue.__table__
_SHADOWED: Any = ShadowedValue.__table__
_NAME: Final = f"must have 1 to {LONGEST_NAME} letters, digits or underscores"


async def list_fields(caller: Caller, kb_id: str) -> list[FieldOut]:
    """The fields of a knowledge base, the built-in ones first. Raises KnowledgeBaseNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_list, scope, kb_id)


def _list(session: Session, scope: Scope, kb_id: str) -> list[FieldOut]:
    knowledge_bases.find(session, scope, kb_id)
    return [_out(one) for one in fields_of(session, kb_id).values()]


async def show_field(caller: Caller, kb_id: str, name: str) -> FieldOut:
    """One field. Raises KnowledgeBaseNotFound, FieldNotFound."""
    for field in await list_fields(caller, kb_id):
        if field.name == nfc(name):
            return field
    raise FieldNotFound()


async def declare(caller: Caller, kb_id: str, name: str, body: FieldPut) -> FieldOut:
    """Declare a field, or change it.

    Raises KnowledgeBaseNotFound, NotOwner, BuiltInField, FieldInUse, Unprocessable.
    """
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.write(_declare, scope, kb_id, nfc(name), body)


def _declare(unit: Unit, scope: Scope, kb_id: str, name: str, body: FieldPut) -> FieldOut:
    base = loading.hold_own(unit.session, scope, kb_id)
    if name in RESERVED:
        raise BuiltInField()
    if not is_name(name):
        raise Unprocessable.field(("path", "name"), _NAME, name[:LONGEST_NAME])
    row = unit.session.get(MetadataField, (kb_id, name))
    if row is None:
        count = select(func.count()).select_from(MetadataField)
        if (unit.session.scalar(count.where(MetadataField.knowledge_base_id == kb_id)) or 0) >= MOST_FIELDS:
            message = f"a knowledge base has at most {MOST_FIELDS} fields of its own; remove one first"
            raise Unprocessable.field(("path", "name"), message, name)
        remove_field_values(unit, kb_id, name)  # of a field of this name that was being removed
        row = MetadataField(knowledge_base_id=kb_id, name=name, created_at=utc_now())
        unit.session.add(row)
    elif (row.kind, row.many) != (body.kind, body.many):
        _remove_proposals(unit, row)
        _check_free(unit.session, row, body)
    elif row.propose and not body.propose:
        _remove_proposals(unit, row)
    begins = body.propose and not row.propose
    row.kind, row.many, row.description = body.kind, body.many, body.description
    row.propose = body.propose
    unit.session.flush()
    if begins:
        queue_proposals(unit, base, None, scope.account_id or base.owner_id)
    return _out(FieldDefinition(name, body.kind, body.many, body.description, propose=body.propose))


def _remove_proposals(unit: Unit, row: MetadataField) -> None:
    mine = (_SHADOWED.c.knowledge_base_id == row.knowledge_base_id) & (_SHADOWED.c.field == row.name)
    unit.session.execute(delete(_SHADOWED).where(mine, _SHADOWED.c.origin == PROPOSAL))


def _check_free(session: Session, row: MetadataField, body: FieldPut) -> None:
    """Raise FieldInUse if documents have values that would not fit."""
    if row.kind == body.kind and body.many:
        return
    for table in (_VALUE, _SHADOWED):
        mine = (table.c.knowledge_base_id == row.knowledge_base_id) & (table.c.field == row.name)
        unfit = table.c.text.is_not(None) | table.c.number.is_not(None)
        if row.kind == body.kind:
            unfit = table.c.position > 0
        if not session.scalar(select(exists().where(mine & unfit))):
            continue
        what = f"of the kind {row.kind}" if row.kind != body.kind else "of which there are several"
        raise FieldInUse(
            f"Documents have values in '{row.name}' {what}: remove these first, or delete the field and "
            "declare it again"
        )


async def remove(caller: Caller, kb_id: str, name: str) -> None:
    """Remove a field with its values and the rules that give them.

    Raises KnowledgeBaseNotFound, NotOwner, FieldNotFound, BuiltInField.
    """
    scope = await scope_of(caller.platform, caller.principal)
    await caller.platform.database.write(_remove, scope, kb_id, nfc(name))
    await caller.platform.database.scrub()


def _remove(unit: Unit, scope: Scope, kb_id: str, name: str) -> None:
    loading.hold_own(unit.session, scope, kb_id)
    row = unit.session.get(MetadataField, (kb_id, name))
    if row is None:
        raise BuiltInField() if name in BUILT_IN else FieldNotFound()
    unit.session.delete(row)
    remove_field_values(unit, kb_id, name)
    named = (KnowledgeBase.id == kb_id) & (KnowledgeBase.date_field == name)
    unit.session.execute(update(KnowledgeBase).where(named).values(date_field=None))
    rules = (MetadataRule.knowledge_base_id == kb_id) & (MetadataRule.field == name)
    unit.session.execute(delete(MetadataRule).where(rules))


def _out(field: FieldDefinition) -> FieldOut:
    return FieldOut(
        name=field.name,
        kind=field.kind,
        many=field.many,
        description=field.description,
        built_in=field.built_in,
        can_be_set=not field.of_row,
        propose=field.propose,
    )
