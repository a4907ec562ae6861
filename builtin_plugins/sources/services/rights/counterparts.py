"""What routes show and change of people and groups at a source."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import ColumnElement, delete, exists, func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api as rag
from builtin_plugins.sources.access import source_sight_of
from builtin_plugins.sources.kinds import SOURCE_KINDS
from builtin_plugins.sources.models import CounterpartRecord, PrincipalRecord, SourceRecord
from builtin_plugins.sources.schemas_rights import (
    CounterpartIn,
    CounterpartOut,
    CounterpartsIn,
    CounterpartsOut,
    PrincipalOut,
    PrincipalQuery,
    SourceRightsOut,
)
from builtin_plugins.sources.services.rights.granting import follow_accounts
from builtin_plugins.sources.services.rights.readers import holder_of
from builtin_plugins.sources.services.texts import digest_of
from kernel.sdk import Account, Caller, Page, Platform, Scope, Unit, Unprocessable, audit, scope_of

_ON_NOBODY: Final = "nobody"


async def show_rights(caller: Caller, source_id: str) -> SourceRightsOut:
    """Raises SourceNotFound, NotSourceOwner."""
    sight = await source_sight_of(caller)
    return await caller.platform.database.read(
        lambda session: _rights(caller.platform, session, sight.source(session, source_id))
    )


def _rights(platform: Platform, session: Session, source: SourceRecord) -> SourceRightsOut:
    unreadable = platform.hooks.ask_now(
        rag.count_unreadable_documents,
        platform=platform,
        session=session,
        knowledge_base_id=source.knowledge_base_id,
        holder=holder_of(source.id),
    )
    counts = {kind: _counted(session, source, kind) for kind in ("person", "group")}
    return SourceRightsOut(
        is_guarded=source.is_guarded,
        read_at=source.rights_at,
        problem=source.rights_problem,
        is_closed=source.is_closed,
        people=counts["person"][0],
        people_unmapped=counts["person"][1],
        groups=counts["group"][0],
        groups_unmapped=counts["group"][1],
        unreadable=unreadable or 0,
        by_hand=_takes_counterparts(platform, source),
    )


def _counted(session: Session, source: SourceRecord, kind: str) -> tuple[int, int]:
    mine = (PrincipalRecord.source_id == source.id) & (PrincipalRecord.kind == kind)
    query = select(func.count()).select_from(PrincipalRecord).where(mine)
    return session.scalar(query) or 0, session.scalar(query.where(_unmapped())) or 0


def _unmapped() -> ColumnElement[bool]:
    """The condition for people and groups without a counterpart: to be nobody is one, too."""
    same = (CounterpartRecord.source_id == PrincipalRecord.source_id) & (
        CounterpartRecord.kind == PrincipalRecord.kind
    )
    same &= (CounterpartRecord.digest == PrincipalRecord.digest) & (CounterpartRecord.target == _ON_NOBODY)
    return (PrincipalRecord.accounts == 0) & ~exists().where(same)


async def list_principals(caller: Caller, source_id: str, query: PrincipalQuery) -> Page[PrincipalOut]:
    """The people and groups at a source, by name. Raises SourceNotFound, NotSourceOwner."""
    sight = await source_sight_of(caller)
    scope = await scope_of(caller.platform, caller.principal)

    def read(session: Session) -> Page[PrincipalOut]:
        mine = PrincipalRecord.source_id == sight.source(session, source_id).id
        if query.kind is not None:
            mine &= PrincipalRecord.kind == query.kind
        if query.mapped is not None:
            mine &= ~_unmapped() if query.mapped else _unmapped()
        ordered = select(PrincipalRecord).where(mine).order_by(PrincipalRecord.name, PrincipalRecord.id)
        rows = session.scalars(ordered.limit(query.limit).offset(query.offset)).all()
        total = session.scalar(select(func.count()).select_from(PrincipalRecord).where(mine)) or 0
        targets = _targets(session, source_id, rows)
        items = [
            PrincipalOut(
                kind=row.kind,
                principal=row.principal,
                name=row.name,
                accounts=row.accounts if scope.everything or not row.has_sign_in_group else None,
                targets=targets.get((row.kind, row.digest), []),
            )
            for row in rows
        ]
        return Page(items=items, total=total, limit=query.limit, offset=query.offset)

    return await caller.platform.database.read(read)


def _targets(
    session: Session, source_id: str, rows: Sequence[PrincipalRecord]
) -> Mapping[tuple[str, str], list[str]]:
    digests = CounterpartRecord.digest.in_([row.digest for row in rows])
    mine = select(CounterpartRecord).where(CounterpartRecord.source_id == source_id, digests)
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in session.scalars(mine.order_by(CounterpartRecord.target)):
        found[one.kind, one.digest].append(one.target)
    return found


async def list_counterparts(caller: Caller, source_id: str) -> CounterpartsOut:
    """What the owner says. Raises SourceNotFound, NotSourceOwner."""
    sight = await source_sight_of(caller)
    return await caller.platform.database.read(
        lambda session: _counterparts_out(session, sight.source(session, source_id))
    )


def _counterparts_out(session: Session, source: SourceRecord) -> CounterpartsOut:
    mine = select(CounterpartRecord).where(CounterpartRecord.source_id == source.id)
    columns = [getattr(CounterpartRecord, name) for name in CounterpartOut.model_fields]
    rows = session.execute(mine.with_only_columns(*columns).order_by(*columns)).all()
    return CounterpartsOut(items=[CounterpartOut.model_validate(row._asdict()) for row in rows])


async def replace_counterparts(caller: Caller, source_id: str, wanted: CounterpartsIn) -> CounterpartsOut:
    """Say who people and groups at a source are here; it counts at once.

    Raises SourceNotFound, NotSourceOwner, SourceLeaving, Unprocessable.
    """
    platform, sight = caller.platform, await source_sight_of(caller)
    scope = await scope_of(platform, caller.principal)

    def write(unit: Unit) -> CounterpartsOut:
        source = sight.source(unit.session, source_id, to_change=True)
        _check_kind(platform, source, wanted)
        before = _counterparts_out(unit.session, source)
        for place, one in enumerate(wanted.items):
            _check(unit.session, scope, place, one)
        unit.session.execute(delete(CounterpartRecord).where(CounterpartRecord.source_id == source.id))
        for one in wanted.items:
            columns = {"id": str(uuid.uuid4()), "source_id": source.id, "digest": digest_of(one.principal)}
            unit.session.add(CounterpartRecord(**columns, **one.model_dump()))
        unit.session.flush()
        if source.is_guarded:
            follow_accounts(unit, platform, source)
        after = _counterparts_out(unit.session, source)
        change = {"before": before.model_dump(), "after": after.model_dump()}
        audit(unit, "source.counterparts", "source", source.id, after=change, origin=caller.origin)
        return after

    return await platform.database.write(write)


def _takes_counterparts(platform: Platform, source: SourceRecord) -> bool:
    """Whether somebody may say by hand who people and groups at a source are here."""
    kind = platform.resource(SOURCE_KINDS).all.get(source.kind)
    return kind is not None and not kind.personal


def _check_kind(platform: Platform, source: SourceRecord, wanted: CounterpartsIn) -> None:
    """Nobody gives what is one account's to another. Raises Unprocessable."""
    if wanted.items and not _takes_counterparts(platform, source):
        reason = "what is in this source belongs to its account; nobody can say who that is here"
        raise Unprocessable.field(("body", "items"), reason, None)


def _check(session: Session, scope: Scope, place: int, one: CounterpartIn) -> None:
    """Only accounts that are there, and teams of the caller. Raises Unprocessable.

    A group of the sign-in may be any: the caller learns of nobody that they are in it.
    """
    if (one.target == "sign_in_group") != (one.target_name is not None):
        is_missing = one.target_name is None
        problem = "must be the name of the group of the sign-in" if is_missing else "must be left out"
        raise Unprocessable.field(("body", "items", place, "target_name"), problem, one.target_name)
    reason = None
    if one.target in ("sign_in_group", "everyone", "nobody"):
        reason = "must be left out" if one.target_id is not None else None
    elif one.target_id is None:
        reason = f"must be the id of the {one.target}"
    elif one.target == "team" and not scope.everything and one.target_id not in scope.teams:
        reason = "must be the id of a team of yours"
    elif one.target == "account":
        known = select(Account.id).where(Account.id == one.target_id, Account.deleted_at.is_(None))
        reason = "there is no such account" if session.scalar(known) is None else None
    if reason is not None:
        raise Unprocessable.field(("body", "items", place, "target_id"), reason, one.target_id)
