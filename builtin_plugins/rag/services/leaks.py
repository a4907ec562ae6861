"""Which knowledge bases, pipelines and documents accounts may read, calculated plainly from rows.

For `doctor --leaks`, and independent of `readable`, whose answers are compared with it.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any, Final

from sqlalchemy import ColumnElement, false, func, select, true
from sqlalchemy.orm import Session

from builtin_plugins.accounts.api import OwnedRows, ReadableRows, StoredReader, compare_reads
from builtin_plugins.rag.models import (
    TRASH,
    Audience,
    AudienceReader,
    Document,
    KnowledgeBase,
    Pipeline,
    ReaderMember,
    TrashedDocument,
)
from builtin_plugins.rag.rights.reading import readable_documents
from kernel.sdk import Finding, Platform, Scope

_MOST_DOCUMENTS: Final = 100_000


class StoredDocuments:
    """The documents of all knowledge bases, or many at random, and who may read them.

    Besides its own readers, a document has those of what it came out of and of its other versions: if rows
    say otherwise, they are damaged.
    """

    def __init__(self, session: Session) -> None:
        self._bases = OwnedRows(session, KnowledgeBase)
        columns = (*(Document.id, Document.knowledge_base_id), *(Document.identity, Document.parent_id))
        query = select(*columns, Document.audience_id).order_by(Document.id)
        self._sample: ColumnElement[bool] = true()
        if (session.scalar(select(func.count()).select_from(Document)) or 0) > _MOST_DOCUMENTS:
            query = query.where(Document.id >= str(uuid.uuid4())).limit(_MOST_DOCUMENTS)
            rows = session.execute(query).all()
            self._sample = Document.id.between(rows[0].id, rows[-1].id) if rows else false()
        else:
            rows = session.execute(query).all()
        self._kinds = _by_readers(session, rows)
        self._read_audiences(session)

    def allowed(self, reader: StoredReader) -> set[str]:
        """See `ReadableRows`."""
        bases, mine = self._bases.allowed(reader), self._mine.get(reader.account_id, set())
        document_ids = set[str]()
        for (base, audiences), ids in self._kinds.items():
            if base in bases and all(one is None or one in self._open or one in mine for one in audiences):
                document_ids.update(ids)
        return document_ids

    def read(self, session: Session, scope: Scope) -> set[str]:
        """See `ReadableRows`."""
        return set(session.scalars(readable_documents(scope).where(self._sample)))

    def _read_audiences(self, session: Session) -> None:
        rows = session.execute(select(Audience.id, Audience.everybody)).all()
        self._open = {row.id for row in rows if row.everybody}
        audience_ids = {row.id for row in rows}
        audiences: dict[str, set[str]] = defaultdict(set)
        for row in session.scalars(select(AudienceReader)):
            if row.audience_id in audience_ids:
                audiences[row.reader].add(row.audience_id)
        self._mine: dict[int, set[str]] = defaultdict(set)
        for member in session.scalars(select(ReaderMember)):
            self._mine[member.account_id] |= audiences.get(member.reader, set())


def _by_readers(session: Session, rows: Any) -> Mapping[tuple[str, frozenset[str | None]], list[str]]:
    """The ids of documents by their knowledge base and the audiences of which all must let one read."""
    trashed = dict(session.execute(select(TrashedDocument.document_id, TrashedDocument.audience_id)).all())
    own = {row.id: {trashed[row.id], TRASH} if row.id in trashed else {row.audience_id} for row in rows}
    versions: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    for row in rows:
        if row.identity is not None:
            versions[row.knowledge_base_id, row.identity] |= own[row.id] - {TRASH}
    kinds: dict[tuple[str, frozenset[str | None]], list[str]] = defaultdict(list)
    for row in rows:
        needed = own[row.id] | versions.get((row.knowledge_base_id, row.identity), set())
        needed |= own.get(row.parent_id, set()) - {TRASH}
        kinds[row.knowledge_base_id, frozenset(needed)].append(row.id)
    return kinds


def stored_pipelines(session: Session) -> OwnedRows:
    """All pipelines, for other plugins' calculations."""
    return OwnedRows(session, Pipeline)


async def find_leaks(platform: Platform) -> AsyncIterator[Finding]:
    """One finding each for knowledge bases, pipelines and documents."""
    kinds: dict[str, Callable[[Session], ReadableRows]] = {
        "knowledge bases": partial(OwnedRows, table=KnowledgeBase),
        "pipelines": stored_pipelines,
        "documents": StoredDocuments,
    }
    for what, load in kinds.items():
        async for finding in compare_reads(platform, what, load):
            yield finding
