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


async def create(caller: Caller, wanted: SetCreate) -> SetOut:
    """A new set of a knowledge base that the caller may change. Raises KnowledgeBaseNotFound, NotOwner."""
    sight = await sight_of(caller)

    def write(unit: Unit) -> SetOut:
        sight.require_owner(unit.session, wanted.knowledge_base_id)
        made = QuestionSet(
            id=str(uuid.uuid4()),
            knowledge_base_id=wanted.knowledge_base_id,
            name=wanted.name,
            created_at=utc_now(),
        )
        unit.session.add(made)
        unit.session.flush()
        added = add_rows(unit, made.id, map(_row, wanted.questions))
        return _out(made, added.question_count)

    return await caller.platform.database.write(write)


async def list_page(caller: Caller, query: OfBase) -> Page[SetOut]:
    """The sets that the caller sees, newest first."""
    sight = await sight_of(caller)

    def read(session: Session) -> Page[SetOut]:
        seen = sight.of_base(QuestionSet.knowledge_base_id, query.knowledge_base_id)
        ordered = select(QuestionSet).where(seen).order_by(QuestionSet.created_at.desc(), QuestionSet.id)
        rows = session.scalars(ordered.limit(query.limit).offset(query.offset)).all()
        total = session.scalar(select(func.count()).select_from(QuestionSet).where(seen)) or 0
        counts = _counts(session, sight, [found.id for found in rows])
        items = [_out(found, counts.get(found.id, 0)) for found in rows]
        return Page(items=items, total=total, limit=query.limit, offset=query.offset)

    return await caller.platform.database.read(read)


async def get(caller: Caller, set_id: str) -> SetOut:
    """One set. Raises SetNotFound."""
    sight = await sight_of(caller)

    def read(session: Session) -> SetOut:
        found = sight.set_of(session, set_id)
        return _out(found, _count(session, sight, set_id))

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
        found = unit.session.scalar(
            select(EvaluationQuestion).where(
                EvaluationQuestion.id == question_id, EvaluationQuestion.set_id == set_id, sight.questions
            )
        )
        if found is None:
            raise QuestionNotFound()
        unit.session.delete(found)

    await caller.platform.database.write(write)


async def check_own(caller: Caller, set_id: str) -> None:
    """Refuse before a file is read. Raises SetNotFound, NotOwner."""
    sight = await sight_of(caller)
    await caller.platform.database.read(lambda session: sight.own_set(session, set_id) and None)


async def add(caller: Caller, set_id: str, wanted: Sequence[QuestionIn]) -> Added:
    """Add questions to a set. Raises SetNotFound, NotOwner, Conflict where they are too many."""
    sight = await sight_of(caller)

    def write(unit: Unit) -> Added:
        sight.own_set(unit.session, set_id)
        return add_rows(unit, set_id, map(_row, wanted))

    return await caller.platform.database.write(write)


async def generate(caller: Caller, set_id: str, wanted: Generate) -> Generated:
    """Add questions made from the documents, spread evenly over them. Raises SetNotFound, NotOwner, Conflict.

    Documents deleted meanwhile yield none.
    """
    sight = await sight_of(caller)
    found = await caller.platform.database.read(lambda session: sight.own_set(session, set_id))
    made, degraded = await _made(caller, found.knowledge_base_id, wanted)

    def write(unit: Unit) -> Added:
        base = sight.own_set(unit.session, set_id).knowledge_base_id
        rows = of_kept_documents(caller.platform, unit, base, map(_generated, made))
        return add_rows(unit, set_id, rows)

    added = await caller.platform.database.write(write)
    return Generated(**added.model_dump(), degraded=degraded or None)


async def _made(caller: Caller, base: str, wanted: Generate) -> tuple[list[DraftQuestion], list[str]]:
    """At most `limit` questions, round-robin over the documents; and what went wrong."""
    by_rules: list[list[DraftQuestion]] = []
    texts: list[Sequence[rag.Passage]] = []
    documents = await _documents(caller, base)
    for document in documents:
        passages = await _passages(caller.platform, base, document.document_id)
        make = partial(_first, document, passages, wanted.limit)
        by_rules.append(await asyncio.to_thread(make))
        texts.append(passages)
    made: list[DraftQuestion] = []
    degraded: list[str] = []
    if wanted.with_model:
        ids = [document.document_id for document in documents]
        of_documents = [
            [(one, passage) for passage in passages] for one, passages in zip(ids, texts, strict=True)
        ]
        spread = _by_turns(of_documents)
        made, degraded = await ask_model(caller.platform, wanted.llm_model, spread, wanted.limit)
    asked = {one.passage_id for one in made}
    rest = [one for one in _by_turns(by_rules) if one.passage_id not in asked]
    return [*made, *rest][: wanted.limit], degraded


def _by_turns(lists: Sequence[Sequence[T]]) -> list[T]:
    """The items of the lists, round-robin."""
    return [one for row in zip_longest(*lists) for one in row if one is not None]


def _first(document: rag.DocumentEntry, passages: Sequence[rag.Passage], limit: int) -> list[DraftQuestion]:
    return list(islice(make_questions(document.document_id, document.name, passages), limit))


async def _documents(caller: Caller, base: str) -> list[rag.DocumentEntry]:
    """The first documents of a knowledge base, oldest first."""
    found: list[rag.DocumentEntry] = []
    offset = 0
    while len(found) < _MOST_DOCUMENTS:
        spec = rag.list_documents
        page = await caller.platform.hooks.ask(spec, caller=caller, limit=_PAGE, offset=offset)
        found += [one for one in page or () if one.knowledge_base_id == base]
        if not page or len(page) < _PAGE:
            break
        offset += _PAGE
    return found[:_MOST_DOCUMENTS]


async def _passages(platform: Platform, base: str, document: str) -> Sequence[rag.Passage]:
    found = await platform.hooks.ask(
        rag.read_passages,
        platform=platform,
        knowledge_base_id=base,
        document_id=document,
        limit=_MOST_PASSAGES,
        offset=0,
    )
    return found.passages if found is not None else ()


def _row(wanted: QuestionIn) -> EvaluationQuestion:
    return EvaluationQuestion(**wanted.model_dump(), origin="uploaded")


def _generated(made: DraftQuestion) -> EvaluationQuestion:
    return EvaluationQuestion(
        question=made.question,
        documents=[],
        passages=[made.passage_id],
        answers=list(made.answers),
        unanswerable=False,
        origin="generated",
        document_id=made.document_id,
    )


def add_rows(unit: Unit, set_id: str, rows: Iterable[EvaluationQuestion]) -> Added:
    """Add questions whose text the set doesn't have yet."""
    unit.lock(f"evaluation:{set_id}")
    known = set(
        unit.session.scalars(select(EvaluationQuestion.question).where(EvaluationQuestion.set_id == set_id))
    )
    before = len(known)
    for row in rows:
        if row.question not in known:
            known.add(row.question)
            row.set_id = set_id
            unit.session.add(row)
            unit.session.flush()  # ids in the order of the file
    if len(known) > MOST_QUESTIONS:
        raise Conflict(f"A set has at most {MOST_QUESTIONS} questions")
    return Added(added=len(known) - before, question_count=len(known))


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
