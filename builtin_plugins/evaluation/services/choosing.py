"""What `auto` does after a run: the cheapest configuration that is not significantly worse than the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.evaluation.models import Run
from builtin_plugins.evaluation.schemas import Configuration
from builtin_plugins.evaluation.services.statistics import paired_p
from builtin_plugins.evaluation.services.summaries import ByQuestion
from builtin_plugins.rag import api as rag

FEWEST = 10  # questions per kind
EVERY = "every"
_SIGNIFICANT = 0.05


def choices(
    configurations: Sequence[Configuration], results: Mapping[int, Mapping[str, Mapping[str, Any]]]
) -> dict[str, Any]:
    """What to do, by kind of question and for `EVERY` kind; kinds with too few questions are left out, as are
    configurations that ask only some of the documents.
    """
    able = {
        at: results[at]
        for at, one in enumerate(configurations)
        if one.method != "auto" and one.metadata_filter is None and at in results
    }
    kinds = {row["kind"] for rows in able.values() for row in rows.values()}
    by_kind = {}
    for kind in (*sorted(kinds), EVERY):
        of_kind = {at: _of_kind(rows, kind) for at, rows in able.items()}
        chosen = _choose(of_kind)
        if chosen is not None:
            best = configurations[chosen.pop("best")].label
            cheapest = configurations[chosen.pop("taken")]
            by_kind[kind] = {
                "configuration": asdict(cheapest.ask_configuration),
                "taken": cheapest.label,
                "best": best,
                **chosen,
            }
    return by_kind


def _of_kind(rows: Mapping[str, Mapping[str, Any]], kind: str) -> dict[str, Mapping[str, Any]]:
    return {one: row for one, row in rows.items() if kind in (EVERY, row["kind"])}


def _choose(results: Mapping[int, ByQuestion]) -> dict[str, Any] | None:
    """The positions of the chosen and the best configuration, with their figures."""
    questions = [set(rows) for rows in results.values()]
    common = sorted(set.intersection(*questions)) if questions else []
    if len(common) < FEWEST:
        return None
    quality = {at: [_value(rows[one], "quality") for one in common] for at, rows in results.items()}
    best = max(quality, key=lambda at: (sum(quality[at]), -at))
    p = {
        at: paired_p([mine - theirs for mine, theirs in zip(values, quality[best], strict=True)])
        for at, values in quality.items()
    }
    good = [at for at in results if p[at] >= _SIGNIFICANT]
    cheapest = min(good, key=lambda at: _cost(results[at], common))
    return {
        "taken": cheapest,
        "best": best,
        "questions": len(common),
        "quality": round(sum(quality[cheapest]) / len(common), 4),
        "best_quality": round(sum(quality[best]) / len(common), 4),
        "p": round(p[cheapest], 4),
    }


def _cost(rows: ByQuestion, common: Sequence[str]) -> tuple[float, ...]:
    """Model calls, tokens and time, in this order of importance."""
    names = ("model_calls", "tokens", "latency_ms")
    return tuple(sum(_value(rows[one], name) for one in common) for name in names)


def _value(row: Mapping[str, float | None], name: str) -> float:
    return row[name] or 0.0


def choose_measured(session: Session, base: str, kind: str) -> rag.MeasuredChoice | None:
    """The choice of a knowledge base's last finished run for questions of this kind, else for every kind."""
    query = (
        select(Run.id, Run.choices)
        .where(Run.knowledge_base_id == base, Run.status == "done")
        .order_by(Run.finished_at.desc(), Run.id)
        .limit(1)
    )
    run = session.execute(query).one_or_none()
    if run is None or not run.choices:
        return None
    which = kind if kind in run.choices else EVERY
    choice = run.choices.get(which)
    if choice is None:
        return None
    evidence = {name: value for name, value in choice.items() if name != "configuration"}
    configuration = rag.AskConfiguration(**choice["configuration"])
    return rag.MeasuredChoice(configuration, {"run_id": run.id, "kind": which, **evidence})
