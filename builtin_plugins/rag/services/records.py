"""The record of a document: made from a received file, or started over; its original, its outcome."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, Literal, ParamSpec, TypeVar

from sqlalchemy import bindparam, insert, literal_column, select
from sqlalchemy.exc import IntegrityError

from builtin_plugins.rag.metadata.changes import raise_version
from builtin_plugins.rag.models import SUPERSEDED, Document, KnowledgeBase
from builtin_plugins.rag.rights.audiences import assign_audience
from builtin_plugins.rag.services.deletions import DeletedMeanwhile, is_deleted
from builtin_plugins.rag.services.identities import NOT_OF_PLUGIN, is_of_plugin, latest
from builtin_plugins.rag.services.trash import take_out
from builtin_plugins.rag.services.usage import admit
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Platform, Prepared, ResourceKey, Unavailable, Unit, utc_now
from kernel.sdk.storage import Staged

if TYPE_CHECKING:
    from prometheus_client import Counter

P = ParamSpec("P")
T = TypeVar("T")

_ROWS: Any = Document.__table__
_SAME = Prepared(
    select(_ROWS.c.id)
    .where(
        _ROWS.c.knowledge_base_id == bindparam("base"),
        _ROWS.c.sha256 == bindparam("sha256"),
        _ROWS.c.status != literal_column(f"'{SUPERSEDED}'"),
        # A failed version is tried again under its own identity only: it would replace another document.
        _ROWS.c.identity.is_(None) | (_ROWS.c.status != literal_column("'failed'")),
        NOT_OF_PLUGIN,
        _ROWS.c.audience_id.is_(None),
    )
    .order_by(_ROWS.c.uploaded_at, _ROWS.c.id)
    .limit(1)
)
_PORTION: Final = 1024 * 1024
_INSERT: Final = insert(_ROWS)
"""With the ORM, each upload would take a third of a millisecond more."""


@dataclass(frozen=True)
class Arrived:
    """A completely received file. `asked_at`: when the document that contains it was uploaded; None for a
    person's upload; `uploaded_by` is that person's account. `audience_id` is who may read it; without
    `audience_settled`, the version before says so.
    """

    staged: Staged
    filename: str
    content_type: str
    build_tree: bool = False
    parent_id: str | None = None
    asked_at: datetime | None = None
    identity: str | None = None
    audience_id: str | None = None
    audience_settled: bool = False
    uploaded_by: int | None = None


def most_upload_mb(platform: Platform) -> int:
    """The most MB that the file of a document may have."""
    return platform.settings_of(RagSettings).max_upload_size_mb


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

    The same bytes in one knowledge base are one document, under an identity one version; one that had failed
    is tried again. Other bytes under an identity are its next version. Raises StorageLimit, QueueLimit, and
    `DeletedMeanwhile`, after which the unit must be rolled back.
    """
    take_out(unit, base.id, file.identity, file.staged.sha256)
    newest = None if file.identity is None else latest(unit.session, base.id, file.identity)
    if newest is not None and not file.audience_settled:
        file = replace(file, audience_id=newest.audience_id)
    present = _find_present(unit, base.id, file, newest)
    if present is not None and present.status != "failed":
        if file.identity is not None and file.parent_id is not None:
            present.parent_id = file.parent_id
        _guard(unit, present, file)
        return present, False
    added = file.staged.size if present is None else 0
    admit(unit, platform.settings_of(RagSettings), base, added, queued=file.asked_at is None)
    if present is None:
        document = _new(unit, base, file, 1 if newest is None else newest.version + 1)
        if file.asked_at is not None and is_deleted(unit.session, base.id, file.staged.sha256, file.asked_at):
            raise DeletedMeanwhile
    else:
        document = present
        _rename(document, file)
        start_over(document)
        unit.session.flush()
    if present is not None or newest is not None:  # nothing has come out of a new one
        _guard(unit, document, file)
    platform.blobs.keep(unit, file.staged, document.holder)
    return document, True


def _guard(unit: Unit, document: Document, file: Arrived) -> None:
    """Give the document's other versions, and what came out of them, the same audience."""
    if file.audience_settled:
        assign_audience(unit, document, file.audience_id)


def _find_present(unit: Unit, base_id: str, file: Arrived, newest: Document | None) -> Document | None:
    """The document that has these bytes already; one without an identity gets that of a file of its name."""
    if newest is not None and newest.status != SUPERSEDED:
        return newest if newest.sha256 == file.staged.sha256 else None
    if is_of_plugin(file.identity) or file.audience_id is not None:
        return None
    same = find_same(unit, base_id, file.staged.sha256)
    document: Document | None = None if same is None else unit.session.get(Document, same)
    if file.identity is None or document is None:
        return document
    if newest is not None or document.identity is not None or document.filename != file.filename:
        return None
    if file.parent_id is not None and not _of_one_archive(unit, document.parent_id, file.parent_id):
        return None
    document.identity = file.identity
    unit.session.flush()
    raise_version(unit.session, base_id)
    return document


def _of_one_archive(unit: Unit, one: str | None, other: str) -> bool:
    """Whether two documents are versions of one."""
    identities = dict(
        unit.session.execute(
            select(Document.id, Document.identity).where(Document.id.in_((one, other)))
        ).all()
    )
    return one == other or (one in identities and identities[one] == identities.get(other) is not None)


def find_same(unit: Unit, base_id: str, sha256: str) -> str | None:
    """The id of the oldest document with these bytes in a knowledge base, if no other has replaced it.

    One that a plugin keeps does not count: it goes when the plugin says so. Neither does one with an
    audience, as uploaders would learn of it.
    """
    row = _SAME.first(unit.session, {"base": base_id, "sha256": sha256})
    return None if row is None else row["id"]


def _new(unit: Unit, base: KnowledgeBase, file: Arrived, version: int) -> Document:
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
        "searchable_count": 0,
        "tree_nodes": 0,
        "tree_levels": 0,
        "tree_wanted": file.build_tree,
        "parent_id": file.parent_id,
        "identity": file.identity,
        "audience_id": file.audience_id,
        "version": version,
        "uploaded_at": utc_now(),
        "uploaded_by": file.uploaded_by,
    }
    unit.session.connection().execute(_INSERT, row)
    return Document(**row)


def _rename(document: Document, file: Arrived) -> None:
    """Take the new name, too: it may determine the kind of text."""
    document.filename, document.content_type = file.filename, file.content_type
    document.tree_wanted, document.parent_id = file.build_tree, file.parent_id
    document.uploaded_by = file.uploaded_by


def start_over(document: Document) -> None:
    """Reset a failed document for another ingestion."""
    document.status, document.error, document.notice = "processing", None, None
    document.uploaded_at, document.completed_at = utc_now(), None


async def read_portions(path: Path) -> AsyncIterator[bytes]:
    """A file's content in portions of 1 MB."""
    with path.open("rb") as file:
        while portion := file.read(_PORTION):
            yield portion


log = logging.getLogger("platform.rag")


class OriginalLost(Unavailable):
    """The store has lost a document's original, or a part of it. Uploading the same file stores it again."""

    default_detail = (
        "The document's original file is missing or incomplete in the server's storage; upload it again, or"
        " ask the operator to restore it"
    )


async def original(platform: Platform, document: Document) -> Path:
    """A file with the document's original bytes. Raises OriginalLost.

    Only the size is checked, which costs nothing: a store that fails midway leaves a short file, not a
    different one.
    """
    path = await platform.blobs.local(document.sha256)
    size = await asyncio.to_thread(_size, path)
    if size != document.size_bytes:
        log.error(
            "the original of document %s (%s…) has %s bytes instead of %d",
            *(document.id, document.sha256[:12], "no" if size is None else size, document.size_bytes),
        )
        raise OriginalLost
    return path


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


Outcome = Literal["success", "failed"]

_TOPIC = "rag.document"
_REMEMBERED = 4096


def note_outcome(unit: Unit, outcome: Outcome, count: int = 1) -> None:
    """Notify all processes, on commit, that `count` more documents ended with this outcome."""
    unit.notify(_TOPIC, f"{outcome}:{count}:{uuid.uuid4().hex}")


class Outcomes:
    """Counts the notices; one may arrive twice."""

    def __init__(self, platform: Platform, counter: Counter) -> None:
        self._counter = counter
        self._heard: OrderedDict[str, None] = OrderedDict()
        platform.notices.listen(_TOPIC, self._hear)

    def _hear(self, notice: str) -> None:
        if notice in self._heard:
            return
        self._heard[notice] = None
        if len(self._heard) > _REMEMBERED:
            self._heard.popitem(last=False)
        outcome, count, _ = notice.split(":")
        self._counter.labels(outcome).inc(int(count))


OUTCOMES: ResourceKey[Outcomes] = ResourceKey("document outcomes")
