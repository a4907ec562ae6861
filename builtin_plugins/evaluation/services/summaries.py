"""Summarizes results of a run: means with intervals, and two runs side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, select, true
from sqlalchemy.orm import Session

from builtin_plugins.evaluation.models import EvaluationQuestion, Result, Run
from builtin_plugins.evaluation.schemas import Configuration, Difference, Measure, Summary
from builtin_plugins.evaluation.services.measures import MEASURES, usual_name
from builtin_plugins.evaluation.services.statistics import intervals, paired_p

Values = Mapping[str, float | None]
ByQuestion = Mapping[str, Values]
_TEXTS = ("kind", "failure")


def load(
    session: Session, run_id: str, questions: ColumnElement[bool] | None = None
) -> dict[int, dict[str, dict[str, Any]]]:
    """Results by configuration and question text (unique in a set, but comparable between sets): the
    measures, `kind`, and `failure`. `questions` limits them.
    """
    columns = [getattr(Result, name) for name in ("configuration", *_TEXTS, *MEASURES)]
    query = (
        select(EvaluationQuestion.question, *columns)
        .join(EvaluationQuestion, EvaluationQuestion.id == Result.question_id)
        .where(Result.run_id == run_id, true() if questions is None else questions)
        .order_by(Result.question_id)
    )
    results: dict[int, dict[str, dict[str, Any]]] = {}
    for row in session.execute(query).mappings():
        values = {name: row[name] for name in (*_TEXTS, *MEASURES)}
        results.setdefault(row["configuration"], {})[row["question"]] = values
    return results


def configurations_of(run: Run) -> list[Configuration]:
    """The run's configurations."""
    return [Configuration.model_validate(one) for one in run.configurations]


def summarize(
    configurations: Sequence[Configuration], results: Mapping[int, Mapping[str, Mapping[str, Any]]]
) -> list[Summary]:
    """A summary for each configuration. Takes a moment: call it in a thread."""
    tables = [list(results.get(at, {}).values()) for at in range(len(configurations))]
    return [
        Summary(
            configuration=one,
            label=one.label,
            asked=len(rows),
            measures=measures,
            failures=Counter(row["failure"] for row in rows if row["failure"]),
        )
        for one, rows, measures in zip(configurations, tables, _measures(tables), strict=True)
    ]


def _measures(tables: Sequence[Sequence[Values]]) -> list[dict[str, Measure]]:
    measures: list[dict[str, Measure]] = [{} for _ in tables]
    columns = {(at, name): _column(rows, name) for at, rows in enumerate(tables) for name in MEASURES}
    columns = {place: values for place, values in columns.items() if values}
    for ((at, name), values), (low, high) in zip(columns.items(), intervals(columns.values()), strict=True):
        mean = sum(values) / len(values)
        measures[at][usual_name(name)] = Measure(
            mean=_short(mean), low=_short(low), high=_short(high), questions=len(values)
        )
    return measures


def _column(rows: Sequence[Values], name: str) -> list[float]:
    return [value for row in rows if (value := row[name]) is not None]


def differences(now: ByQuestion, before: ByQuestion) -> dict[str, Difference]:
    """The change of each measure, over the questions that both have."""
    both = sorted(now.keys() & before.keys())
    columns = {name: _changes([(now[one][name], before[one][name]) for one in both]) for name in MEASURES}
    columns = {name: changes for name, changes in columns.items() if changes}
    return {
        usual_name(name): Difference(
            difference=_short(sum(changes) / len(changes)),
            low=_short(low),
            high=_short(high),
            p=_short(paired_p(changes)),
            questions=len(changes),
        )
        for (name, changes), (low, high) in zip(columns.items(), intervals(columns.values()), strict=True)
    }


def _changes(pairs: Sequence[tuple[float | None, float | None]]) -> list[float]:
    return [mine - theirs for mine, theirs in pairs if mine is not None and theirs is not None]


def _short(value: float) -> float:
    return round(value, 4)
