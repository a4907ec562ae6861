"""Versions of a document: an upload under its identity replaces it; what was replaced is kept for a while.

A version is a row of its own. The new one answers from the commit that completes it; in the same commit the
earlier ones become `superseded`: their passages leave the search, their text and file stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from builtin_plugins.rag import api
from builtin_plugins.rag.events import DocumentDeleted
from builtin_plugins.rag.models import SUPERSEDED, Document, KnowledgeBase
from builtin_plugins.rag.services.early_search import withdraw_words
from builtin_plugins.rag.services.identities import CURRENT, latest, members_of, name_unnamed
from builtin_plugins.rag.services.metadata import remove_values
from builtin_plugins.rag.settings import RagSettings
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import Job, NoPayload, Platform, Unit, utc_now

_FORGOTTEN_AT_ONCE: Final = 50


def all_versions(session: Session, document: Document) -> Sequence[Document]:
    """A document's versions, newest first; of a document without identity, itself."""
    if document.identity is None:
        return [document]
    return session.scalars(
        select(Document)
        .where(Document.knowledge_base_id == document.knowledge_base_id)
        .where(Document.identity == document.identity)
        .order_by(Document.version.desc())
    ).all()


def hold_earlier(unit: Unit, document: Document) -> Sequence[Document]:
    """Lock the versions that a locked one is about to replace, from newer to older.

    Called before anything of the vector store is locked: what ends one of them locks that after its row.
    """
    if document.identity is None or document.version == 1:
        return []
    mine = (Document.knowledge_base_id == document.knowledge_base_id) & (
        Document.identity == document.identity
    )
    older = select(Document).where(mine, CURRENT, Document.version < document.version)
    locked = older.order_by(Document.version.desc()).with_for_update()
    return unit.session.scalars(locked.execution_options(populate_existing=True)).all()


def replace_earlier(unit: Unit, platform: Platform, base: KnowledgeBase, document: Document) -> None:
    """Let a version that is completed in this unit take the place of the earlier ones."""
    unit.session.flush()
    moment = document.completed_at or utc_now()  # the same: as of any time, one of them is current
    for row in hold_earlier(unit, document):
        _supersede(unit, platform, base, row, moment)
        _supersede_members(unit, platform, base, row, moment)
    _trim(unit, platform, document)


def _trim(unit: Unit, platform: Platform, document: Document) -> None:
    """Remove the replaced versions of a document that are more than are kept."""
    most = platform.settings_of(RagSettings).document_versions
    mine = (Document.knowledge_base_id == document.knowledge_base_id) & (
        Document.identity == document.identity
    )
    surplus = select(Document).where(mine, Document.status == SUPERSEDED)
    surplus = surplus.order_by(Document.version.desc()).offset(most)
    for row in unit.session.scalars(surplus.with_for_update()).all():
        _forget(unit, platform, row)


def _supersede(unit: Unit, platform: Platform, base: KnowledgeBase, row: Document, moment: datetime) -> None:
    vectors = platform.resource(VECTORS)
    if row.status == "completed":
        vectors.retire(unit, base.collection, row.id, base.earlier_collection)
    else:  # it was never complete, even if a part was found while it was read
        vectors.remove_group(unit, base.collection, row.id)
        row.chunk_count = 0
        withdraw_words(unit, platform, row)
    # Read again: the embedding model may have begun to change since.
    change = select(KnowledgeBase.reembedding).where(KnowledgeBase.id == base.id)
    coming = KnowledgeBase(id=base.id, reembedding=unit.session.scalar(change)).coming_collection
    for collection in filter(None, (coming, base.tree_collection)):
        vectors.remove_group(unit, collection, row.id)
    row.tree_wanted, row.tree_nodes, row.tree_levels, row.tree_built_at = False, 0, 0, None
    row.status, row.superseded_at = SUPERSEDED, moment
    unit.session.flush()
    platform.hooks.ask_now(
        api.withdraw_derived, platform=platform, unit=unit, knowledge_base_id=base.id, document_id=row.id
    )


def _supersede_members(
    unit: Unit, platform: Platform, base: KnowledgeBase, row: Document, moment: datetime
) -> None:
    """The files inside that the new version does not have; those that it has are its own by now."""
    left = select(Document).where(members_of(row), CURRENT)
    for member in unit.session.scalars(left.order_by(Document.id).with_for_update()).all():
        newest = member if member.identity is None else latest(unit.session, base.id, member.identity)
        if newest is None or newest.id == member.id:
            name_unnamed(member)
            for version in (member, *hold_earlier(unit, member)):
                _supersede(unit, platform, base, version, moment)
                _supersede_members(unit, platform, base, version, moment)
            _trim(unit, platform, member)


def _forget(unit: Unit, platform: Platform, row: Document) -> None:
    """Remove a replaced version that is kept no longer, with all that refers to it."""
    base_id = row.knowledge_base_id
    base = unit.session.get(KnowledgeBase, base_id)
    collection = KnowledgeBase(id=base_id).earlier_collection
    platform.resource(VECTORS).remove_group(unit, collection, row.id)
    platform.blobs.release(unit, row.sha256, row.holder)
    _keep_guarded(unit, row)
    platform.hooks.ask_now(
        api.remove_derived, platform=platform, unit=unit, knowledge_base_id=base_id, document_id=row.id
    )
    remove_values(unit, [row.id])
    owner_id = None if base is None else base.owner_id
    unit.emit(DocumentDeleted(document_id=row.id, knowledge_base_id=base_id, owner_id=owner_id))
    unit.session.delete(row)


def _keep_guarded(unit: Unit, row: Document) -> None:
    """Let what came out of a version belong to the newest one, where changes of its readers find it."""
    newest = None if row.identity is None else latest(unit.session, row.knowledge_base_id, row.identity)
    if row.audience_id is not None and newest is not None and newest.id != row.id:
        left = update(Document).where(Document.parent_id == row.id, ~CURRENT)
        unit.session.execute(left.values(parent_id=newest.id))


async def forget_old(platform: Platform, _payload: NoPayload) -> None:
    """Once a day: remove the replaced versions that are older than `document_version_days`."""
    days = platform.settings_of(RagSettings).document_version_days
    while days and await platform.database.write(_forget_some, platform, days) == _FORGOTTEN_AT_ONCE:
        pass
    await platform.database.scrub()


def _forget_some(unit: Unit, platform: Platform, days: int) -> int:
    old = Document.superseded_at < unit.now() - timedelta(days=days)
    some = select(Document).where(Document.superseded_at.is_not(None), old).order_by(Document.superseded_at)
    rows = unit.session.scalars(some.limit(_FORGOTTEN_AT_ONCE).with_for_update(skip_locked=True)).all()
    for row in rows:
        _forget(unit, platform, row)
    return len(rows)


FORGET_OLD = Job("rag.forget_versions", NoPayload, forget_old, schedule="40 3 * * *")
