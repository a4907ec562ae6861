"""Audiences: which readers a document has, and which accounts these stand for."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, TypeVar

from sqlalchemy import ColumnElement, delete, func, insert, select, update
from sqlalchemy.orm import Session

from builtin_plugins.rag.metadata.changes import raise_member_version, raise_version
from builtin_plugins.rag.models import (
    INGESTING,
    TRASH,
    Audience,
    AudienceReader,
    Document,
    KnowledgeBase,
    ReaderMember,
    TrashedBase,
    TrashedDocument,
)
from builtin_plugins.rag.services.identities import CURRENT, identity_for
from kernel.sdk import Unit
from kernel.sdk.jobs import JobRecord
from kernel.sdk.storage import insert_new

LONGEST_HOLDER: Final = 100
LONGEST_READER: Final = 500
_AT_ONCE: Final = 500
_LOCK: Final = "rag.reader-members"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DocumentReaders:
    """Who may read a document, of those who see its knowledge base: no account is an exception.

    `holder` begins with the plugin's name and a colon, such as ``sources:7``, and has at most 100 characters;
    its audiences and their members go together. `readers` are people and groups as the holder names them,
    each name beginning with the holder's and a colon (``sources:7:group:staff``), at most 500 characters;
    `set_reader_members` says for which accounts they stand. Without readers, nobody may read the document,
    unless `everybody`.
    """

    holder: str
    readers: Sequence[str] = ()
    everybody: bool = False


def settle_audience(unit: Unit, reader_set: DocumentReaders) -> str:
    """The id of the audience of these readers. Raises ValueError for names that don't fit the holder's."""
    frozen = _frozen(reader_set)
    return _settle(unit, [frozen])[frozen]


def _settle(unit: Unit, reader_sets: Collection[DocumentReaders]) -> dict[DocumentReaders, str]:
    """The ids of the audiences of these readers, which are sorted. Raises ValueError."""
    by_digest: dict[tuple[str, str], DocumentReaders] = {}
    for reader_set in reader_sets:
        _check_names(reader_set.holder, reader_set.readers)
        digest = hashlib.sha256(json.dumps([reader_set.everybody, reader_set.readers]).encode()).hexdigest()
        by_digest[reader_set.holder, digest] = reader_set
    settled = _stored_ids(unit.session, by_digest)
    rows = [
        {"id": str(uuid.uuid4()), "holder": holder, "digest": digest, "everybody": reader_set.everybody}
        for (holder, digest), reader_set in sorted(by_digest.items(), key=itemgetter(0))
        if reader_set not in settled
    ]
    if rows:
        connection = unit.session.connection()
        connection.execute(insert_new(Audience, is_sqlite=connection.dialect.name == "sqlite"), rows)
        settled = _stored_ids(unit.session, by_digest)
        new_ids = {str(row["id"]) for row in rows}  # another process may have made some of them
        members = [
            {"audience_id": settled[reader_set], "reader": reader}
            for reader_set in by_digest.values()
            if settled[reader_set] in new_ids
            for reader in reader_set.readers
        ]
        if members:
            connection.execute(insert(AudienceReader), members)
    return settled


def _stored_ids(
    session: Session, by_digest: Mapping[tuple[str, str], DocumentReaders]
) -> dict[DocumentReaders, str]:
    ids_by_readers: dict[DocumentReaders, str] = {}
    digests: dict[str, list[str]] = {}
    for holder, digest in by_digest:
        digests.setdefault(holder, []).append(digest)
    for holder, mine in digests.items():
        columns = select(Audience.id, Audience.digest).where(Audience.holder == holder)
        for some in _portions(mine):
            for row in session.execute(columns.where(Audience.digest.in_(some))):
                ids_by_readers[by_digest[holder, row.digest]] = row.id
    return ids_by_readers


def grant(unit: Unit, base_id: str, readers_by_key: Mapping[str, DocumentReaders | None]) -> int:
    """Implements the hook `grant_documents`."""
    # New versions and changes of their readers wait for each other, so that all versions have the same.
    # One in the trash may come back, with the readers that it has then.
    base = select(KnowledgeBase.id).where(KnowledgeBase.id == base_id).with_for_update(key_share=True)
    trashed = select(TrashedBase.id).where(TrashedBase.id == base_id).with_for_update()
    if unit.session.scalar(base) is None and unit.session.scalar(trashed) is None:
        return 0
    readers_by_identity = {
        identity_for(key): None if one is None else _frozen(one) for key, one in readers_by_key.items()
    }
    settled = _settle(unit, {one for one in readers_by_identity.values() if one is not None})
    audience_ids = {
        identity: None if one is None else settled[one] for identity, one in readers_by_identity.items()
    }
    changed = 0
    for some in _portions(sorted(audience_ids)):
        rows = _locked(unit.session, base_id, Document.identity.in_(some))
        changed += _assign(unit.session, base_id, rows, {row.id: audience_ids[row.identity] for row in rows})
    if changed:
        raise_version(unit.session, base_id)
    return changed


def assign_audience(unit: Unit, document: Document, audience: str | None) -> None:
    """Give a document's versions, and what came out of them, an audience."""
    same = Document.id == document.id
    if document.identity is not None:
        same = Document.identity == document.identity
    base_id = document.knowledge_base_id
    rows = _locked(unit.session, base_id, same)
    if _assign(unit.session, base_id, rows, {row.id: audience for row in rows}):
        raise_version(unit.session, base_id)


def _locked(session: Session, base_id: str, which: ColumnElement[bool]) -> Sequence[Any]:
    columns = select(Document.id, Document.identity, Document.parent_id, Document.audience_id)
    mine = columns.where(Document.knowledge_base_id == base_id, which)
    return session.execute(mine.order_by(Document.id).with_for_update()).all()


def _assign(
    session: Session, base_id: str, rows: Sequence[Any], audience_ids: Mapping[str, str | None]
) -> int:
    """Change the audiences of these documents, by their ids, and of all that came out of them; returns how
    many of the former have changed, each counted with its versions as one.
    """
    changed = {row.identity or row.id for row in rows if row.audience_id not in (audience_ids[row.id], TRASH)}
    targets = dict(audience_ids)
    while rows:
        _write_audiences(session, rows, targets)
        inner = _came_out(session, base_id, [row.id for row in rows])  # theirs may be others
        by_identity = {row.identity: targets[row.parent_id] for row in inner if row.parent_id in targets}
        rows = [row for row in inner if row.id not in targets]
        for row in rows:
            has_parent = row.parent_id in targets
            targets[row.id] = targets[row.parent_id] if has_parent else by_identity[row.identity]
    return len(changed)


def _write_audiences(session: Session, rows: Sequence[Any], targets: Mapping[str, str | None]) -> None:
    changed: dict[str | None, list[str]] = {}
    trashed: dict[str | None, list[str]] = {}
    for row in rows:
        target = targets[row.id]
        if row.audience_id == TRASH:
            trashed.setdefault(target, []).append(row.id)
        elif row.audience_id != target:
            changed.setdefault(target, []).append(row.id)
    for target, ids in changed.items():
        for some in _portions(ids):
            these = update(Document).where(Document.id.in_(some))
            session.execute(these.values(audience_id=target))
            if target is not None:
                _release_jobs(session, some)
    for target, ids in trashed.items():
        for some in _portions(ids):
            query = update(TrashedDocument).where(TrashedDocument.document_id.in_(some))
            session.execute(query.values(audience_id=target))


def _release_jobs(session: Session, ids: Sequence[str]) -> None:
    """Let jobs that read documents belong to nobody: owners see theirs, with names of files inside."""
    of_documents = (JobRecord.name == INGESTING) & JobRecord.subject.in_(ids)
    owned = of_documents & JobRecord.owner_id.is_not(None)
    session.execute(update(JobRecord).where(owned).values(owner_id=None))


def _came_out(session: Session, base_id: str, ids: Sequence[str]) -> list[Any]:
    """The documents that came out of these, then their other versions, locked."""
    # By the parent alone: with the knowledge base as well, SQLite reads all of its documents.
    columns = select(Document.id, Document.identity, Document.parent_id, Document.audience_id)
    rows: list[Any] = []
    for some in _portions(ids):
        inside = columns.where(Document.parent_id.in_(some)).order_by(Document.id)
        rows += session.execute(inside.with_for_update()).all()
    for some in _portions(sorted({row.identity for row in rows if row.identity is not None})):
        rows += _locked(session, base_id, Document.identity.in_(some))
    return rows


def set_members(unit: Unit, holder: str, members: Mapping[str, Sequence[int]]) -> int:
    """Implements the hook `set_reader_members`."""
    _check_names(holder, members)
    unit.lock(_LOCK)
    changed = 0
    for some in _portions(sorted(members)):
        before: dict[str, set[int]] = {}
        query = select(ReaderMember).where(ReaderMember.reader.in_(some))
        for row in unit.session.scalars(query):
            before.setdefault(row.reader, set()).add(row.account_id)
        for reader in some:
            accounts, had = set(members[reader]), before.get(reader, set())
            if accounts != had:
                changed += 1
                _change(unit, reader, had - accounts, accounts - had)
    if changed:
        raise_member_version(unit.session)
    return changed


def _change(unit: Unit, reader: str, gone: Iterable[int], new: Iterable[int]) -> None:
    mine = ReaderMember.reader == reader
    for some in _portions(sorted(gone)):
        unit.session.execute(delete(ReaderMember).where(mine, ReaderMember.account_id.in_(some)))
    rows = [{"reader": reader, "account_id": one} for one in sorted(new)]
    connection = unit.session.connection()
    if rows:
        connection.execute(insert_new(ReaderMember, is_sqlite=connection.dialect.name == "sqlite"), rows)


def drop(unit: Unit, holder: str) -> int:
    """Implements the hook `drop_audiences`."""
    unit.lock(_LOCK)
    audiences = select(Audience.id).where(Audience.holder == holder)
    dropped: int = unit.session.scalar(select(func.count()).select_from(audiences.subquery())) or 0
    unit.session.execute(delete(AudienceReader).where(AudienceReader.audience_id.in_(audiences)))
    unit.session.execute(delete(Audience).where(Audience.holder == holder))
    unit.session.execute(delete(ReaderMember).where(_named_by(holder, ReaderMember.reader)))
    raise_member_version(unit.session)
    return dropped


def remove_account(unit: Unit, account_id: int) -> None:
    """Forget that an account stands for any reader; it has been deleted."""
    unit.session.execute(delete(ReaderMember).where(ReaderMember.account_id == account_id))
    raise_member_version(unit.session)


def count_unreadable(session: Session, base_id: str, holder: str) -> int:
    """Implements the hook `count_unreadable_documents`."""
    read = select(AudienceReader.audience_id).join(ReaderMember, ReaderMember.reader == AudienceReader.reader)
    closed = select(Audience.id).where(
        Audience.holder == holder, Audience.everybody.is_(False), Audience.id.not_in(read)
    )
    mine = (Document.knowledge_base_id == base_id) & CURRENT & Document.audience_id.in_(closed)
    return session.scalar(select(func.count()).select_from(Document).where(mine)) or 0


def _portions(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + _AT_ONCE] for start in range(0, len(items), _AT_ONCE))


def _named_by(holder: str, reader: Any) -> ColumnElement[bool]:
    start = f"{holder}:"
    own: ColumnElement[bool] = func.substr(reader, 1, len(start)) == start
    return own


def _frozen(reader_set: DocumentReaders) -> DocumentReaders:
    return DocumentReaders(reader_set.holder, tuple(sorted(set(reader_set.readers))), reader_set.everybody)


def _check_names(holder: str, readers: Iterable[str]) -> None:
    if not 0 < len(holder) <= LONGEST_HOLDER or ":" not in holder:
        raise ValueError(
            f"a holder is a plugin's name, a colon and more, at most {LONGEST_HOLDER} characters"
        )
    start = f"{holder}:"
    for name in readers:
        if not name.startswith(start) or len(name) > LONGEST_READER:
            rule = f"must begin with '{start}' and have at most {LONGEST_READER} characters"
            raise ValueError(f"the reader '{name[:60]}' {rule}")
