"""PathRules of a knowledge base: what the path of a document says about its fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from pydantic import BaseModel
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.metadata.editing import look_up_people
from builtin_plugins.rag.metadata.fields import FieldDefinition, fields_of
from builtin_plugins.rag.metadata.kinds import FieldValue, nfc
from builtin_plugins.rag.metadata.patterns import PathPattern, PatternRefused
from builtin_plugins.rag.metadata.people import NOBODY, People
from builtin_plugins.rag.metadata.values import MOST_VALUES, FieldRefused, GivenValues
from builtin_plugins.rag.models import Document, MetadataRule
from builtin_plugins.rag.schemas_metadata import RuleIn, RulesChanged, RulesOut
from builtin_plugins.rag.services import knowledge_bases, loading
from builtin_plugins.rag.services.identities import path_in
from builtin_plugins.rag.services.loading import seen_bases
from builtin_plugins.rag.services.metadata import (
    accepts_dates,
    hold_base,
    read_layers,
    settle_proposals,
    write_layers,
)
from kernel.sdk import Caller, LongJob, Platform, Progress, Scope, Unit, Unprocessable, scope_of
from kernel.sdk.jobs import JobMoved

_AT_ONCE: Final = 200
_OF_ONE_TURN: Final = 2_000
"""Documents of one run; further ones wait in the lane of longer work."""


class RulesPayload(BaseModel):
    """The knowledge base whose documents are gone through, and after which one."""

    knowledge_base_id: str
    after: str = ""


class PathRules:
    """The rules of a knowledge base, ready to be applied."""

    def __init__(self, rules: Sequence[RuleIn], fields: Mapping[str, FieldDefinition]) -> None:
        self._rules = [(PathPattern(one.pattern), one) for one in rules]
        self._fields = fields

    def values(self, document: Document) -> dict[str, tuple[FieldValue, ...]]:
        """What they say about a document: of its path, or without one of its file name."""
        path = path_in(document.identity) or document.filename
        values_by_field: dict[str, tuple[FieldValue, ...]] = {}
        for pattern, rule in self._rules:
            definition = self._fields.get(rule.field)
            if definition is None or (rule.field in values_by_field and not definition.many):
                continue
            parts = pattern.match(path)
            if parts is None:
                continue
            value = parts.get(rule.part or rule.field) if rule.value is None else rule.value
            with suppress(FieldRefused):  # a part of the path need not be a number, or a date
                values = GivenValues(self._fields, _whoever(definition, value)).read_field(rule.field, value)
                both = dict.fromkeys((*values_by_field.get(rule.field, ()), *values))
                values_by_field[rule.field] = tuple(both)[:MOST_VALUES]
        return {field: values for field, values in values_by_field.items() if values}


def _whoever(definition: FieldDefinition, value: object) -> People:
    """The accounts of a rule, which were checked when it was made; a path can't name any."""
    if definition.kind != "person":
        return NOBODY
    several = value if isinstance(value, list) else [value]
    return People(names={one: "" for one in several if isinstance(one, int)})


def read_rules(session: Session, kb_id: str) -> PathRules | None:
    """The rules of a knowledge base; None without any."""
    rules = stored_rules(session, kb_id)
    return PathRules(rules, fields_of(session, kb_id)) if rules else None


def stored_rules(session: Session, kb_id: str) -> list[RuleIn]:
    query = select(MetadataRule).where(MetadataRule.knowledge_base_id == kb_id)
    rows = session.scalars(query.order_by(MetadataRule.position))
    return [RuleIn(pattern=row.pattern, field=row.field, value=row.value, part=row.part) for row in rows]


async def list_rules(caller: Caller, kb_id: str) -> RulesOut:
    """The rules of a knowledge base in their order. Raises KnowledgeBaseNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_list, scope, kb_id)


def _list(session: Session, scope: Scope, kb_id: str) -> RulesOut:
    knowledge_bases.find(session, scope, kb_id)
    return RulesOut(rules=stored_rules(session, kb_id))


async def put_rules(caller: Caller, kb_id: str, rules: Sequence[RuleIn]) -> RulesChanged:
    """Replace the rules, and queue the job that applies them to the documents that are there.

    Raises KnowledgeBaseNotFound, NotOwner, Unprocessable.
    """
    value_sets = [{rule.field: rule.value} for rule in rules if rule.value is not None]
    people = await look_up_people(caller, kb_id, value_sets)
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.write(_put, scope, kb_id, rules, people)


def _put(unit: Unit, scope: Scope, kb_id: str, rules: Sequence[RuleIn], people: People) -> RulesChanged:
    base = loading.hold_own(unit.session, scope, kb_id)
    reader = GivenValues(fields_of(unit.session, kb_id), people)
    checked = [checked_rule(number, rule, reader) for number, rule in enumerate(rules)]
    unit.session.execute(delete(MetadataRule).where(MetadataRule.knowledge_base_id == kb_id))
    for position, rule in enumerate(checked):
        unit.session.add(MetadataRule(knowledge_base_id=kb_id, position=position, **rule.model_dump()))
    return RulesChanged(rules=checked, job_id=queue_rules(unit, kb_id, scope.account_id or base.owner_id))


def queue_rules(unit: Unit, kb_id: str, owner_id: int | None) -> str:
    """Queue the job that applies a knowledge base's rules and proposals to all documents; returns its id."""
    return unit.enqueue(APPLY_RULES, RulesPayload(knowledge_base_id=kb_id), owner_id=owner_id, subject=kb_id)


def checked_rule(number: int, rule: RuleIn, reader: GivenValues) -> RuleIn:
    """A rule that can be stored. Raises Unprocessable about the rule of this number."""
    place, name = ("body", "rules", number), nfc(rule.field)
    try:
        pattern = PathPattern(rule.pattern)
    except PatternRefused as error:
        raise Unprocessable.field((*place, "pattern"), str(error), rule.pattern[:80]) from None
    try:
        definition, value = reader.field(name), rule.value
        if value is not None and not reader.read_field(name, value):
            raise FieldRefused(name, "must have a value, or null to use a part of the path")
    except FieldRefused as error:
        raise Unprocessable.field((*place, "field"), error.why, name) from None
    part = None if rule.part is None else nfc(rule.part)
    is_person = definition.kind == "person"
    if value is None and (is_person or (part or name) not in pattern.parts):
        why = "needs a value" if is_person else f"needs a value, or a part of its pattern: {{{part or name}}}"
        raise Unprocessable.field((*place, "value"), why)
    if is_person:
        several = value if isinstance(value, list) else [value]
        accounts = [reader.people.find(one) for one in several]
        value = accounts if definition.many else accounts[0]
    return RuleIn(pattern=nfc(rule.pattern), field=name, value=value, part=part)


async def apply_rules(platform: Platform, payload: RulesPayload, progress: Progress) -> str:
    """Let the present rules say what they say about every document, and its proposals count if they are
    accepted; returns the knowledge base's path.
    """
    kb_id, after, here = payload.knowledge_base_id, payload.after, 0
    total = await platform.database.read(_count, kb_id)
    progress.report(progress.done, total=total, unit="documents", message="Applying the rules")
    while True:
        last, count = await platform.database.write(_apply_some, kb_id, after)
        here += count
        progress.report(min(progress.done + count, total))
        if last is None:
            return f"/v1/rag/knowledge-bases/{kb_id}"
        after = last
        if here >= _OF_ONE_TURN:
            raise JobMoved("standard", RulesPayload(knowledge_base_id=kb_id, after=after))


def _count(session: Session, kb_id: str) -> int:
    mine = Document.knowledge_base_id == kb_id
    return session.scalar(select(func.count()).select_from(Document).where(mine)) or 0


def _apply_some(unit: Unit, kb_id: str, after: str) -> tuple[str | None, int]:
    """Apply the rules to the next documents. Returns the last one's id, None at the end, and their number."""
    if not hold_base(unit, kb_id):
        return None, 0
    mine = (Document.knowledge_base_id == kb_id) & (Document.id > after)
    query = select(Document).where(mine).order_by(Document.id).limit(_AT_ONCE).with_for_update()
    documents: Sequence[Any] = unit.session.scalars(query).all()
    rules = read_rules(unit.session, kb_id)
    layers = read_layers(unit.session, [one.id for one in documents])
    accepted = accepts_dates(unit.session, kb_id)
    for document in documents:
        layers[document.id].replace("rule", {} if rules is None else rules.values(document))
        settle_proposals(layers[document.id], accepted=accepted)
    write_layers(unit, kb_id, layers)
    return (documents[-1].id if len(documents) == _AT_ONCE else None), len(documents)


APPLY_RULES = LongJob(
    "rag.apply_rules",
    RulesPayload,
    apply_rules,
    title="Apply rules for fields",
    visible=seen_bases,
    lane="quick",
)
