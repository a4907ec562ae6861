"""Knowledge bases in the trash: deleted for everybody, and taken back within some days.

A knowledge base's row moves into another table. No document can be reached without it, so none is found,
counted or answered from; passages, files and vectors stay where they are.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import func, select, true
from sqlalchemy.orm import Session

from builtin_plugins.rag.errors import BusyBase, KnowledgeBaseNotFound, NoTrash
from builtin_plugins.rag.models import Document, KnowledgeBase, TrashedBase
from builtin_plugins.rag.schemas import KnowledgeBaseOut
from builtin_plugins.rag.schemas_receipts import Receipt
from builtin_plugins.rag.schemas_trash import BaseTrash, TrashedBaseOut
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.graphs import tell_of_graph
from builtin_plugins.rag.services.receipts import SIGNER, Signer, of_base
from builtin_plugins.rag.services.removal import delete_base
from builtin_plugins.rag.services.trash import ONE_DAY
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Caller, Job, NoPayload, PageQuery, Platform, Scope, Unit, audit, scope_of
from kernel.sdk.accounts import operator_of

_OWN_COLUMNS: Final = {column.key for column in TrashedBase.__table__.columns}
_SHARING: Final = {"visibility", "team_id", "organization_id"}


async def put(caller: Caller, kb_id: str) -> None:
    """Put a knowledge base into the trash. Its pipelines stay.

    Raises KnowledgeBaseNotFound, NotOwner, NoTrash, BusyBase.
    """
    if not caller.platform.settings_of(RagSettings).trash_days:
        raise NoTrash()
    scope = await scope_of(caller.platform, caller.principal)
    await caller.platform.database.write(_put, caller, scope, kb_id)


def _put(unit: Unit, caller: Caller, scope: Scope, kb_id: str) -> None:
    base = knowledge_bases.find_own(unit.session, scope, kb_id, lock=True)
    mine = Document.knowledge_base_id == kb_id
    count, size = unit.session.execute(
        select(func.count(), func.coalesce(func.sum(Document.size_bytes), 0)).where(mine)
    ).one()
    reading = unit.session.scalar(select(Document.id).where(mine, Document.status == "processing").limit(1))
    if base.importing or base.reembedding or reading is not None:
        raise BusyBase()
    columns = {column.key for column in KnowledgeBase.__table__.columns} - _OWN_COLUMNS - _SHARING
    unit.session.add(
        TrashedBase(
            id=base.id,
            owner_id=base.owner_id,
            name=base.name,
            document_count=count,
            size_bytes=size,
            trashed_at=unit.now(),
            created_at=base.created_at,
            fields={name: getattr(base, name) for name in sorted(columns)},
        )
    )
    unit.session.delete(base)
    unit.session.flush()
    _note(unit, caller, "rag.knowledge_base.trashed", kb_id, base.name)


async def list_page(caller: Caller, query: PageQuery) -> BaseTrash:
    """The knowledge bases in the trash that the caller may take back, the latest first."""
    scope = await scope_of(caller.platform, caller.principal)
    days = caller.platform.settings_of(RagSettings).trash_days

    def read(session: Session) -> BaseTrash:
        mine = _own(scope)
        total = session.scalar(select(func.count()).select_from(TrashedBase).where(mine)) or 0
        rows = select(TrashedBase).where(mine).order_by(TrashedBase.trashed_at.desc(), TrashedBase.id)
        items = [
            TrashedBaseOut(
                id=row.id,
                name=row.name,
                document_count=row.document_count,
                size_bytes=row.size_bytes,
                trashed_at=row.trashed_at,
                kept_until=row.trashed_at + days * ONE_DAY,
            )
            for row in session.scalars(rows.limit(query.limit).offset(query.offset))
        ]
        return BaseTrash(items=items, total=total, limit=query.limit, offset=query.offset, days=days)

    return await caller.platform.database.read(read)


async def take_back(caller: Caller, kb_id: str) -> KnowledgeBaseOut:
    """Take a knowledge base out of the trash; it is private again. Raises KnowledgeBaseNotFound."""
    scope = await scope_of(caller.platform, caller.principal)

    def write(unit: Unit) -> None:
        base = _put_back(unit, _find(unit.session, scope, kb_id))
        if base.graph:  # builds that were under way found no documents
            tell_of_graph(caller.platform, unit, base)
        _note(unit, caller, "rag.knowledge_base.restored", kb_id, base.name)

    await caller.platform.database.write(write)
    return await knowledge_bases.get(caller, kb_id)


async def remove(caller: Caller, kb_id: str) -> Receipt:
    """Delete a knowledge base in the trash for good; returns the receipt. Raises KnowledgeBaseNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    signer = caller.platform.resource(SIGNER)

    def write(unit: Unit) -> Receipt:
        return _erase(unit, caller, signer, _find(unit.session, scope, kb_id), scope)

    return await caller.platform.database.write(write)


def remove_of_account(unit: Unit, caller: Caller, account_id: int) -> bool:
    """Delete one knowledge base in the trash of an account that is gone; returns whether there was one."""
    mine = select(TrashedBase).where(TrashedBase.owner_id == account_id).order_by(TrashedBase.id)
    return _erase_first(unit, caller, mine)


async def empty(platform: Platform, _payload: NoPayload) -> None:
    """Once a day: delete what has been in the trash for longer than `trash_days`."""
    caller, days = operator_of(platform), platform.settings_of(RagSettings).trash_days

    def write(unit: Unit) -> bool:
        old = TrashedBase.trashed_at <= unit.now() - days * ONE_DAY
        return _erase_first(unit, caller, select(TrashedBase).where(old).order_by(TrashedBase.trashed_at))

    while await platform.database.write(write):
        pass


EMPTY_BASES = Job("rag.empty_trash_of_bases", NoPayload, empty, schedule="25 3 * * *")


def _erase_first(unit: Unit, caller: Caller, query: Any) -> bool:
    base: TrashedBase | None = unit.session.scalar(query.limit(1).with_for_update(skip_locked=True))
    if base is None:
        return False
    signer = caller.platform.resource(SIGNER)
    _erase(unit, caller, signer, base, Scope(None, everything=True))
    return True


def _erase(unit: Unit, caller: Caller, signer: Signer, trashed: TrashedBase, scope: Scope) -> Receipt:
    name, base = trashed.name, _put_back(unit, trashed)
    delete_base(unit, caller.platform, base)
    receipt = of_base(unit, caller, signer, base, scope)
    _note(unit, caller, "rag.knowledge_base.deleted", base.id, name)
    return receipt


def _note(unit: Unit, caller: Caller, action: str, base_id: str, name: str) -> None:
    """In the log, with the name: what isn't there any more can't be asked for it."""
    audit(unit, action, "knowledge_base", base_id, before={"name": name}, origin=caller.origin)


def _put_back(unit: Unit, trashed: TrashedBase) -> KnowledgeBase:
    base = KnowledgeBase(
        id=trashed.id,
        name=trashed.name,
        owner_id=trashed.owner_id,
        visibility="private",
        created_at=trashed.created_at,
        **trashed.fields,
    )
    unit.session.delete(trashed)
    unit.session.add(base)
    unit.session.flush()
    return base


def _find(session: Session, scope: Scope, kb_id: str) -> TrashedBase:
    query = select(TrashedBase).where(TrashedBase.id == kb_id, _own(scope)).with_for_update()
    base: TrashedBase | None = session.scalar(query)
    if base is None:
        raise KnowledgeBaseNotFound()
    return base


def _own(scope: Scope) -> Any:
    return true() if scope.everything else TrashedBase.owner_id == scope.account_id
