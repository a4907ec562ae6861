"""Who may read which item: as the source says it, and as the knowledge base has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import select, update

from builtin_plugins.rag import api as rag
from builtin_plugins.sources.errors import DocumentsUnavailable
from builtin_plugins.sources.models import ItemRecord, SourceRecord
from builtin_plugins.sources.services.rights.directory import (
    Key,
    everyone_of,
    forget_principals,
    match_accounts,
)
from builtin_plugins.sources.services.rights.readers import document_readers, holder_of
from builtin_plugins.sources.services.texts import portions
from kernel.sdk import Platform, Unit

_AT_ONCE: Final = 500


def key_of(item_id: str) -> str:
    """The key of an item's document."""
    return f"sources:{item_id}"


def grant_items(unit: Unit, platform: Platform, source: SourceRecord, rows: Sequence[ItemRecord]) -> None:
    """Let the documents of items have the readers that the rows say, if there are documents."""
    everyone = everyone_of(unit.session, source.id)
    readers = {
        key_of(row.id): document_readers(source, row.readers, everyone) if source.is_guarded else None
        for row in rows
    }
    _grant(unit, platform, source, readers)


def change_readers(
    unit: Unit,
    platform: Platform,
    source: SourceRecord,
    rows: Sequence[ItemRecord],
    readers: Mapping[str, str],
) -> int:
    """Store who may read items, by the id of their row; returns how many have changed.

    An item whose document is just being stored is granted again: it may have been stored as it was before.
    """
    changed = [row for row in rows if row.readers != readers[row.id]]
    for row in changed:
        row.readers = readers[row.id]
    unit.session.flush()
    fresh = [row for row in rows if row.state == "waiting" and row not in changed]
    grant_items(unit, platform, source, [*changed, *fresh])
    return len(changed)


def grant_all(unit: Unit, platform: Platform, source: SourceRecord) -> None:
    """The same for all items of a source, as the rows say."""
    mine = select(ItemRecord).where(ItemRecord.source_id == source.id).order_by(ItemRecord.id)
    for some in portions(unit.session.scalars(mine).all(), _AT_ONCE):
        grant_items(unit, platform, source, some)


def follow_accounts(unit: Unit, platform: Platform, source: SourceRecord, gone: Iterable[Key] = ()) -> None:
    """Store which accounts the people and groups at a source match. `gone` are those no longer there."""
    before = everyone_of(unit.session, source.id)
    if match_accounts(unit, platform, source, gone) != before:
        grant_all(unit, platform, source)


def close_source(unit: Unit, platform: Platform, source: SourceRecord) -> None:
    """Let nobody read its documents until its permissions have been read again."""
    mine = ItemRecord.source_id == source.id
    unit.session.execute(update(ItemRecord).where(mine).values(readers=None, granted_by=None))
    unit.session.expire_all()
    answer = platform.hooks.ask_now(
        rag.drop_audiences, platform=platform, unit=unit, holder=holder_of(source.id)
    )
    if answer is None:
        raise DocumentsUnavailable()
    source.is_closed, source.rights_mark, source.rights_pass = True, None, None


def drop_holder(unit: Unit, platform: Platform, source: SourceRecord) -> None:
    """Forget whom its people and groups stand for: it is no longer guarded, or goes."""
    platform.hooks.ask_now(rag.drop_audiences, platform=platform, unit=unit, holder=holder_of(source.id))
    forget_principals(unit, source)


def _grant(
    unit: Unit,
    platform: Platform,
    source: SourceRecord,
    readers: Mapping[str, rag.DocumentReaders | None],
) -> None:
    if not readers:
        return
    answer = platform.hooks.ask_now(
        rag.grant_documents,
        platform=platform,
        unit=unit,
        knowledge_base_id=source.knowledge_base_id,
        readers_by_key=readers,
    )
    if answer is None:
        raise DocumentsUnavailable()
