"""How much an account and an organization use and may use, so that there is room for others.

A knowledge base counts for the account that owns it, and for the organization that it is shared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, false, func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.errors import QueueLimit, StorageLimit
from builtin_plugins.rag.models import Document, KnowledgeBase, TrashedBase
from builtin_plugins.rag.schemas_system import Allowance, OrganizationUsage, UsageOut
from builtin_plugins.rag.services.identities import replaced_by
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Caller, Unit, scope_of
from kernel.sdk.http import OPEN_STREAMS

_MEGABYTE: Final = 1024 * 1024
_RETRY_AFTER: Final = 60


@dataclass(frozen=True)
class _Holder:
    """Whose knowledge bases are counted together, and how much they may hold; 0 is no limit."""

    whose: str
    lock: str
    bases: ColumnElement[bool]
    storage_mb: int
    passages: int
    queued_mb: int = 0
    trashed: ColumnElement[bool] = field(default_factory=false, kw_only=True)

    def sum(self, session: Session, column: Any, *where: ColumnElement[bool]) -> int:
        """The sum of a column of their documents."""
        query = (
            select(func.coalesce(func.sum(column), 0))
            .join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
            .where(self.bases, *where)
        )
        return int(session.scalar(query) or 0)

    def stored(self, session: Session) -> int:
        """The bytes of their files, also of those in the trash."""
        trashed = select(func.coalesce(func.sum(TrashedBase.size_bytes), 0)).where(self.trashed)
        return self.sum(session, Document.size_bytes) + int(session.scalar(trashed) or 0)

    def queued(self, session: Session) -> int:
        """The bytes of their files that wait to be read."""
        return self.sum(session, Document.size_bytes, Document.status == "processing")


def _account(settings: RagSettings, owner_id: int) -> _Holder:
    limits = (settings.account_storage_mb, settings.account_passages, settings.account_queued_mb)
    holder = _holder("account", owner_id, KnowledgeBase.owner_id == owner_id, *limits)
    return replace(holder, trashed=TrashedBase.owner_id == owner_id)


def _organization(settings: RagSettings, organization_id: int) -> _Holder:
    limits = (settings.organization_storage_mb, settings.organization_passages)
    return _holder("organization", organization_id, KnowledgeBase.organization_id == organization_id, *limits)


def _holder(kind: str, key: int, bases: ColumnElement[bool], *limits: int) -> _Holder:
    return _Holder(f"The documents of this {kind}", f"rag.usage.{kind}.{key}", bases, *limits)


def _holders(settings: RagSettings, base: KnowledgeBase) -> Iterator[_Holder]:
    if base.owner_id is not None:
        yield _account(settings, base.owner_id)
    if base.organization_id is not None:
        yield _organization(settings, base.organization_id)


async def show(caller: Caller) -> UsageOut:
    """What the caller's account and its organizations use and may use."""
    settings = caller.platform.settings_of(RagSettings)
    scope = await scope_of(caller.platform, caller.principal)
    streams, most = caller.platform.resource(OPEN_STREAMS).usage(caller.principal)

    mine = _account(settings, caller.id or 0)  # a service has none

    def read(session: Session) -> UsageOut:
        return UsageOut(
            storage_bytes=_allowance(mine.stored(session), mine.storage_mb * _MEGABYTE),
            passages=_allowance(mine.sum(session, Document.chunk_count), mine.passages),
            queued_bytes=_allowance(mine.queued(session), mine.queued_mb * _MEGABYTE),
            streams=_allowance(streams, most),
            organizations=[_of_organization(session, settings, key) for key in sorted(scope.organizations)],
        )

    return await caller.platform.database.read(read)


def _of_organization(session: Session, settings: RagSettings, organization_id: int) -> OrganizationUsage:
    holder = _organization(settings, organization_id)
    return OrganizationUsage(
        organization_id=organization_id,
        storage_bytes=_allowance(holder.stored(session), holder.storage_mb * _MEGABYTE),
        passages=_allowance(holder.sum(session, Document.chunk_count), holder.passages),
    )


def _allowance(used: int, limit: int) -> Allowance:
    return Allowance(used=used, limit=limit or None)


def admit(unit: Unit, settings: RagSettings, base: KnowledgeBase, size: int, *, queued: bool = True) -> None:
    """Check that this many bytes more may be stored in a knowledge base, and queued.

    Uploads of the same account then wait for each other until the unit ends. Raises StorageLimit, QueueLimit.
    """
    for holder in _holders(settings, base):
        unit.lock(holder.lock)
        stored = holder.stored(unit.session)
        if holder.storage_mb and stored + size > holder.storage_mb * _MEGABYTE:
            raise StorageLimit(
                f"{holder.whose} take up {_mb(stored)} of {holder.storage_mb} MB, and this file has "
                f"{_mb(size)} MB. Delete some documents, or ask the operator for more room."
            )
        if not (queued and holder.queued_mb):
            continue
        waiting = holder.queued(unit.session)
        if waiting and waiting + size > holder.queued_mb * _MEGABYTE:
            raise QueueLimit(
                f"{_mb(waiting)} of {holder.queued_mb} MB of files of this account are waiting to be read; "
                "send more when some have been read",
                headers={"Retry-After": str(_RETRY_AFTER)},
            )


def refusal_of_passages(
    session: Session, settings: RagSettings, base: KnowledgeBase, document: Document, count: int
) -> str | None:
    """Why a document with so many passages can't be indexed; None if it can."""
    for holder in _holders(settings, base):
        if not holder.passages:
            continue
        replaced = replaced_by(session, document)
        own = [document.id, *([] if replaced is None else [replaced.id])]
        used = holder.sum(session, Document.chunk_count, Document.id.not_in(own))
        if used + count > holder.passages:
            return (
                f"{holder.whose} have {used} of {holder.passages} passages, and this one has {count}. Delete "
                "some documents, or ask the operator for more room, then try again."
            )
    return None


def _mb(size: int) -> str:
    return f"{size / _MEGABYTE:.1f}"
