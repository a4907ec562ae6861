"""The period of a question at work: it limits the documents, picks the newest, and gives way if that leaves
nothing to answer from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import String, bindparam, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.dates.period_filters import label_of, period_filter
from builtin_plugins.rag.dates.question_periods import QuestionPeriod, period_in
from builtin_plugins.rag.dates.validity import VALID_FROM, VALID_UNTIL
from builtin_plugins.rag.filters.binding import BoundFilter, FilterSource, bind, parse_filter
from builtin_plugins.rag.models import MetadataValue
from builtin_plugins.rag.passages import Passage, RetrievedPassages
from builtin_plugins.rag.questions.limiting import LimitingPeriod
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.questions.support import is_supported
from builtin_plugins.rag.schemas_time import PeriodItem
from kernel.sdk import Prepared, utc_now
from kernel.sdk.storage import Among, Ids

_CONTENDER: Final = 0.6
"""A document whose best passage has this share of the best score may be meant by "the newest"."""
_MOST_TRIES: Final = 3
_VALUE: Any = MetadataValue.__table__
_DATES: Final = Prepared(
    select(_VALUE.c.document_id, _VALUE.c.field, _VALUE.c.number).where(
        Among(_VALUE.c.document_id, bindparam("documents", type_=Ids(String))),
        Among(_VALUE.c.field, bindparam("fields", type_=Ids(String))),
    )
)


async def limit_by_period(inquiry: Inquiry) -> None:
    """Limit a question's documents to those of its period, where knowledge bases say when theirs are."""
    request, database = inquiry.request, inquiry.platform.database
    if not request.use_period or inquiry.period is not None:
        return
    dated = await database.read(_with_validity, inquiry.documents)
    if not dated and all(base.date_field is None for base in inquiry.bases):
        return
    today = (request.as_of or utc_now()).date()
    period = await asyncio.to_thread(period_in, request.question, today)
    if period is None:
        return
    limits = await database.read(_bound, inquiry, dated, period)
    if limits is None:
        return
    documents, item, date_fields = limits
    otherwise = inquiry.documents
    inquiry.documents = otherwise.narrowed(documents)
    inquiry.period = LimitingPeriod(period, inquiry.documents, otherwise, item, date_fields)
    inquiry.trace.details["period"] = item.model_dump(mode="json")


def _bound(
    session: Session, inquiry: Inquiry, dated: Set[str], period: QuestionPeriod
) -> tuple[BoundFilter, PeriodItem, list[str]] | None:
    """The filter of a period, how it is shown, and the date fields; None where no document has a date."""
    by_field: dict[str | None, list[str]] = {}
    for base in inquiry.bases:
        if base.id in dated or (base.date_field is not None and (period.kind != "current" or period.newest)):
            by_field.setdefault(base.date_field, []).append(base.id)
    if not by_field:
        return None
    filters = {field: period_filter(period, field) for field in by_field}
    sources = [
        FilterSource(parse_filter(filters[field], ()), fields_gone=True, base_ids=frozenset(ids))
        for field, ids in by_field.items()
    ]
    variants = list(filters.values())
    item = PeriodItem(
        kind=period.kind,
        newest=period.newest,
        words=period.words,
        first=period.start,
        before=period.end,
        label=label_of(period),
        filter=variants[0] if all(one == variants[0] for one in variants) else None,
    )
    documents = bind(session, inquiry.documents.reader, [base.id for base in inquiry.bases], sources)
    return documents, item, [one for one in by_field if one]


def _with_validity(session: Session, documents: BoundFilter) -> set[str]:
    """The knowledge bases where some document that may be read says when it applies."""
    base_ids = set[str]()
    for base_id in documents.conditions:
        for field in (VALID_FROM, VALID_UNTIL):
            mine = (MetadataValue.knowledge_base_id == base_id) & (MetadataValue.field == field)
            if base_id in documents.guarded:
                mine &= MetadataValue.document_id.in_(documents.readable_in(base_id))
            if session.scalar(select(MetadataValue.document_id).where(mine).limit(1)) is not None:
                base_ids.add(base_id)
    return base_ids


Search = Callable[[], Awaitable[RetrievedPassages]]


async def within_period(inquiry: Inquiry, search: Search) -> RetrievedPassages:
    """What a search finds in the period, of the newest documents if these are meant; if that answers nothing
    and all documents do, what it finds in these, which is noted. `search` looks in the inquiry's documents.
    """
    retrieved, limiting = await search(), inquiry.period
    if limiting is None or inquiry.documents is not limiting.documents:
        return retrieved
    answering = await _answering(inquiry, retrieved, limiting)
    if answering is not None:
        return await _of_newest(inquiry, answering, limiting) if limiting.period.newest else answering
    inquiry.documents = limiting.otherwise
    answering = await _answering(inquiry, await search(), limiting)
    if answering is None:
        inquiry.documents = limiting.documents
        return retrieved
    limiting.item.applied = False
    inquiry.trace.details["period"] = limiting.item.model_dump(mode="json")
    inquiry.trace.degrade(f"period: no answer in {limiting.item.label}; all documents were searched")
    return answering


async def _answering(
    inquiry: Inquiry, retrieved: RetrievedPassages, limiting: LimitingPeriod
) -> RetrievedPassages | None:
    """The passages, if they answer the question; if they do without the words of its period, those of
    documents with a date, which need not name the year themselves. None if they don't answer it.
    """
    if retrieved.passages and await is_supported(inquiry, _judged(retrieved)):
        return retrieved
    words = limiting.period.words
    days = await days_of(inquiry, retrieved.passages, (VALID_UNTIL, *limiting.date_fields)) if words else {}
    dated = replace(
        retrieved, passages=[one for one in retrieved.passages if one.document_id in days], first=()
    )
    if words is None or not dated.passages:
        return None
    inquiry.matched = inquiry.request.question.replace(words, " ", 1)
    if await is_supported(inquiry, _judged(dated)):
        return dated
    inquiry.matched = None
    return None


def _judged(retrieved: RetrievedPassages) -> RetrievedPassages:
    return replace(retrieved, first=retrieved.judged)


async def _of_newest(
    inquiry: Inquiry, retrieved: RetrievedPassages, limiting: LimitingPeriod
) -> RetrievedPassages:
    """Without the passages of older documents, where a newer one answers, too."""
    days = await days_of(inquiry, retrieved.passages, limiting.date_fields)
    best = max(one.score for one in retrieved.passages)
    contending = {days[one.document_id] for one in retrieved.passages if _contends(one, best, days)}
    for newest in sorted(contending, reverse=True)[:_MOST_TRIES]:
        passages = [one for one in retrieved.passages if days.get(one.document_id, newest) >= newest]
        if len(passages) == len(retrieved.passages):
            return retrieved
        left = replace(retrieved, passages=passages, first=())
        if await is_supported(inquiry, _judged(left)):
            return left
    return retrieved


def _contends(passage: Passage, best: float, days: Mapping[str, float]) -> bool:
    return passage.document_id in days and passage.score >= best * _CONTENDER


async def days_of(
    inquiry: Inquiry, passages: Sequence[Passage], date_fields: Sequence[str]
) -> Mapping[str, float]:
    """The date of each passage's document, in seconds since 1970: from when it applies, else its own."""
    binds = {"documents": list({one.document_id for one in passages}), "fields": [VALID_FROM, *date_fields]}
    rows = await inquiry.platform.database.read(_DATES.all, binds)
    days: dict[str, float] = {}
    for row in sorted(rows, key=lambda row: row["field"] == VALID_FROM):
        if row["number"] is not None:
            days[row["document_id"]] = row["number"]
    return days
