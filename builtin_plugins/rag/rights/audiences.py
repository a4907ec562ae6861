"""Audiences: which readers a document has, and which accounts these stand for."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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


def settle_audience(unit: Unit, given: DocumentReaders) -> str:
    """The id of the audience of these readers. Raises ValueError for names that don't fit the holder's."""
    readers = sorted(set(given.readers))
    _check_names(given.holder, readers)
    digest = hashlib.sha256(json.dumps([given.everybody, readers]).encode()).hexdigest()
    mine = (Audience.holder == given.holder) & (Audience.digest == digest)
    known: str | None = unit.session.scalar(select(Audience.id).where(mine))
    if known is not None:
        return known
    made = str(uuid.uuid4())
    row = {"id": made, "holder": given.holder, "digest": digest, "everybody": given.everybody}
    connection = unit.session.connection()
    connection.execute(insert_new(Audience, is_sqlite=connection.dialect.name == "sqlite"), [row])
    settled: str = unit.session.scalars(select(Audience.id).where(mine)).one()
    if settled == made and readers:
        rows = [{"audience_id": made, "reader": one} for one in readers]
        connection.execute(insert(AudienceReader), rows)
    return settled


def grant(unit: Unit, base_id: str, readers_by_key: Mapping[str, DocumentReaders | None]) -> int:
    """Implements the hook `grant_documents`."""
    # New versions and changes of their readers wait for each other, so that all versions have the same.
    base = select(KnowledgeBase.id).where(KnowledgeBase.id == base_id).with_for_update(key_share=True)
    if unit.session.scalar(base) is None:
        return 0
    keys: dict[DocumentReaders | None, list[str]] = {}
    for key, given in readers_by_key.items():
        frozen = None if given is None else _frozen(given)
        keys.setdefault(frozen, []).append(identity_for(key))
    changed = 0
    for given in keys:
        audience = None if given is None else settle_audience(unit, given)
        for some in _portions(sorted(keys[given])):
            changed += _assign(unit, base_id, Document.identity.in_(some), audience)
    if changed:
        raise_version(unit.session, base_id)
    return changed


def assign_audience(unit: Unit, document: Document, audience: str | None) -> None:
    """Give a document's versions, and what came out of them, an audience."""
    same = Document.id == document.id
    if document.identity is not None:
        same = Document.identity == document.identity
    if _assign(unit, document.knowledge_base_id, same, audience):
        raise_version(unit.session, document.knowledge_base_id)


def _assign(unit: Unit, base_id: str, which: ColumnElement[bool], audience: str | None) -> int:
    """Change the audience of some documents and of all that came out of them; returns how many of the former
    have changed, each counted with its versions as one.
    """
    session, mine = unit.session, Document.knowledge_base_id == base_id
    columns = (Document.id, Document.identity, Document.audience_id)
    rows = session.execute(select(*columns).where(mine, which).order_by(Document.id).with_for_update()).all()
    changed = {row.identity or row.id for row in rows if row.audience_id not in (audience, TRASH)}
    level = {row.id: row.audience_id for row in rows}
    done = set[str]()
    while level:
        done.update(level)
        others = [one for one, had in level.items() if had not in (audience, TRASH)]
        for some in _portions(others):
            these = update(Document).where(Document.id.in_(some))
            session.execute(these.values(audience_id=audience))
            if audience is not None:
                _release_jobs(session, some)
        for some in _portions([one for one, had in level.items() if had == TRASH]):
            trashed = update(TrashedDocument).where(TrashedDocument.document_id.in_(some))
            session.execute(trashed.values(audience_id=audience))
        inner: dict[str, str | None] = {}
        for some in _portions(sorted(level)):  # also of those that had it: their members may not
            inner |= _members(session, mine, some)
        level = {one: had for one, had in inner.items() if one not in done}
    return len(changed)


def _release_jobs(session: Session, ids: Sequence[str]) -> None:
    """Let jobs that read documents belong to nobody: owners see theirs, with names of files inside."""
    of_documents = (JobRecord.name == INGESTING) & JobRecord.subject.in_(ids)
    owned = of_documents & JobRecord.owner_id.is_not(None)
    session.execute(update(JobRecord).where(owned).values(owner_id=None))


def _members(session: Session, mine: ColumnElement[bool], ids: Sequence[str]) -> dict[str, str | None]:
    """The documents that came out of these, with their versions, locked: their audiences by id."""
    columns = select(Document.id, Document.identity, Document.audience_id).order_by(Document.id)
    # By the parent alone: with the knowledge base as well, SQLite reads all of its documents.
    rows = session.execute(columns.where(Document.parent_id.in_(ids)).with_for_update()).all()
    for some in _portions(sorted({row.identity for row in rows if row.identity is not None})):
        rows += session.execute(columns.where(mine, Document.identity.in_(some)).with_for_update()).all()
    return {row.id: row.audience_id for row in rows}


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
            wanted, had = set(members[reader]), before.get(reader, set())
            if wanted != had:
                changed += 1
                _change(unit, reader, had - wanted, wanted - had)
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
    held = select(Audience.id).where(Audience.holder == holder)
    dropped: int = unit.session.scalar(select(func.count()).select_from(held.subquery())) or 0
    unit.session.execute(delete(AudienceReader).where(AudienceReader.audience_id.in_(held)))
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


def _frozen(given: DocumentReaders) -> DocumentReaders:
    return DocumentReaders(given.holder, tuple(sorted(set(given.readers))), given.everybody)


def _check_names(holder: str, readers: Iterable[str]) -> None:
    if not 0 < len(holder) <= LONGEST_HOLDER or ":" not in holder:
        raise ValueError(
            f"a holder is a plugin's name, a colon and more, at most {LONGEST_HOLDER} characters"
        )
    start = f"{holder}:"
    for one in readers:
        if not one.startswith(start) or len(one) > LONGEST_READER:
            rule = f"must begin with '{start}' and have at most {LONGEST_READER} characters"
            raise ValueError(f"the reader '{one[:60]}' {rule}")
