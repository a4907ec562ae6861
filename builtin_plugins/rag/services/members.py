"""Files inside documents (archives, attachments) become separate documents."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePath
from typing import Final

from sqlalchemy import select

from builtin_plugins.documents.api import (
    PARSER_PROCESSES,
    PARSERS,
    Bounds,
    Member,
    Parser,
    ParserUnavailable,
    SlowDocument,
    UnparsableDocument,
    extract,
    parse,
)
from builtin_plugins.rag.errors import StorageLimit
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.services.attempts import Gone, is_wanted
from builtin_plugins.rag.services.deletions import DeletedMeanwhile
from builtin_plugins.rag.services.identities import inside
from builtin_plugins.rag.services.records import Arrived, keep_document, read_portions, write_kept
from builtin_plugins.rag.services.trash import former_audience
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Platform, PlatformError, Unit
from kernel.sdk.http import clean_name

Queue = Callable[[Unit, Document], object]

DEEPEST: Final = 2
"""The nesting depth from which files inside documents are no longer extracted."""

_MAIL: Final = frozenset({"email", "mbox", "msg"})
_WITHOUT_TEXT: Final = {
    "no_text": "a picture without text",
    "unrecognized": "a picture without text",
    "no_ocr": "a picture, which needs tesseract to be read",
}
_MEGABYTE: Final = 1024 * 1024


_TOLD_CHARS: Final = 360
"""The limit for file names, so that all of it fits a job's message, which is cut off at 500."""


@dataclass(frozen=True)
class Inside:
    """What happened to the files inside a document, in words; `left_out` if some became no documents.

    If it is `guarded`, their names are for its readers alone.
    """

    message: str
    left_out: str | None
    guarded: bool = False


async def take_out(
    platform: Platform, document: Document, base: KnowledgeBase, asked_at: datetime, queue: Queue
) -> Inside | None:
    """Make documents of the files inside; returns what happened to them, None for a document without any.

    Can run again after a kill: the same bytes are one document, and what was deleted since `asked_at` stays
    deleted. Raises `UnparsableDocument`, and `Gone` once the document was deleted, cancelled or started over;
    the remaining files are then not extracted.
    """
    parser = platform.resource(PARSERS).for_media_type(document.content_type)
    if parser is None or parser.extractor is None:
        return None
    settings = platform.settings_of(RagSettings)
    largest = settings.max_upload_size_mb * _MEGABYTE
    bounds = Bounds(settings.archive_files, largest, settings.archive_mb * _MEGABYTE)
    path = await platform.blobs.local(document.sha256)
    folder = platform.scratch.new(".members")
    folder.mkdir(mode=0o700)
    try:
        limits = settings.parse_limits()
        children = platform.resource(PARSER_PROCESSES)
        members = await extract(children, path, parser.extractor, limits, folder, bounds)
        whole = PurePath(document.filename).stem  # for a compressed file without a stored name
        members = [member._replace(name=member.name or whole) for member in members]
        pictures = _Pictures(platform, folder / "text") if parser.name in _MAIL else None
        reasons = [
            await _take(platform, document, base, member, asked_at, largest, queue, pictures)
            for member in members
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    summary = _summary(members, reasons)
    return summary and replace(summary, guarded=document.audience_id is not None)


class _Pictures:
    """Tells pictures in mails that have text, such as scans, from those that only decorate, which would be
    failed documents: logos in signatures, spacers.
    """

    def __init__(self, platform: Platform, sink: Path) -> None:
        self._platform = platform
        self._sink = sink
        self._reasons: dict[str, str | None] = {}  # a signature's logo is in each of its mails

    async def why_without_text(self, path: Path, content_type: str) -> str | None:
        """Why a picture can't become a document; None if it can, or for any other file."""
        parser = self._platform.resource(PARSERS).for_media_type(content_type)
        if parser is None or not content_type.startswith("image/"):
            return None
        key = await asyncio.to_thread(_digest, path)
        if key not in self._reasons:
            self._reasons[key] = await self._why(path, parser)
        return self._reasons[key]

    async def _why(self, path: Path, parser: Parser) -> str | None:
        limits = self._platform.settings_of(RagSettings).parse_limits()
        children = self._platform.resource(PARSER_PROCESSES)
        try:
            await parse(children, path, parser, limits, self._sink)
        except UnparsableDocument as error:
            return _WITHOUT_TEXT.get(error.code)
        except (SlowDocument, ParserUnavailable):  # its own ingestion will report it
            return None
        return None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def _take(
    platform: Platform,
    parent: Document,
    base: KnowledgeBase,
    member: Member,
    asked_at: datetime,
    largest: int,
    queue: Queue,
    pictures: _Pictures | None,
) -> str | None:
    """Keep one file as a document; returns why it was left out."""
    if member.path is None:
        return member.left_out or "damaged"
    name = clean_name(member.name)
    content_type = await platform.resource(PARSERS).detect(member.path, name)
    if content_type is None:
        return "no supported type"
    if pictures is not None and (without := await pictures.why_without_text(member.path, content_type)):
        return without
    try:
        staged = await platform.blobs.stage(read_portions(member.path), largest)
    except PlatformError as error:
        return str(error.detail)
    try:
        identity = inside(parent.identity, member.name)
        arrived = Arrived(
            staged, name, content_type, parent_id=parent.id, asked_at=asked_at, identity=identity
        )
        arrived = replace(arrived, uploaded_by=parent.uploaded_by)
        await write_kept(platform, _keep, platform, parent, base, arrived, queue)
    except DeletedMeanwhile:
        return "deleted in the meantime"
    except StorageLimit:
        return "no room is left"
    finally:
        staged.discard()
    return None


def _keep(
    unit: Unit, platform: Platform, parent: Document, base: KnowledgeBase, file: Arrived, queue: Queue
) -> None:
    """Keep the file, with the knowledge base and the parent locked until the commit."""
    query = select(KnowledgeBase).where(KnowledgeBase.id == base.id)
    locked_base = unit.session.scalar(query.with_for_update(read=True, key_share=True))
    now: Document | None = unit.session.get(Document, parent.id, with_for_update=True)
    if locked_base is None or now is None or not is_wanted(now, parent.uploaded_at):
        raise Gone
    # Its readers may have changed since the file was opened.
    audience = former_audience(unit.session, now)
    file = replace(file, audience_id=audience, audience_settled=audience is not None)
    document, new = keep_document(unit, platform, locked_base, file)
    if new:
        queue(unit, document)


def _summary(members: list[Member], reasons: list[str | None]) -> Inside | None:
    if not members:
        return None
    left = [
        f"{clean_name(member.name)[-100:]} ({why})"
        for member, why in zip(members, reasons, strict=True)
        if why
    ]
    became = len(members) - len(left)
    text = f"{_some(became, len(members))} became {'a document' if became == 1 else 'documents'}"
    if not left:
        return Inside(text, None)
    names = _listed(left)
    were = "was" if len(left) == 1 else "were"
    return Inside(f"{text}; left out: {names}", f"{_some(len(left), len(members))} {were} left out: {names}.")


def _some(count: int, total: int) -> str:
    return f"{count} of {total} {'file' if total == 1 else 'files'} inside"


def _listed(left: list[str]) -> str:
    """The first names only: an archive may have thousands."""
    count, length = 0, 0
    while count < len(left) and length + len(left[count]) <= _TOLD_CHARS:
        length += len(left[count]) + 2
        count += 1
    more = len(left) - count
    return ", ".join(left[:count]) + (f", and {more} more" if more else "")
