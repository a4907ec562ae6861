"""The documents that a question is about, for a plugin that answers what they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api
from builtin_plugins.rag.answering.matching import asked_words, quotable
from builtin_plugins.rag.answering.quotations import QuotablePassage
from builtin_plugins.rag.models import SUPERSEDED, Document
from builtin_plugins.rag.passages import CitedVersion
from builtin_plugins.rag.questions.question import Question, in_thread
from builtin_plugins.rag.questions.reporting import passage_of
from builtin_plugins.vectors.api import VECTORS

_LONGEST_KIND = 8
_SHELVED: Sequence[Any] = (
    *(Document.id, Document.knowledge_base_id, Document.filename),
    *(Document.uploaded_at, Document.version, Document.sha256),
)
"""The columns of an `api.ShelvedDocument`."""


class QuestionShelf:
    """The completed documents of a question's knowledge bases, as its filter leaves them."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._bases = {base.id: base for base in question.bases}

    @property
    def is_filtered(self) -> bool:
        """See `api.DocumentShelf.is_filtered`."""
        return self._question.documents.is_filter

    async def kinds(self) -> Counter[str]:
        """See `api.DocumentShelf.kinds`."""
        columns = (
            Document.content_type,
            func.count().label("number"),
            func.min(Document.filename).label("name"),
        )
        counted = Counter[str]()
        for row in await self._rows(select(*columns).group_by(Document.content_type)):
            counted[_kind_of(row.name, row.content_type)] += row.number
        return counted

    async def latest(self, limit: int) -> Sequence[api.ShelvedDocument]:
        """See `api.DocumentShelf.latest`."""
        newest = select(*_SHELVED).order_by(Document.uploaded_at.desc(), Document.id).limit(limit)
        return [api.ShelvedDocument(*row) for row in await self._rows(newest)]

    async def opening(self, document: api.ShelvedDocument, limit: int) -> Sequence[QuotablePassage]:
        """See `api.DocumentShelf.opening`."""
        question, base = self._question, self._bases[document.knowledge_base_id]
        vectors = question.platform.resource(VECTORS)
        points, _ = await vectors.points(base.collection, document.document_id, limit, 0)
        if not points and question.request.as_of is not None:
            points, _ = await vectors.points(base.earlier_collection, document.document_id, limit, 0)
        version = CitedVersion(document.version, document.sha256, document.uploaded_at)
        passages = [passage_of(one, base.id, document.name, 1.0, 0.0, version=version) for one in points]
        question_words = asked_words(question.text, await question.language())
        return await in_thread(question.platform, quotable, question_words, passages)

    def _has_answered(self) -> ColumnElement[bool]:
        """Whether a version answers, or, as of an earlier time, once did."""
        if self._question.request.as_of is None:
            return Document.status == "completed"
        return Document.status.in_(("completed", SUPERSEDED))

    async def _rows(self, query: Select[*tuple[Any, ...]]) -> Sequence[Any]:
        """The rows of a query over the documents that the question is about."""
        question = self._question
        query = query.where(Document.knowledge_base_id.in_(self._bases), self._has_answered())
        query = query.where(question.documents.condition())
        return await question.platform.database.read(_all, query)


def _all(session: Session, query: Select[*tuple[Any, ...]]) -> Sequence[Any]:
    return session.execute(query).all()


def _kind_of(name: str, content_type: str) -> str:
    ending = PurePath(name).suffix.lstrip(".").casefold()
    return ending if 0 < len(ending) <= _LONGEST_KIND else content_type.rpartition("/")[2]
