"""A run, as a job: each question in each configuration, once.

The row of a result is written as soon as its answer is there. A killed worker continues with what is missing;
at most the current question is asked twice, and its row is only written once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.evaluation.models import EvaluationQuestion, Result, Run
from builtin_plugins.evaluation.schemas import Configuration
from builtin_plugins.evaluation.services.choosing import choices
from builtin_plugins.evaluation.services.measures import Expected, measure
from builtin_plugins.evaluation.services.summaries import configurations_of, load
from builtin_plugins.rag import api as rag
from kernel.sdk import (
    ACCOUNT_STATES,
    Caller,
    JobFailed,
    LongJob,
    NotFound,
    Platform,
    Principal,
    Progress,
    Unavailable,
    Unit,
    Unprocessable,
    utc_now,
)

_IN_A_ROW = 3
"""Different questions in a row that a runtime may refuse before it is asked one that it has answered."""
_GONE = "The knowledge base was deleted, or the account that started the run lost access to it"


class RunPayload(BaseModel):
    """The run."""

    run_id: str


async def run(platform: Platform, payload: RunPayload, progress: Progress) -> str | None:
    """Ask what has not been asked yet, then decide for `auto`; returns the run's path."""
    record = await platform.database.read(lambda session: session.get(Run, payload.run_id))
    if record is None:
        return None
    caller = await _caller(platform, record.account_id)
    configurations = configurations_of(record)
    missing, total = await platform.database.read(_missing, record)
    progress.report(total - len(missing), total=total, unit="questions", message="Asking")
    await _ask_all(_Asking(caller, record, configurations, progress), missing)
    results = await platform.database.read(load, record.id)
    decided = await asyncio.to_thread(choices, configurations, results)
    await platform.database.write(_finish, record.id, "done", None, decided)
    return f"/v1/rag/evaluation/runs/{record.id}"


async def _caller(platform: Platform, account_id: int | None) -> Caller:
    """The caller that began the run, with its current rights. Raises JobFailed."""
    if account_id is None:
        return Caller(platform, Principal("service", "service:evaluation"))
    account = await platform.resource(ACCOUNT_STATES).get(account_id)
    if account is None or not account.is_active:
        raise JobFailed("The account that started the run was deleted or deactivated")
    return Caller(platform, account.principal)


def _missing(session: Session, run: Run) -> tuple[list[tuple[int, EvaluationQuestion]], int]:
    """What is left to ask, question by question, so that caches are equally warm for all configurations."""
    questions = session.scalars(
        select(EvaluationQuestion)
        .where(EvaluationQuestion.set_id == run.set_id, EvaluationQuestion.id <= run.last_question)
        .order_by(EvaluationQuestion.id)
    ).all()
    columns = (Result.configuration, Result.question_id)
    rows = session.execute(select(*columns).where(Result.run_id == run.id))
    there = {(row.configuration, row.question_id) for row in rows}
    pairs = [(at, one) for one in questions for at in range(len(run.configurations))]
    return [(at, one) for at, one in pairs if (at, one.id) not in there], len(pairs)


async def _ask_all(asking: _Asking, missing: Sequence[tuple[int, EvaluationQuestion]]) -> None:
    """Ask and store. Questions that a runtime refuses are asked again after the others, and then count as
    failed.

    Raises JobFailed; Unavailable if the runtime is gone, so that the job is retried.
    """
    behind, refused = list[tuple[int, EvaluationQuestion]](), set[int]()
    for at, question in missing:
        if question.id in refused:
            behind.append((at, question))
            continue
        answered, values = await asking.ask(at, question)
        if not answered.unavailable:
            refused.clear()
            await asking.store(at, question, values)
            continue
        behind.append((at, question))
        refused.add(question.id)
        if len(refused) == _IN_A_ROW:
            await asking.check_runtime(at, answered)
            refused.clear()
    for at, question in behind:
        answered, values = await asking.ask(at, question)
        if answered.unavailable:
            await asking.check_runtime(at, answered)
        await asking.store(at, question, values)


class _Asking:
    """A run's questions, asked of its knowledge base."""

    def __init__(
        self, caller: Caller, run: Run, configurations: Sequence[Configuration], progress: Progress
    ) -> None:
        self._caller = caller
        self._run = run
        self._configurations = configurations
        self._progress = progress

    async def ask(self, at: int, question: EvaluationQuestion) -> tuple[rag.MeasuredAnswer, dict[str, Any]]:
        """An answer, and the values of its result. Raises JobFailed; Unavailable if nothing can be asked."""
        started, configuration = time.perf_counter(), self._configurations[at]
        try:
            answered = await self._caller.platform.hooks.ask(
                rag.ask_knowledge_base,
                caller=self._caller,
                knowledge_base_id=self._run.knowledge_base_id,
                question=question.question,
                configuration=configuration.ask_configuration,
                metadata_filter=configuration.metadata_filter,
            )
        except NotFound:
            raise JobFailed(_GONE) from None
        except Unprocessable as error:
            raise JobFailed(f"{configuration.label}: {error}") from None
        if answered is None:
            raise JobFailed("No active plugin answers from knowledge bases")
        milliseconds = (time.perf_counter() - started) * 1000
        expected = Expected(question.documents, question.passages, question.answers, question.unanswerable)
        values = {"kind": answered.kind, "failure": answered.failed}
        return answered, {**values, **measure(expected, answered, milliseconds)}

    async def store(self, at: int, question: EvaluationQuestion, values: dict[str, Any]) -> None:
        """Write a result."""
        await self._caller.platform.database.write(_store, self._run.id, at, question.id, values)
        self._progress.advance()

    async def check_runtime(self, at: int, refused: rag.MeasuredAnswer) -> None:
        """Check that the runtime works, with a question that it has answered. Raises Unavailable if not."""
        read = self._caller.platform.database.read
        witness = await read(_answered, self._run.id, at, refused.model_calls)
        if witness is None or (await self.ask(*witness))[0].unavailable:
            raise Unavailable(refused.failed)


def _answered(session: Session, run_id: str, at: int, calls: int) -> tuple[int, EvaluationQuestion] | None:
    """The cheapest answered question of a run (with model calls if `calls`), and its configuration.

    One of the same configuration is preferred.
    """
    row = session.execute(
        select(Result.configuration, EvaluationQuestion)
        .join(EvaluationQuestion, EvaluationQuestion.id == Result.question_id)
        .where(Result.run_id == run_id, Result.failed == 0, Result.model_calls >= min(1, calls))
        .order_by(Result.configuration != at, Result.model_calls, Result.question_id)
        .limit(1)
    ).one_or_none()
    return None if row is None else (row.configuration, row.EvaluationQuestion)


def _store(unit: Unit, run_id: str, at: int, question_id: int, values: dict[str, Any]) -> None:
    """Write a result once, unless its question or run was deleted meanwhile."""
    unit.lock(f"evaluation:{run_id}")
    key = {"run_id": run_id, "configuration": at, "question_id": question_id}
    gone = unit.session.get(EvaluationQuestion, question_id, with_for_update={"read": True}) is None
    gone = gone or unit.session.get(Run, run_id, with_for_update={"read": True}) is None
    if not gone and unit.session.get(Result, tuple(key.values())) is None:
        unit.session.add(Result(**key, **values))


def _finish(unit: Unit, run_id: str, status: str, error: str | None, decided: Any) -> None:
    record = unit.session.get(Run, run_id, with_for_update=True)
    if record is not None:
        record.status, record.error, record.choices = status, error, decided
        record.finished_at = utc_now()


async def give_up(platform: Platform, payload: RunPayload, reason: str) -> None:
    """Record in the run that the job was given up. Results are kept."""
    await platform.database.write(_finish, payload.run_id, "failed", reason, None)


async def cancelled(platform: Platform, payload: RunPayload) -> None:
    """Record in the run that the job was cancelled."""
    await platform.database.write(_finish, payload.run_id, "failed", "The run was cancelled", None)


RUN = LongJob(
    "evaluation.run",
    RunPayload,
    run,
    title="Evaluate a knowledge base",
    on_give_up=give_up,
    on_cancel=cancelled,
    retries=10,
    lane="large",
)
