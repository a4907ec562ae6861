"""Sources: add, list, show, change, test, remove."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.sources.access import source_sight_of
from builtin_plugins.sources.errors import PushNotFound, SourceLeaving, TooManySources
from builtin_plugins.sources.filters import SourceFilters
from builtin_plugins.sources.kinds import SOURCE_KINDS
from builtin_plugins.sources.models import ItemRecord, RunRecord, SourceRecord
from builtin_plugins.sources.protocol import (
    SourceKind,
)
from builtin_plugins.sources.schedules import next_run
from builtin_plugins.sources.schemas import (
    SourceCreate,
    SourceOut,
    SourceRunOut,
    SourceUpdate,
)
from builtin_plugins.sources.services.credentials import (
    forget_credential,
    has_credential,
    keep_credential,
)
from builtin_plugins.sources.services.removal import REMOVE_SOURCE, SourceRemovalPayload
from builtin_plugins.sources.services.rights.granting import (
    close_source,
    drop_holder,
    follow_accounts,
    grant_all,
)
from builtin_plugins.sources.services.rights.refreshing import USUAL_SECONDS, begin_refresh
from builtin_plugins.sources.services.running import forget_cursors, start_run
from builtin_plugins.sources.services.watching import is_watched
from builtin_plugins.sources.settings import SourcesSettings
from kernel.sdk import Caller, Platform, Unit, Unprocessable, audit, utc_now


async def create(caller: Caller, wanted: SourceCreate, base: str) -> SourceOut:
    """Add a source and begin its first run. Raises SourcedBaseNotFound, NotSourceOwner, TooManySources."""
    platform, sight = caller.platform, await source_sight_of(caller)
    kind = platform.resource(SOURCE_KINDS).named(wanted.kind)
    settings = checked_settings(kind, wanted.settings)
    _check_secret(kind, wanted.secret)
    _check_groups(kind, wanted.sign_in_groups)
    most = platform.settings_of(SourcesSettings).sources_per_base

    def write(unit: Unit) -> SourceOut:
        sight.require_owner(unit.session, base)
        unit.lock(f"sources:{base}")
        mine = select(func.count()).where(SourceRecord.knowledge_base_id == base)
        if (unit.session.scalar(mine) or 0) >= most:
            raise TooManySources(f"A knowledge base has at most {most} sources; remove one first")
        made = SourceRecord(
            id=str(uuid.uuid4()),
            knowledge_base_id=base,
            kind=kind.name,
            name=wanted.name,
            settings=settings,
            filters=wanted.filters.model_dump(),
            schedule=wanted.schedule,
            next_at=next_run(platform, wanted.schedule, unit.now()),
            account_id=caller.id,
            created_at=utc_now(),
            is_guarded=kind.is_guarded(kind.settings.model_validate(settings)),
            rights_seconds=wanted.rights_seconds,
            sign_in_groups=wanted.sign_in_groups,
            rights_due_at=unit.now(),
        )
        unit.session.add(made)
        unit.session.flush()
        if wanted.secret is not None:
            keep_credential(platform, unit, made, wanted.secret, caller.origin)
        start_run(unit, made, "hand", by=caller.id)
        _note(unit, caller, "source.added", made)
        return _out(platform, unit.session, made)

    return await platform.database.write(write)


async def list_all(caller: Caller, base: str) -> list[SourceOut]:
    """The sources of a knowledge base, oldest first. Raises SourcedBaseNotFound, NotSourceOwner."""
    sight = await source_sight_of(caller)

    def read(session: Session) -> list[SourceOut]:
        sight.require_owner(session, base)
        mine = select(SourceRecord).where(SourceRecord.knowledge_base_id == base)
        rows = session.scalars(mine.order_by(SourceRecord.created_at, SourceRecord.id)).all()
        return [_out(caller.platform, session, row) for row in rows]

    return await caller.platform.database.read(read)


async def get(caller: Caller, source_id: str) -> SourceOut:
    """One source. Raises SourceNotFound, NotSourceOwner."""
    sight = await source_sight_of(caller)
    return await caller.platform.database.read(
        lambda session: _out(caller.platform, session, sight.source(session, source_id))
    )


async def change(caller: Caller, source_id: str, wanted: SourceUpdate) -> SourceOut:
    """Change it; new settings and filters apply from a whole listing on.

    New settings for the credential of another account need another credential; if the source has permissions
    of its own, only that account changes either.
    Raises SourceNotFound, NotSourceOwner, SourceLeaving.
    """
    platform, sight = caller.platform, await source_sight_of(caller)
    sent = wanted.model_fields_set

    def write(unit: Unit) -> SourceOut:
        row = sight.source(unit.session, source_id, to_change=True)
        kind = platform.resource(SOURCE_KINDS).of(row.kind)
        if wanted.name is not None:
            row.name = wanted.name
        if wanted.settings is not None:
            settings = checked_settings(kind, wanted.settings)
            if settings != row.settings and (wanted.secret is None or row.is_guarded):
                check_own_secret(caller, unit.session, row)
            is_guarded = kind.is_guarded(kind.settings.model_validate(settings))
            if settings != row.settings or is_guarded != row.is_guarded:
                row.settings = settings
                _guard(platform, unit, row, is_guarded=is_guarded)
        if wanted.filters is not None:
            row.filters = wanted.filters.model_dump()
        if wanted.settings is not None or wanted.filters is not None:
            row.cursor = None
            forget_cursors(unit, row)
        if "rights_seconds" in sent:
            row.rights_seconds = wanted.rights_seconds
        if "sign_in_groups" in sent and wanted.sign_in_groups != row.sign_in_groups:
            _check_groups(kind, wanted.sign_in_groups)
            row.sign_in_groups = wanted.sign_in_groups
            if row.is_guarded:
                follow_accounts(unit, platform, row)
        if "schedule" in sent:
            row.schedule = wanted.schedule
            row.next_at = next_run(platform, wanted.schedule, unit.now())
        if wanted.secret is not None:
            _check_secret(kind, wanted.secret)
            if row.is_guarded:
                check_own_secret(caller, unit.session, row)
            forget_credential(platform, unit, row, caller.origin)
            row.account_id = caller.id
            keep_credential(platform, unit, row, wanted.secret, caller.origin)
        _note(unit, caller, "source.changed", row)
        return _out(platform, unit.session, row)

    return await platform.database.write(write)


async def remove(caller: Caller, source_id: str, documents: str) -> None:
    """Remove it, in the background. Raises SourceNotFound, NotSourceOwner, SourceLeaving."""
    sight = await source_sight_of(caller)

    def write(unit: Unit) -> None:
        row = sight.source(unit.session, source_id, to_change=True)
        if row.is_guarded and documents == "keep":
            reason = "documents with the readers of a source go with it; 'delete' is possible, 'keep' is not"
            raise Unprocessable.field(("query", "documents"), reason, documents)
        row.leaving, row.next_at, row.push_digest = documents, None, None
        forget_credential(caller.platform, unit, row, caller.origin)
        payload = SourceRemovalPayload(source_id=row.id)
        unit.enqueue(REMOVE_SOURCE, payload, owner_id=caller.id, subject=row.knowledge_base_id)
        _note(unit, caller, "source.removed", row)

    await caller.platform.database.write(write)


async def make_push_address(caller: Caller, source_id: str) -> str:
    """A new address that triggers a run, in place of an earlier one.

    Raises SourceNotFound, NotSourceOwner, SourceLeaving.
    """
    sight, token = await source_sight_of(caller), secrets.token_urlsafe(32)

    def write(unit: Unit) -> None:
        row = sight.source(unit.session, source_id, to_change=True)
        row.push_digest = _digest(token)
        _note(unit, caller, "source.push_address", row)

    await caller.platform.database.write(write)
    return f"/v1/rag/source-pushes/{token}"


async def push(platform: Platform, token: str) -> None:
    """Begin a run, or have one follow that which is under way. Raises PushNotFound, SourceLeaving."""

    def write(unit: Unit) -> None:
        mine = SourceRecord.push_digest == _digest(token)
        row = unit.session.scalar(select(SourceRecord).where(mine).with_for_update())
        if row is None:
            raise PushNotFound()
        if row.leaving is not None:
            raise SourceLeaving()
        row.pushed_at = utc_now()
        start_run(unit, row, "push")
        if row.is_guarded:
            begin_refresh(unit, row)

    await platform.database.write(write)


def _guard(platform: Platform, unit: Unit, row: SourceRecord, *, is_guarded: bool) -> None:
    """New settings: who may read its documents is not known before the next reading."""
    before, row.is_guarded = row.is_guarded, is_guarded
    unit.session.flush()
    if is_guarded:
        grant_all(unit, platform, row)  # those of a source that was open
        close_source(unit, platform, row)
        begin_refresh(unit, row)
    elif before:
        grant_all(unit, platform, row)
        drop_holder(unit, platform, row)
        row.is_closed, row.rights_at, row.rights_mark, row.rights_problem = False, None, None, None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def checked_settings(kind: SourceKind, sent: dict[str, Any]) -> dict[str, Any]:
    """The settings as they are stored. Raises Unprocessable, which names the fields."""
    try:
        settings: BaseModel = kind.settings.model_validate(sent)
    except ValidationError as error:
        raise Unprocessable(
            [
                {"type": item["type"], "loc": ["body", "settings", *item["loc"]], "msg": item["msg"]}
                for item in error.errors(include_url=False, include_context=False)
            ]
        ) from None
    return settings.model_dump(mode="json")


def _check_secret(kind: SourceKind, secret: SecretStr | None) -> None:
    if secret is not None and kind.secret is None:
        raise Unprocessable.field(("body", "secret"), "this kind of source takes no credential", None)


def _check_groups(kind: SourceKind, sign_in_groups: str | None) -> None:
    if sign_in_groups is not None and kind.personal:
        reason = "what is in this source belongs to its account; groups of the sign-in have no part in it"
        raise Unprocessable.field(("body", "sign_in_groups"), reason, sign_in_groups)


def check_own_secret(caller: Caller, session: Session, row: SourceRecord) -> None:
    """Nobody leads the credential of another account to another place. Raises Unprocessable.

    Nor its documents, if the place says who may read them.
    """
    if row.account_id == caller.id:
        return
    if row.is_guarded:  # also without a credential, and if the account is gone
        reason = "the permissions are those that another account brought; add a source of yours"
        raise Unprocessable.field(("body", "secret"), reason, None)
    if has_credential(caller.platform, session, row):
        reason = "the credential is another account's; enter one of yours for the new settings"
        raise Unprocessable.field(("body", "secret"), reason, None)


def _note(unit: Unit, caller: Caller, action: str, row: SourceRecord) -> None:
    after = {
        "name": row.name,
        "kind": row.kind,
        "knowledge_base_id": row.knowledge_base_id,
        "is_guarded": row.is_guarded,
        "sign_in_groups": row.sign_in_groups,
    }
    audit(unit, action, "source", row.id, after=after, origin=caller.origin)


def _out(platform: Platform, session: Session, row: SourceRecord) -> SourceOut:
    session.flush()
    counted = select(ItemRecord.state, func.count()).where(ItemRecord.source_id == row.id)
    items = dict(session.execute(counted.group_by(ItemRecord.state)).all())
    latest = select(RunRecord).where(RunRecord.source_id == row.id, ~RunRecord.is_dry)
    last = session.scalar(latest.order_by(RunRecord.started_at.desc(), RunRecord.id).limit(1))
    asking = (RunRecord.source_id == row.id) & (RunRecord.state == "needs_confirmation")
    return SourceOut(
        id=row.id,
        knowledge_base_id=row.knowledge_base_id,
        kind=row.kind,
        name=row.name,
        settings=row.settings,
        filters=SourceFilters.model_validate(row.filters),
        schedule=row.schedule,
        has_secret=has_credential(platform, session, row),
        has_push=row.push_digest is not None,
        problem=row.problem,
        is_leaving=row.leaving is not None,
        next_at=row.next_at,
        created_at=row.created_at,
        last_run=None if last is None else run_out(last),
        missing=session.scalar(select(RunRecord.gone).where(asking)),
        items=items,
        is_guarded=row.is_guarded,
        rights_seconds=(row.rights_seconds or USUAL_SECONDS) if row.is_guarded else None,
        sign_in_groups=row.sign_in_groups,
        is_watched=is_watched(row),
        watch_problem=row.watch_problem,
    )


def run_out(run: RunRecord) -> SourceRunOut:
    """A run as clients see it."""
    return SourceRunOut.model_validate(
        {name: getattr(run, name) for name in SourceRunOut.model_fields}, from_attributes=True
    )


def runs_out(runs: Sequence[RunRecord]) -> list[SourceRunOut]:
    """The same for several."""
    return [run_out(one) for one in runs]
