"""Sample questions whose answers depend only on stored documents, to verify a restored copy."""

from __future__ import annotations

from functools import partial

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag.answering.sentences import split_sentences
from builtin_plugins.rag.filters.binding import bind
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.questions.question import language_of
from builtin_plugins.rag.questions.retrieval import Sought, retrieve
from builtin_plugins.rag.rights.reading import VISITORS
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import Platform, PlatformError

MOST_SAMPLES = 5
_SHORTEST = 20  # characters: shorter sentences occur in many documents


async def sample_answers(platform: Platform) -> dict[str, str]:
    """Implements `find_sample_answers`: searches for a sentence of each of the oldest documents without
    readers of their own, and gives the best passage.

    No model writes the answer. A document whose embedding model does not answer at the moment is left out.
    """
    answers: dict[str, str] = {}
    for base, document_id in await platform.database.read(_oldest):
        question = await _sentence_of(platform, base, document_id)
        if question is None:
            continue
        try:
            language = partial(language_of, platform, question)
            documents = await platform.database.read(bind, VISITORS, [base.id], [])
            best = await retrieve(platform, [base], Sought(question, 1, documents, language=language))
        except PlatformError:
            continue
        # Without the passage's id: equal passages of two documents may swap places.
        answers[question] = best.passages[0].text if best.passages else ""
    return answers


def _oldest(session: Session) -> list[tuple[KnowledgeBase, str]]:
    query = (
        select(KnowledgeBase, Document.id)
        .join(Document, Document.knowledge_base_id == KnowledgeBase.id)
        .where(Document.status == "completed", Document.chunk_count > 0)
        .where(Document.audience_id.is_(None))
        .order_by(Document.uploaded_at, Document.id)
    )
    return [(base, document_id) for base, document_id in session.execute(query.limit(MOST_SAMPLES))]


async def _sentence_of(platform: Platform, base: KnowledgeBase, document_id: str) -> str | None:
    """The longest sentence of the document's first passage: the least likely to occur elsewhere."""
    points, _ = await platform.resource(VECTORS).points(base.collection, document_id, 1, 0)
    sentences = [one.text for point in points for one in split_sentences(point.text) if not one.is_heading]
    return max((text for text in sentences if len(text) >= _SHORTEST), key=len, default=None)
