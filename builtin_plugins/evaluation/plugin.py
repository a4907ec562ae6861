"""Evaluation of knowledge bases: sets of questions, runs over ways to ask, and what `auto` learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from builtin_plugins.evaluation import hookspecs
from builtin_plugins.evaluation.handlers import runs, sets
from builtin_plugins.evaluation.models import Base
from builtin_plugins.evaluation.services import deleting, exchange
from builtin_plugins.evaluation.services.choosing import choose_measured
from builtin_plugins.evaluation.services.running import RUN
from kernel.sdk import JobRef, Platform, Plugin, RouteTable, Tables, Unit, contracts, hookimpl


class EvaluationPlugin(Plugin):
    """Measures how well questions are answered from a knowledge base."""

    name = "evaluation"
    version = "0.1.0"
    description = "Evaluation sets and runs for knowledge bases"
    author = "Platform"
    requires = ("rag",)

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [hookspecs]

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [sets.routes, runs.routes]

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        return [RUN]

    @hookimpl(optionalhook=True)
    def choose_measured(
        self, session: Session, knowledge_base_id: str, kind: str
    ) -> contracts.MeasuredChoice | None:
        return choose_measured(session, knowledge_base_id, kind)

    @hookimpl(optionalhook=True)
    def remove_derived(
        self, unit: Unit, knowledge_base_id: str, document_id: str | None
    ) -> Sequence[contracts.RemovedPart]:
        return deleting.remove(unit, knowledge_base_id, document_id)

    @hookimpl(optionalhook=True)
    def count_derived(
        self, session: Session, knowledge_base_id: str, document_id: str | None
    ) -> Mapping[str, int]:
        return deleting.count(session, knowledge_base_id, document_id)

    @hookimpl(optionalhook=True)
    def export_derived(self, session: Session, knowledge_base_id: str) -> Mapping[str, Any]:
        return exchange.write_out(session, knowledge_base_id)

    @hookimpl(optionalhook=True)
    def import_derived(
        self,
        platform: Platform,
        unit: Unit,
        knowledge_base_id: str,
        parts: Mapping[str, Any],
        renamed: Mapping[str, str],
    ) -> None:
        exchange.read_in(platform, unit, knowledge_base_id, parts, renamed)
