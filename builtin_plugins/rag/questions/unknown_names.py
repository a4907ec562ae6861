"""A name that a question is about and that no document has, of those that are searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import or_, select

from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.answering.subject_names import SubjectName, subject_names
from builtin_plugins.rag.answering.words import fold
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.passages import Passage, RetrievedPassages
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.services.embedding import embed
from builtin_plugins.vectors.api import VECTORS, EngineMismatch, Query


async def unknown_name(inquiry: Inquiry, retrieved: RetrievedPassages) -> str | None:
    """The first name of the question of which no passage and no document's name has a word; None without one,
    and if the index can't tell: of earlier versions, and while documents are read. Raises Unavailable when
    embedding fails.

    Only names that the passages that were found lack are looked for, and none if the best of these is in
    another language, which may spell them otherwise.
    """
    language = await inquiry.language()
    cannot_tell = inquiry.request.as_of is not None or inquiry.documents.early
    if cannot_tell or not retrieved.passages or _is_foreign(language, retrieved[0]):
        return None
    names = subject_names(inquiry.request.question, language)
    passages = [*retrieved.judged, *retrieved.passages] if names else []
    texts = [fold(f"{one.source} {one.text}") for one in passages]
    for name in names:
        if any(fold(word) in text for word in name.words for text in texts):
            continue
        if not await _is_in_titles(inquiry, name) and not await _is_in_passages(
            inquiry, name, retrieved.question
        ):
            return name.text
    return None


def _is_foreign(language: str | None, passage: Passage) -> bool:
    return language is None or passage.language not in (None, language)


async def _is_in_titles(inquiry: Inquiry, name: SubjectName) -> bool:
    filename: Any = Document.filename
    titled = or_(*(filename.icontains(word, autoescape=True) for word in name.words))
    query = select(Document.id).where(inquiry.documents.condition(), titled).limit(1)
    return await inquiry.platform.database.read(lambda session: session.scalar(query)) is not None


async def _is_in_passages(inquiry: Inquiry, name: SubjectName, question: Embedded) -> bool:
    embedded_by_model = {inquiry.bases[0].embedding_model: question}
    for base in inquiry.bases:
        model = base.embedding_model
        if model not in embedded_by_model:
            embedded_by_model[model] = await embed(inquiry.platform, model, [name.text], "query")
        if await _is_in_base(inquiry, base, name.words, embedded_by_model[model]):
            return True
    return False


async def _is_in_base(
    inquiry: Inquiry, base: KnowledgeBase, words: Sequence[str], embedded_name: Embedded
) -> bool:
    """Whether a passage has one of the words; with nothing counted but words, one comes first."""
    query = Query(
        embedded_name.vectors[0],
        1,
        text=" ".join(words),
        groups=inquiry.documents.groups(base.id),
        engine=embedded_name.engine,
        meaning=0.0,
    )
    try:
        hits = await inquiry.platform.resource(VECTORS).search(base.collection, query)
    except EngineMismatch:  # the model is being changed
        return True
    return any(hit.words for hit in hits)
