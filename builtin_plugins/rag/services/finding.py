"""Documents by their names in all knowledge bases, and headings of the latest ones to ask about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.documents.api import ends_sentence
from builtin_plugins.rag.answering.headings import MARKED, body_of, is_question
from builtin_plugins.rag.answering.sentences import Sentence, split_sentences
from builtin_plugins.rag.filters.matching import has_part
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.questions.question import in_thread
from builtin_plugins.rag.rights.reading import readable, reading_scope
from builtin_plugins.rag.schemas_finding import HeadingTopic, NamedDocument
from builtin_plugins.rag.services import loading
from builtin_plugins.rag.services.identities import CURRENT
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import Caller, Scope, scope_of

_LATEST: Final = 6
"""Documents whose beginnings are read for topics."""
_PASSAGES: Final = 8
"""Passages of each that are read."""
_SHORTEST, _LONGEST = 4, 70
_FILENAME: Any = Document.__table__.c.filename


async def find_by_name(caller: Caller, text: str, limit: int) -> list[NamedDocument]:
    """The latest documents that the caller may read and whose names have all words of a text."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_documents_by_name, scope, text.split(), limit)


def _documents_by_name(
    session: Session, scope: Scope, words: Sequence[str], limit: int
) -> list[NamedDocument]:
    query = (
        select(
            Document.id.label("document_id"),
            Document.filename,
            KnowledgeBase.id.label("knowledge_base_id"),
            KnowledgeBase.name.label("knowledge_base_name"),
        )
        .join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
        .where(scope.sees(KnowledgeBase), readable(scope), CURRENT)
        .where(*(has_part(_FILENAME, "contains", word) for word in words))
        .order_by(Document.uploaded_at.desc(), Document.id)
        .limit(limit)
    )
    return [NamedDocument(**row) for row in session.execute(query).mappings()]


async def list_topics(caller: Caller, kb_id: str, limit: int) -> list[HeadingTopic]:
    """Headings of the latest documents of a knowledge base, in turn one of each.

    Raises KnowledgeBaseNotFound.
    """
    base = await loading.knowledge_base(caller, kb_id)
    scope = await reading_scope(caller)
    vectors = caller.platform.resource(VECTORS)
    topics: list[list[HeadingTopic]] = []
    for document_id, filename in await caller.platform.database.read(_latest, scope, kb_id):
        points, _ = await vectors.points(base.collection, document_id, _PASSAGES, 0)
        headings = await in_thread(caller.platform, _headings, [one.text for one in points])
        topics.append(list(_topics(document_id, filename, headings)))
    return [one for one in chain(*zip_longest(*topics)) if one is not None][:limit]


def _latest(session: Session, scope: Scope, kb_id: str) -> Sequence[Any]:
    mine = (Document.knowledge_base_id == kb_id) & (Document.status == "completed") & readable(scope)
    query = select(Document.id, Document.filename).where(mine, Document.chunk_count > 0)
    return session.execute(query.order_by(Document.uploaded_at.desc(), Document.id).limit(_LATEST)).all()


def _headings(texts: Sequence[str]) -> list[tuple[str, bool]]:
    """What reads as a heading, each once, and whether it is the title, which everything else is below."""
    sentences = [sentence for text in texts for sentence in split_sentences(text)]
    titles = {
        body_of(one.text).strip(): at == 0
        for at, (one, below) in reversed(list(enumerate(zip_longest(sentences, sentences[1:]))))
        if one.is_heading and _reads_as_heading(one.text, below)
    }
    return list(reversed(titles.items()))


def _reads_as_heading(line: str, below: Sentence | None) -> bool:
    """Whether a line is marked or a question, or names what the prose below is about.

    "Payable within 14 days" and "Kind regards" stand by themselves, too.
    """
    heading = body_of(line).strip()
    if not _SHORTEST <= len(heading) <= _LONGEST or sum(map(str.isalpha, heading)) * 2 <= len(heading):
        return False
    if MARKED.match(line) or is_question(heading):
        return True
    is_name = not heading[0].islower() and not any(map(str.isdigit, heading)) and "@" not in heading
    return is_name and below is not None and not below.is_heading and ends_sentence(below.text)


def _topics(document_id: str, filename: str, headings: Sequence[tuple[str, bool]]) -> Iterable[HeadingTopic]:
    """What stands below the title says more to ask about than the title, which comes last."""
    for heading, is_title in sorted(headings, key=itemgetter(1)):
        yield HeadingTopic(
            document_id=document_id,
            filename=filename,
            heading=heading,
            is_title=is_title,
            is_question=is_question(heading),
        )
