"""Runs: begin, list, show, compare, delete."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.evaluation.errors import NothingToAsk
from builtin_plugins.evaluation.models import EvaluationQuestion, Result, Run
from builtin_plugins.evaluation.schemas import (
    CompareQuery,
    Comparison,
    Configuration,
    OfBase,
    ResultOut,
    ResultQuery,
    RunCreate,
    RunDetail,
    RunOut,
    Worse,
)
from builtin_plugins.evaluation.services.access import EvaluationSight, sight_of
from builtin_plugins.evaluation.services.measures import MEASURES, usual_name
from builtin_plugins.evaluation.services.running import RUN, RunPayload
from builtin_plugins.evaluation.services.summaries import (
    ByQuestion,
    configurations_of,
    differences,
    load,
    summarize,
)
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, Page, Platform, Unit, Unprocessable, utc_now

_MOST_WORSE = 50


async def create(caller: Caller, request: RunCreate) -> RunOut:
    """Begin a run. Raises SetNotFound, NotOwner, NothingToAsk, Unprocessable for an unknown method."""
    _check_methods(caller.platform, request.configurations)
    sight = await sight_of(caller)

    def write(unit: Unit) -> RunOut:
        question_set = sight.own_set(unit.session, request.set_id)
        last = unit.session.scalar(
            select(func.max(EvaluationQuestion.id)).where(EvaluationQuestion.set_id == question_set.id)
        )
        if last is None:
            raise NothingToAsk()
        run = Run(
            id=str(uuid.uuid4()),
            set_id=question_set.id,
            knowledge_base_id=question_set.knowledge_base_id,
            account_id=caller.id,
            configurations=[one.model_dump() for one in request.configurations],
            last_question=last,
            status="running",
            created_at=utc_now(),
        )
        payload = RunPayload(run_id=run.id)
        run.job_id = unit.enqueue(RUN, payload, owner_id=caller.id, subject=run.id)
        unit.session.add(run)
        unit.session.flush()
        return _out(unit.session, sight, run)

    return await caller.platform.database.write(write)


def _check_methods(platform: Platform, configurations: list[Configuration]) -> None:
    methods = platform.hooks.ask_now(rag.list_methods, platform=platform) or ()
    for at, configuration in enumerate(configurations):
        if configuration.method not in methods:
            place = ("body", "configurations", at, "method")
            raise Unprocessable.field(place, f"must be one of {', '.join(methods)}", configuration.method)


async def list_page(caller: Caller, query: OfBase) -> Page[RunOut]:
    """The runs that the caller sees, newest first."""
    sight = await sight_of(caller)

    def read(session: Session) -> Page[RunOut]:
        visible = sight.of_base(Run.knowledge_base_id, query.knowledge_base_id)
        ordered = select(Run).where(visible).order_by(Run.created_at.desc(), Run.id)
        rows = session.scalars(ordered.limit(query.limit).offset(query.offset)).all()
        total = session.scalar(select(func.count()).select_from(Run).where(visible)) or 0
        return Page(items=_outs(session, sight, rows), total=total, limit=query.limit, offset=query.offset)

    return await caller.platform.database.read(read)


async def get(caller: Caller, run_id: str) -> RunDetail:
    """A run with its measures. Raises RunNotFound."""
    sight = await sight_of(caller)

    def read(session: Session) -> tuple[RunOut, Run, dict[int, dict[str, dict[str, Any]]]]:
        run = sight.run_of(session, run_id)
        return _out(session, sight, run), run, load(session, run_id, sight.questions)

    out, run, results = await caller.platform.database.read(read)
    summaries = await asyncio.to_thread(summarize, configurations_of(run), results)
    return RunDetail(**out.model_dump(), summaries=summaries, choices=run.choices)


async def results(caller: Caller, run_id: str, query: ResultQuery) -> Page[ResultOut]:
    """The results of one configuration, the worst first. Raises RunNotFound."""
    sight = await sight_of(caller)

    def read(session: Session) -> Page[ResultOut]:
        sight.run_of(session, run_id)
        of = (Result.run_id == run_id) & (Result.configuration == query.configuration)
        columns = [getattr(Result, name) for name in ("question_id", "kind", "failure", *MEASURES)]
        ordered = (
            select(EvaluationQuestion.question, *columns)
            .join(EvaluationQuestion, EvaluationQuestion.id == Result.question_id)
            .where(of, sight.questions)
            .order_by(Result.quality, Result.question_id)
        )
        rows = session.execute(ordered.limit(query.limit).offset(query.offset)).mappings()
        items = [
            ResultOut(
                question_id=row["question_id"],
                question=row["question"],
                kind=row["kind"],
                values=_values(row),
                failure=row["failure"],
            )
            for row in rows
        ]
        readable = select(EvaluationQuestion.id).where(sight.questions)
        counted = select(func.count()).select_from(Result).where(of, Result.question_id.in_(readable))
        total = session.scalar(counted) or 0
        return Page(items=items, total=total, limit=query.limit, offset=query.offset)

    return await caller.platform.database.read(read)


async def remove(caller: Caller, run_id: str) -> None:
    """Delete a run with its results; a running one stops. Raises RunNotFound, NotOwner."""
    sight = await sight_of(caller)
    await caller.platform.database.write(
        lambda unit: unit.session.delete(sight.own_run(unit.session, run_id))
    )


async def compare(caller: Caller, run_id: str, query: CompareQuery) -> Comparison:
    """Two configurations of two runs. Raises RunNotFound, Unprocessable."""
    sight = await sight_of(caller)

    def read(session: Session) -> tuple[Configuration, Configuration, ByQuestion, ByQuestion]:
        mine, theirs = sight.run_of(session, run_id), sight.run_of(session, query.other)
        now, before = (load(session, run.id, sight.questions) for run in (mine, theirs))
        return (
            _at(mine, query.configuration, "configuration"),
            _at(theirs, query.other_configuration, "other_configuration"),
            now.get(query.configuration, {}),
            before.get(query.other_configuration, {}),
        )

    configuration, other, now, before = await caller.platform.database.read(read)
    return Comparison(
        configuration=configuration,
        other_configuration=other,
        differences=await asyncio.to_thread(differences, now, before),
        worse=_worse(now, before),
    )


def _at(run: Run, position: int, field: str) -> Configuration:
    listed = configurations_of(run)
    if position >= len(listed):
        message = f"the run has {len(listed)} configurations, counted from 0"
        raise Unprocessable.field(("query", field), message, position)
    return listed[position]


def _worse(now: ByQuestion, before: ByQuestion) -> list[Worse]:
    def fall(question: str) -> float:
        return (before[question]["quality"] or 0.0) - (now[question]["quality"] or 0.0)

    fallen = [question for question in now.keys() & before.keys() if fall(question) > 0]
    return [
        Worse(question=question, before=_values(before[question]), now=_values(now[question]))
        for question in sorted(fallen, key=lambda question: (-fall(question), question))[:_MOST_WORSE]
    ]


def _values(row: Any) -> dict[str, float | None]:
    return {usual_name(name): row[name] for name in MEASURES}


def _out(session: Session, sight: EvaluationSight, run: Run) -> RunOut:
    return _outs(session, sight, [run])[0]


def _outs(session: Session, sight: EvaluationSight, runs: Sequence[Run]) -> list[RunOut]:
    ids = [run.id for run in runs]
    results = (
        select(Result.run_id, func.count())
        .join(EvaluationQuestion, EvaluationQuestion.id == Result.question_id)
        .where(Result.run_id.in_(ids), sight.questions)
        .group_by(Result.run_id)
    )
    of_set = (EvaluationQuestion.set_id == Run.set_id) & (EvaluationQuestion.id <= Run.last_question)
    questions = (
        select(Run.id, func.count())
        .join(EvaluationQuestion, of_set)
        .where(Run.id.in_(ids), sight.questions)
        .group_by(Run.id)
    )
    done = dict(session.execute(results).all())
    question_counts = dict(session.execute(questions).all())
    return [
        RunOut(
            id=run.id,
            set_id=run.set_id,
            knowledge_base_id=run.knowledge_base_id,
            status=run.status,
            error=run.error,
            job_id=run.job_id,
            done=done.get(run.id, 0),
            total=question_counts.get(run.id, 0) * len(run.configurations),
            created_at=run.created_at,
            finished_at=run.finished_at,
        )
        for run in runs
    ]
