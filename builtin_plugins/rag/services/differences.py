"""The difference of two versions of a document: the sentences of its passages that only one of them has."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest
from typing import Final, Literal, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag.answering.sentences import split_sentences
from builtin_plugins.rag.errors import DocumentNotFound, NothingToCompare
from builtin_plugins.rag.metadata.people import names_of
from builtin_plugins.rag.models import SUPERSEDED, Document, KnowledgeBase
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.rag.schemas_differences import (
    ComparedVersion,
    DifferenceQuery,
    PassagePart,
    Uploader,
    VersionChange,
    VersionDifference,
)
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.identities import plugin_in
from builtin_plugins.vectors.api import VECTORS, StoredPoint
from kernel.sdk import Caller, PayloadTooLarge, Platform, Scope, scope_of

_LONGEST: Final = 1_000_000
"""Characters of one version that are compared: about 400 pages."""
_PAGE: Final = 500


class _Sentence(NamedTuple):
    """What is compared, and where it is in a text: from `start` to `end`, in characters."""

    text: str
    start: int
    end: int


class _Placed(NamedTuple):
    """From where on in a text a passage is the one, and where that is in the document."""

    start: int
    offset: int
    passage: StoredPoint


class _Text:
    """A version's text without the overlaps of its passages, in sentences."""

    def __init__(self, passages: Sequence[StoredPoint]) -> None:
        self._places: list[_Placed] = []
        self._text, end = "", 0
        for passage in passages:
            start, stop = passage.payload["char_start"], passage.payload["char_end"]
            self._text += "\n" * (start > end and bool(self._text))
            self._places.append(_Placed(len(self._text), max(start, end), passage))
            self._text += passage.text[max(0, end - start) :]
            end = max(end, stop)
        self._starts = [place.start for place in self._places]
        sentences = split_sentences(self._text)
        ends = [*(one.start for one in sentences[1:]), len(self._text)]
        self.sentences = [_Sentence(one.text, one.start, at) for one, at in zip(sentences, ends, strict=True)]

    def parts(self, first: int, last: int) -> list[PassagePart]:
        """The sentences from `first` up to `last`, by the passage where each begins."""
        grouped = groupby(self.sentences[first:last], key=self._at)
        return [self._part(self._places[at], list(some)) for at, some in grouped]

    def _at(self, sentence: _Sentence) -> int:
        return bisect_right(self._starts, sentence.start) - 1

    def _part(self, place: _Placed, some: Sequence[_Sentence]) -> PassagePart:
        start = some[0].start
        text = self._text[start : some[-1].end].rstrip()
        char_start = place.offset + start - place.start
        return PassagePart(
            chunk_id=place.passage.id,
            chunk_index=place.passage.position,
            text=text,
            page=place.passage.payload.get("page"),
            char_start=char_start,
            char_end=char_start + len(text),
        )


async def compare(caller: Caller, kb_id: str, document_id: str, query: DifferenceQuery) -> VersionDifference:
    """Where two versions of a document differ, from the earlier to the later one.

    Raises KnowledgeBaseNotFound, DocumentNotFound, also if the other is not a version of it,
    NothingToCompare, PayloadTooLarge.
    """
    scope = await scope_of(caller.platform, caller.principal)
    pair = await caller.platform.database.read(_pair, scope, kb_id, document_id, query.against)
    earlier, later = [await _passages(caller.platform, one) for one in pair]
    changes = await asyncio.to_thread(changes_between, earlier, later)
    names = await names_of(caller, [one.uploaded_by for one in pair if one.uploaded_by is not None])
    return VersionDifference(
        earlier=_compared_version(pair[0], names),
        later=_compared_version(pair[1], names),
        items=changes[query.offset : query.offset + query.limit],
        total=len(changes),
        limit=query.limit,
        offset=query.offset,
    )


def _pair(
    session: Session, scope: Scope, kb_id: str, document_id: str, against: str | None
) -> tuple[Document, Document]:
    """The two versions, the earlier one first, both of which the caller may read."""
    knowledge_bases.find(session, scope, kb_id)
    readable_here = select(Document).where(Document.knowledge_base_id == kb_id, readable(scope))
    document: Document | None = session.scalar(readable_here.where(Document.id == document_id))
    if document is None:
        raise DocumentNotFound()
    of_it = readable_here.where(Document.identity == document.identity, Document.id != document.id)
    versions = session.scalars(of_it.order_by(Document.version.desc())).all()
    if against is None:
        other = next((one for one in versions if one.version < document.version and _was_read(one)), None)
    else:
        other = next((one for one in versions if one.id == against), None)
        if other is None:
            raise DocumentNotFound()
    if other is None or not (_was_read(document) and _was_read(other)):
        raise NothingToCompare()
    return (other, document) if other.version < document.version else (document, other)


def _was_read(document: Document) -> bool:
    return document.status in ("completed", SUPERSEDED) and document.chunk_count > 0


async def _passages(platform: Platform, document: Document) -> list[StoredPoint]:
    """A version's passages in order, also if it is replaced meanwhile."""
    base = KnowledgeBase(id=document.knowledge_base_id)
    current, earlier = base.collection, base.earlier_collection
    for collection in (earlier, current) if document.status == SUPERSEDED else (current, earlier):
        if passages := await _stored(platform, collection, document.id):
            return passages
    raise DocumentNotFound()


async def _stored(platform: Platform, collection: str, document_id: str) -> list[StoredPoint]:
    passages: list[StoredPoint] = []
    length, total = 0, 1
    while len(passages) < total:
        page, total = await platform.resource(VECTORS).points(collection, document_id, _PAGE, len(passages))
        if not page:
            break
        passages += page
        length += sum(len(one.text) for one in page)
        if length > _LONGEST:
            raise PayloadTooLarge(
                "The versions are too long to be compared here; download both and compare the files"
            )
    return passages


def _compared_version(document: Document, names: Mapping[int, str]) -> ComparedVersion:
    uploader = document.uploaded_by or 0
    return ComparedVersion(
        document_id=document.id,
        version=document.version,
        filename=document.filename,
        sha256=document.sha256,
        uploaded_at=document.uploaded_at,
        uploaded_by=Uploader(id=uploader, username=names[uploader]) if uploader in names else None,
        kept_by=plugin_in(document.identity),
    )


def changes_between(earlier: Sequence[StoredPoint], later: Sequence[StoredPoint]) -> list[VersionChange]:
    """Where two texts differ, each given by its passages in order; no item is longer than a passage."""
    old, new = _Text(earlier), _Text(later)
    return [change for run in _runs(old, new) for change in _paired(old, new, run)]


def _runs(old: _Text, new: _Text) -> Iterator[tuple[int, int, int, int]]:
    """The first and the last sentences, exclusive, of what differs in both texts."""
    one, other = ([each.text for each in text.sentences] for text in (old, new))
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    matcher = SequenceMatcher(None, one[same:], other[same:])
    for tag, first, last, new_first, new_last in matcher.get_opcodes():
        if tag != "equal":
            yield same + first, same + last, same + new_first, same + new_last


def _paired(old: _Text, new: _Text, run: tuple[int, int, int, int]) -> Iterator[VersionChange]:
    for one, other in zip_longest(old.parts(*run[:2]), new.parts(*run[2:])):
        kind: Literal["added", "removed", "changed"] = "changed"
        if one is None or other is None:
            kind = "added" if one is None else "removed"
        yield VersionChange(kind=kind, earlier=one, later=other)
