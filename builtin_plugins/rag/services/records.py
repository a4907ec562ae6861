"""The record of a document: made from a received file, or started over."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import bindparam, insert, select
from sqlalchemy.exc import IntegrityError

from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.services.deletions import DeletedMeanwhile, is_deleted
from kernel.sdk import Platform, Prepared, PreparedInsert, Staged, Unit, utc_now

P = ParamSpec("P")
T = TypeVar("T")

_ROWS: Any = Document.__table__
_SAME = Prepared(
    select(_ROWS.c.id).where(
        _ROWS.c.knowledge_base_id == bindparam("base"), _ROWS.c.sha256 == bindparam("sha256")
    )
)
_INSERT = PreparedInsert(insert(_ROWS))
"""With the ORM, each upload would take a third of a millisecond more."""


@dataclass(frozen=True)
class Arrived:
    """A completely received file. `asked`: when the document that contains it was uploaded; None for a
    person's upload.
    """

    staged: Staged
    filename: str
    content_type: str
    build_tree: bool = False
    parent_id: str | None = None
    asked: datetime | None = None


async def write_kept(
    platform: Platform, work: Callable[Concatenate[Unit, P], T], *args: P.args, **named: P.kwargs
) -> T:
    """Run `work`, which keeps a file, in its own unit; returns its result."""
    try:
        return await platform.database.write(work, *args, **named)
    except IntegrityError:
        # The same file was sent twice at the same time; this time, `work` finds the other one's document.
        return await platform.database.write(work, *args, **named)


def keep_document(
    unit: Unit, platform: Platform, base: KnowledgeBase, file: Arrived
) -> tuple[Document, bool]:
    """Keep the file; returns its record, and whether to ingest it. The knowledge base must be locked.

    The same bytes in one knowledge base are one document; one that had failed is tried again. Raises
    `DeletedMeanwhile`, after which the unit must be rolled back.
    """
    same = find_same(unit, base.id, file.staged.sha256)
    known: Document | None = None if same is None else unit.session.get(Document, same)
    if known is not None and known.status != "failed":
        return known, False
    if known is None:
        document = _new(unit, base, file)
        if file.asked is not None and is_deleted(unit.session, base.id, file.staged.sha256, file.asked):
            raise DeletedMeanwhile
    else:
        document = known
        _rename(document, file)
        start_over(document)
        unit.session.flush()
    platform.blobs.keep(unit, file.staged, document.holder)
    return document, True


def find_same(unit: Unit, base_id: str, sha256: str) -> str | None:
    """The id of the document with these bytes in a knowledge base."""
    row = _SAME.first(unit.session, {"base": base_id, "sha256": sha256})
    return None if row is None else row["id"]


def _new(unit: Unit, base: KnowledgeBase, file: Arrived) -> Document:
    """Insert the record; the returned object is not in the session."""
    row: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "knowledge_base_id": base.id,
        "filename": file.filename,
        "content_type": file.content_type,
        "size_bytes": file.staged.size,
        "sha256": file.staged.sha256,
        "status": "processing",
        "chunk_count": 0,
        "tree_nodes": 0,
        "tree_levels": 0,
        "tree_wanted": file.build_tree,
        "parent_id": file.parent_id,
        "uploaded_at": utc_now(),
    }
    _INSERT.run(unit.session, row)
    return Document(**row)


def _rename(document: Document, file: Arrived) -> None:
    """Take the new name, too: it may determine the kind of text."""
    document.filename, document.content_type = file.filename, file.content_type
    document.tree_wanted, document.parent_id = file.build_tree, file.parent_id


def start_over(document: Document) -> None:
    """Reset a failed document for another ingestion."""
    document.status, document.error, document.notice = "processing", None, None
    document.uploaded_at, document.completed_at = utc_now(), None
