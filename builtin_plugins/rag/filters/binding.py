"""Filters bound to knowledge bases: checked against their fields, and ready for any statement."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias, cast

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import ColumnElement, Select, and_, false, or_, select, true
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import True_

from builtin_plugins.rag.filters.compiling import SYNONYMS, FilterCompiler, FilterMisfit, Loc
from builtin_plugins.rag.filters.grammar import MetadataFilter, SentFilter, filter_as_sent
from builtin_plugins.rag.filters.moments import is_relative
from builtin_plugins.rag.metadata.changes import version_of, version_with_members
from builtin_plugins.rag.metadata.fields import BUILT_IN, FieldDefinition
from builtin_plugins.rag.metadata.kinds import FieldKind, nfc
from builtin_plugins.rag.models import Document, MetadataField
from builtin_plugins.rag.rights.reading import (
    guarded_among,
    readable,
    reader_key,
    reading_scope,
)
from builtin_plugins.rag.services.early_search import bases_with_early_words
from builtin_plugins.vectors.api import GroupQuery
from kernel.sdk import Caller, Scope, Unprocessable, utc_now
from kernel.sdk.storage import first_unfit

IN_BODY: Loc = ("body", "metadata_filter")
IN_PIPELINE: Loc = ("pipeline", "retrieval_config", "metadata_filter")
_SENT: TypeAdapter[MetadataFilter | None] = TypeAdapter(SentFilter | None)


@dataclass(frozen=True)
class BoundFilter:
    """A condition on the documents of each knowledge base; `key` says which, as text.

    It includes what the `reader` may read, who is also a part of the key in the `guarded` ones: those with
    documents that have readers of their own. The others are searched as if there were no such thing.
    """

    conditions: Mapping[str, ColumnElement[bool]]
    stored_ids: Mapping[str, Select[Any] | None]
    """Shorter ways to the documents that a search looks among, where there are any."""
    key: str
    reader: Scope
    guarded: Collection[str]
    early: Collection[str] = ()
    """The knowledge bases with documents that are found by their words while they are read."""
    is_filter: bool = True
    """Whether there is any condition besides the right to read."""

    @property
    def is_limited(self) -> bool:
        """Whether not every document of the knowledge bases is meant."""
        return self.is_filter or bool(self.guarded)

    def documents(self, base_id: str) -> Select[Any]:
        """A query for the ids of the documents of one knowledge base that match."""
        mine = and_(Document.knowledge_base_id == base_id, self.conditions[base_id])
        return select(Document.id).where(mine, readable(self.reader))

    def readable_in(self, base_id: str) -> Select[Any]:
        """The same for all that the reader may read, whether it matches or not."""
        return select(Document.id).where(Document.knowledge_base_id == base_id, readable(self.reader))

    def groups(self, base_id: str) -> GroupQuery | None:
        """The same for a search; None if it may find everything."""
        if base_id in self.guarded:
            key = json.dumps([self.key if self.is_filter else None, reader_key(self.reader)])
            return GroupQuery(self.documents(base_id), key, version_with_members(base_id), isolated=True)
        if not self.is_filter or isinstance(self.conditions[base_id], True_):
            return None
        names = self.stored_ids[base_id]
        return GroupQuery(self.documents(base_id) if names is None else names, self.key, version_of(base_id))

    def narrowed(self, other: BoundFilter) -> BoundFilter:
        """Both, for the same knowledge bases and reader."""
        guarded = {*self.guarded, *other.guarded}
        if not self.is_filter:
            return replace(other, guarded=guarded)
        conditions = {one: and_(test, other.conditions[one]) for one, test in self.conditions.items()}
        key = f"{self.key} {other.key}"
        return replace(
            self, conditions=conditions, stored_ids=dict.fromkeys(conditions), key=key, guarded=guarded
        )

    def condition(self) -> ColumnElement[bool]:
        """The condition on a document of any of the knowledge bases."""
        among = (and_(Document.knowledge_base_id == one, test) for one, test in self.conditions.items())
        return and_(readable(self.reader), or_(false(), *among))

    def document_ids(self, session: Session) -> list[str]:
        """The ids of all documents that match."""
        return [one for base_id in self.conditions for one in session.scalars(self.documents(base_id))]


@dataclass(frozen=True)
class FilterSource:
    """A filter and where it was sent. One that was stored may name fields that are gone: its `fields_gone`
    have no values.
    """

    filter: MetadataFilter | None
    loc: Loc = IN_BODY
    fields_gone: bool = False
    base_ids: frozenset[str] | None = None
    """The knowledge bases that it is for; None for all."""
    exempt: frozenset[str] = frozenset()
    """The ids of documents that it doesn't apply to."""

    def is_for(self, base_id: str) -> bool:
        """Whether it filters the documents of a knowledge base."""
        return self.filter is not None and (self.base_ids is None or base_id in self.base_ids)


_Compilers: TypeAlias = Sequence[tuple[FilterSource, FilterCompiler]]


def parse_filter(data: Any, loc: Loc) -> MetadataFilter | None:
    """A filter from plain data. Raises Unprocessable, with the place in the filter."""
    if unfit := first_unfit(data):
        raise Unprocessable.field((*loc, *unfit[0]), unfit[1])
    try:
        return _SENT.validate_python(data)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        raise Unprocessable(
            [{**one, "loc": [*loc, *one["loc"]], "input": None} for one in problems]
        ) from None


def json_filter(written: str, loc: Loc) -> MetadataFilter | None:
    """A filter as JSON text. Raises Unprocessable."""
    try:
        data = json.loads(written)
    except (ValueError, RecursionError):
        raise Unprocessable.field(loc, 'must be JSON, such as {"tags": "invoice"}', written[:40]) from None
    return parse_filter(data, loc)


async def bound(caller: Caller, base_ids: Sequence[str], *sources: FilterSource) -> BoundFilter:
    """The documents of these knowledge bases that the caller may read and that match all filters.

    Raises Unprocessable.
    """
    reader = await reading_scope(caller)
    return await caller.platform.database.read(bind, reader, base_ids, sources)


def bind(
    session: Session,
    reader: Scope,
    base_ids: Sequence[str],
    sources: Sequence[FilterSource],
    now: datetime | None = None,
) -> BoundFilter:
    """The same within a unit or a read. Now is the present minute."""
    guarded = guarded_among(session, base_ids)
    early = bases_with_early_words(session, base_ids, reader)
    if all(one.filter is None for one in sources):
        nothing = {one: true() for one in base_ids}
        return BoundFilter(nothing, dict.fromkeys(base_ids), "", reader, guarded, early, is_filter=False)
    fields = fields_by_base(session, base_ids)
    every = {name: field for one in fields.values() for name, field in one.items()}
    moment = (now or utc_now()).replace(second=0, microsecond=0)
    compilers = {
        one: [
            (source, FilterCompiler(one, fields[one], None if source.fields_gone else every, moment))
            for source in sources
            if source.is_for(one)
        ]
        for one in base_ids
    }
    conditions = {one: _condition(of_base) for one, of_base in compilers.items()}
    stored = {one: _stored_ids(of_base) for one, of_base in compilers.items()}
    return BoundFilter(conditions, stored, _key_of(fields, sources, moment), reader, guarded, early)


def _key_of(
    fields: Mapping[str, Mapping[str, FieldDefinition]], sources: Sequence[FilterSource], now: datetime
) -> str:
    """What the conditions depend on, as text; the time only if a value may be relative to it."""
    filters = [
        (
            *(filter_as_sent(one.filter), one.fields_gone, sorted(one.exempt)),
            None if one.base_ids is None else sorted(one.base_ids),
        )
        for one in sources
        if one.filter is not None
    ]
    kinds = [[(f.name, f.kind) for f in one.values() if not f.built_in] for one in fields.values()]
    text = json.dumps([filters, kinds], ensure_ascii=False, sort_keys=True)
    return text + now.isoformat() if is_relative(text) else text


def fields_by_base(session: Session, base_ids: Sequence[str]) -> dict[str, dict[str, FieldDefinition]]:
    """The fields of each knowledge base by name."""
    fields = {one: dict(BUILT_IN) for one in base_ids}
    mine = select(MetadataField).where(MetadataField.knowledge_base_id.in_(base_ids))
    for row in session.scalars(mine):
        field = FieldDefinition(row.name, cast(FieldKind, row.kind), row.many, row.description)
        fields[row.knowledge_base_id][row.name] = field
    return fields


def field_named(by_base: Mapping[str, Mapping[str, FieldDefinition]], name: str, loc: Loc) -> FieldDefinition:
    """A field that some of the knowledge bases have; it must be of one kind. Raises Unprocessable."""
    own = SYNONYMS.get(nfc(name), nfc(name))
    definitions = [fields[own] for fields in by_base.values() if own in fields]
    if not definitions:
        names = ", ".join(sorted({one for fields in by_base.values() for one in fields}))
        raise Unprocessable.field(loc, f"there is no field '{name}'; the fields are {names}", name)
    if len({one.kind for one in definitions}) > 1:
        raise Unprocessable.field(loc, f"'{name}' is of different kinds in the knowledge bases", name)
    return definitions[0]


def _condition(compilers: _Compilers) -> ColumnElement[bool]:
    conditions = []
    for source, compiler in compilers:
        try:
            if source.filter is not None:
                matches = compiler.condition(source.filter.root)
                conditions.append(or_(matches, Document.id.in_(source.exempt)) if source.exempt else matches)
        except FilterMisfit as error:
            raise Unprocessable.field((*source.loc, *error.loc), error.message, error.value) from None
    return and_(true(), *conditions)


def _stored_ids(compilers: _Compilers) -> Select[Any] | None:
    if len(compilers) != 1:
        return None
    ((source, compiler),) = compilers
    return None if source.filter is None or source.exempt else compiler.stored_ids(source.filter.root)
