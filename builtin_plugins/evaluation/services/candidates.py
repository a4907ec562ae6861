"""Rated questions as candidates for a set; a person decides which to add."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.evaluation import api
from builtin_plugins.evaluation.errors import CandidateNotFound
from builtin_plugins.evaluation.models import EvaluationQuestion, QuestionDocument, QuestionSet
from builtin_plugins.evaluation.schemas import Accepted, Added, CandidateOut
from builtin_plugins.evaluation.services.access import EvaluationSight, sight_of
from builtin_plugins.evaluation.services.deletion_guard import of_kept_documents
from builtin_plugins.evaluation.services.sets import add_rows
from kernel.sdk import Caller, Page, PageQuery, Unit, Unprocessable

if TYPE_CHECKING:
    from builtin_plugins.conversations import api as conversations

_MOST = 500


async def list_page(caller: Caller, set_id: str, query: PageQuery) -> Page[CandidateOut]:
    """Candidates that are not yet in the set, the latest first. Raises SetNotFound, NotOwner."""
    candidates = await _candidates(caller, await sight_of(caller), set_id)
    items = candidates[query.offset : query.offset + query.limit]
    return Page(items=items, total=len(candidates), limit=query.limit, offset=query.offset)


async def accept(caller: Caller, set_id: str, request: Accepted) -> Added:
    """Add candidates. Raises SetNotFound, NotOwner, CandidateNotFound, Conflict, Unprocessable."""
    sight = await sight_of(caller)
    candidates = {item.turn_id: item for item in await _candidates(caller, sight, set_id)}
    rows = []
    for at, choice in enumerate(request.candidates):
        candidate = candidates.get(choice.turn_id)
        if candidate is None:
            raise CandidateNotFound(f"There is no candidate {choice.turn_id}")
        passages, made_from = choice.passages, list[str]()
        if not choice.expects:
            if candidate.rating == "down" or not candidate.passages:
                message = "give what is expected: this answer was rated down, or cites nothing"
                raise Unprocessable.field(("body", "candidates", at), message, choice.turn_id)
            passages, made_from = candidate.passages, candidate.documents
        rows.append(
            EvaluationQuestion(
                question=candidate.question,
                documents=choice.documents,
                passages=passages,
                answers=choice.answers,
                unanswerable=choice.unanswerable,
                origin="rated",
                document_id=next(iter(made_from), None),
                others=[QuestionDocument(document_id=other) for other in made_from[1:]],
            )
        )

    def write(unit: Unit) -> Added:
        base = sight.own_set(unit.session, set_id).knowledge_base_id
        return add_rows(unit, set_id, of_kept_documents(caller.platform, unit, base, rows))

    return await caller.platform.database.write(write)


async def _candidates(caller: Caller, sight: EvaluationSight, set_id: str) -> list[CandidateOut]:
    def read(session: Session) -> tuple[QuestionSet, list[str], set[str]]:
        question_set = sight.own_set(session, set_id)
        existing = session.scalars(
            select(EvaluationQuestion.question).where(EvaluationQuestion.set_id == set_id)
        )
        return question_set, sight.pipelines_over(session, question_set.knowledge_base_id), set(existing)

    question_set, pipelines, existing = await caller.platform.database.read(read)
    answers = await caller.platform.hooks.ask(
        api.list_rated_turns, caller=caller, pipeline_ids=pipelines, limit=_MOST
    )
    turns = sorted((turn for turns in answers for turn in turns), key=lambda turn: -turn.id)
    return list(_of_base(turns, question_set.knowledge_base_id, existing))


def _of_base(
    turns: Iterable[conversations.RecordedTurn], base: str, existing: set[str]
) -> Iterable[CandidateOut]:
    """Turns that cite the knowledge base, or nothing at all; the latest for each question."""
    questions = set(existing)
    for turn in turns:
        mine = [one for one in turn.citations if one.knowledge_base_id == base]
        if turn.question in questions or (turn.citations and not mine):
            continue
        mine = [one for one in mine if f"[{one.number}]" in turn.answer]
        questions.add(turn.question)
        yield CandidateOut(
            turn_id=turn.id,
            question=turn.question,
            answer=turn.answer,
            rating="up" if turn.rating == "up" else "down",
            comment=turn.rating_comment,
            passages=list(dict.fromkeys(one.chunk_id for one in mine)),
            documents=list(dict.fromkeys(one.document_id for one in mine)),
            asked_at=turn.asked_at,
        )
