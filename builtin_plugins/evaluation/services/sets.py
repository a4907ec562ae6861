"""Sets: create, fill, list, delete."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice, zip_longest
from typing import TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.evaluation.errors import QuestionNotFound
from builtin_plugins.evaluation.models import EvaluationQuestion, QuestionSet
from builtin_plugins.evaluation.schemas import (
    MOST_QUESTIONS,
    Added,
    Generate,
    Generated,
    OfBase,
    QuestionIn,
    QuestionOut,
    SetCreate,
    SetOut,
)
from builtin_plugins.evaluation.services.access import EvaluationSight, sight_of
from builtin_plugins.evaluation.services.deletion_guard import of_kept_documents
from builtin_plugins.evaluation.services.generated_questions import ask_model
from builtin_plugins.evaluation.services.generating import DraftQuestion, make_questions
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, Conflict, Page, PageQuery, Platform, Unit, utc_now

T = TypeVar("T")

_PAGE = 500
_MOST_DOCUMENTS = 200
_MOST_PASSAGES = 2000  # per document


async def create(caller: Caller, request: SetCreate) -> SetOut:
    """A new set of a knowledge base that the caller may change. Raises KnowledgeBaseNotFound, NotOwner."""
    sight = await sight_of(caller)

    def write(unit: Unit) -> SetOut:
        sight.require_owner(unit.session, request.knowledge_base_id)
        question_set = QuestionSet(
            id=str(uuid.uuid4()),
            knowledge_base_id=request.knowledge_base_id,
            name=request.name,
            created_at=utc_now(),
        )
        unit.session.add(question_set)
        unit.session.flush()
        added = add_rows(unit, question_set.id, map(_row, request.questions))
        return _out(question_set, added.question_count)

    return await caller.platform.database.write(write)


async def list_page(caller: Caller, query: OfBase) -> Page[SetOut]:
    """The sets that the caller sees, newest first."""
    sight = await sight_of(caller)

    def read(session: Session) -> Page[SetOut]:
        visible = sight.of_base(QuestionSet.knowledge_base_id, query.knowledge_base_id)
        ordered = select(QuestionSet).where(visible).order_by(QuestionSet.created_at.desc(), QuestionSet.id)
        rows = session.scalars(ordered.limit(query.limit).offset(query.offset)).all()
        total = session.scalar(select(func.count()).select_from(QuestionSet).where(visible)) or 0
        counts = _counts(session, sight, [question_set.id for question_set in rows])
        items = [_out(question_set, counts.get(question_set.id, 0)) for question_set in rows]
        return Page(items=items, total=total, limit=query.limit, offset=query.offset)

    return await caller.platform.database.read(read)


async def get(caller: Caller, set_id: str) -> SetOut:
    """One set. Raises SetNotFound."""
    sight = await sight_of(caller)

    def read(session: Session) -> SetOut:
        question_set = sight.set_of(session, set_id)
        return _out(question_set, _count(session, sight, set_id))

    return await caller.platform.database.read(read)


async def remove(caller: Caller, set_id: str) -> None:
    """Delete a set with its runs. Raises SetNotFound, NotOwner."""
    sight = await sight_of(caller)
    await caller.platform.database.write(
        lambda unit: unit.session.delete(sight.own_set(unit.session, set_id))
    )


async def questions(caller: Caller, set_id: str, query: PageQuery) -> Page[QuestionOut]:
    """Questions of a set in their order. Raises SetNotFound."""
    sight = await sight_of(caller)

    def read(session: Session) -> Page[QuestionOut]:
        sight.set_of(session, set_id)
        ordered = (
            select(EvaluationQuestion)
            .where(EvaluationQuestion.set_id == set_id, sight.questions)
            .order_by(EvaluationQuestion.id)
        )
        rows = session.scalars(ordered.limit(query.limit).offset(query.offset))
        items = [QuestionOut.model_validate(row) for row in rows]
        total = _count(session, sight, set_id)
        return Page(items=items, total=total, limit=query.limit, offset=query.offset)

    return await caller.platform.database.read(read)


async def remove_question(caller: Caller, set_id: str, question_id: int) -> None:
    """Delete a question with its results. Raises SetNotFound, NotOwner, QuestionNotFound."""
    sight = await sight_of(caller)

    def write(unit: Unit) -> None:
        sight.own_set(unit.session, set_id)
        question = unit.session.scalar(
            select(EvaluationQuestion).where(
                EvaluationQuestion.id == question_id, EvaluationQuestion.set_id == set_id, sight.questions
            )
        )
        if question is None:
            raise QuestionNotFound()
        unit.session.delete(question)

    await caller.platform.database.write(write)


async def check_own(caller: Caller, set_id: str) -> None:
    """Refuse before a file is read. Raises SetNotFound, NotOwner."""
    sight = await sight_of(caller)
    await caller.platform.database.read(lambda session: sight.own_set(session, set_id) and None)


async def add(caller: Caller, set_id: str, entries: Sequence[QuestionIn]) -> Added:
    """Add questions to a set. Raises SetNotFound, NotOwner, Conflict where they are too many."""
    sight = await sight_of(caller)

    def write(unit: Unit) -> Added:
        sight.own_set(unit.session, set_id)
        return add_rows(unit, set_id, map(_row, entries))

    return await caller.platform.database.write(write)


async def generate(caller: Caller, set_id: str, request: Generate) -> Generated:
    """Add questions made from the documents, spread evenly over them. Raises SetNotFound, NotOwner, Conflict.

    Documents deleted meanwhile yield none.
    """
    sight = await sight_of(caller)
    question_set = await caller.platform.database.read(lambda session: sight.own_set(session, set_id))
    drafts, degraded = await _draft_questions(caller, question_set.knowledge_base_id, request)

    def write(unit: Unit) -> Added:
        base = sight.own_set(unit.session, set_id).knowledge_base_id
        rows = of_kept_documents(caller.platform, unit, base, map(_generated, drafts))
        return add_rows(unit, set_id, rows)

    added = await caller.platform.database.write(write)
    return Generated(**added.model_dump(), degraded=degraded or None)


async def _draft_questions(
    caller: Caller, base: str, request: Generate
) -> tuple[list[DraftQuestion], list[str]]:
    """At most `limit` questions, round-robin over the documents; and what went wrong."""
    by_rules: list[list[DraftQuestion]] = []
    texts: list[Sequence[rag.Passage]] = []
    documents = await _documents(caller, base)
    for document in documents:
        passages = await _passages(caller.platform, base, document.document_id)
        make = partial(_first, document, passages, request.limit)
        by_rules.append(await asyncio.to_thread(make))
        texts.append(passages)
    drafts: list[DraftQuestion] = []
    degraded: list[str] = []
    if request.with_model:
        ids = [document.document_id for document in documents]
        of_documents = [
            [(one, passage) for passage in passages] for one, passages in zip(ids, texts, strict=True)
        ]
        spread = _by_turns(of_documents)
        drafts, degraded = await ask_model(caller.platform, request.llm_model, spread, request.limit)
    passage_ids = {one.passage_id for one in drafts}
    rest = [one for one in _by_turns(by_rules) if one.passage_id not in passage_ids]
    return [*drafts, *rest][: request.limit], degraded


def _by_turns(lists: Sequence[Sequence[T]]) -> list[T]:
    """The items of the lists, round-robin."""
    return [one for row in zip_longest(*lists) for one in row if one is not None]


def _first(document: rag.DocumentEntry, passages: Sequence[rag.Passage], limit: int) -> list[DraftQuestion]:
    return list(islice(make_questions(document.document_id, document.name, passages), limit))


async def _documents(caller: Caller, base: str) -> list[rag.DocumentEntry]:
    """The first documents of a knowledge base, oldest first."""
    documents: list[rag.DocumentEntry] = []
    offset = 0
    while len(documents) < _MOST_DOCUMENTS:
        spec = rag.list_documents
        page = await caller.platform.hooks.ask(spec, caller=caller, limit=_PAGE, offset=offset)
        documents += [one for one in page or () if one.knowledge_base_id == base]
        if not page or len(page) < _PAGE:
            break
        offset += _PAGE
    return documents[:_MOST_DOCUMENTS]


async def _passages(platform: Platform, base: str, document: str) -> Sequence[rag.Passage]:
    part = await platform.hooks.ask(
        rag.read_passages,
        platform=platform,
        knowledge_base_id=base,
        document_id=document,
        limit=_MOST_PASSAGES,
        offset=0,
    )
    return part.passages if part is not None else ()


def _row(question: QuestionIn) -> EvaluationQuestion:
    return EvaluationQuestion(**question.model_dump(), origin="uploaded")


def _generated(draft: DraftQuestion) -> EvaluationQuestion:
    return EvaluationQuestion(
        question=draft.question,
        documents=[],
        passages=[draft.passage_id],
        answers=list(draft.answers),
        unanswerable=False,
        origin="generated",
        document_id=draft.document_id,
    )


def add_rows(unit: Unit, set_id: str, rows: Iterable[EvaluationQuestion]) -> Added:
    """Add questions whose text the set doesn't have yet."""
    unit.lock(f"evaluation:{set_id}")
    texts = set(
        unit.session.scalars(select(EvaluationQuestion.question).where(EvaluationQuestion.set_id == set_id))
    )
    before = len(texts)
    for row in rows:
        if row.question not in texts:
            texts.add(row.question)
            row.set_id = set_id
            unit.session.add(row)
            unit.session.flush()  # ids in the order of the file
    if len(texts) > MOST_QUESTIONS:
        raise Conflict(f"A set has at most {MOST_QUESTIONS} questions")
    return Added(added=len(texts) - before, question_count=len(texts))


def _count(session: Session, sight: EvaluationSight, set_id: str) -> int:
    return _counts(session, sight, [set_id]).get(set_id, 0)


def _counts(session: Session, sight: EvaluationSight, ids: Sequence[str]) -> dict[str, int]:
    """How many visible questions these sets have; sets without any are left out."""
    query = (
        select(EvaluationQuestion.set_id, func.count())
        .where(EvaluationQuestion.set_id.in_(ids), sight.questions)
        .group_by(EvaluationQuestion.set_id)
    )
    return dict(session.execute(query).all())


def _out(question_set: QuestionSet, count: int) -> SetOut:
    return SetOut(
        id=question_set.id,
        knowledge_base_id=question_set.knowledge_base_id,
        name=question_set.name,
        question_count=count,
        created_at=question_set.created_at,
    )
