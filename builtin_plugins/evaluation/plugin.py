"""Evaluation of knowledge bases: sets of questions, runs over ways to ask, and what `auto` learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session

from builtin_plugins.evaluation import api
from builtin_plugins.evaluation.handlers import runs, sets
from builtin_plugins.evaluation.models import Base
from builtin_plugins.evaluation.services import deleting, exchange
from builtin_plugins.evaluation.services.choosing import choose_measured
from builtin_plugins.evaluation.services.running import RUN
from builtin_plugins.rag import api as rag
from kernel.sdk import JobRef, Platform, Plugin, RouteTable, Tables, Unit, hookimpl

if TYPE_CHECKING:
    from typer import Typer


class EvaluationPlugin(Plugin):
    """Measures how well questions are answered from a knowledge base."""

    name = "evaluation"
    version = "0.1.0"
    description = "Evaluation sets and runs for knowledge bases"
    author = "Platform"
    requires = ("inference", "rag")
    after = ("conversations", "rag_exchange")

    @hookimpl
    def register_commands(self) -> Sequence[tuple[str, Typer]]:
        from builtin_plugins.evaluation.commands import COMMANDS  # asked by the terminal alone

        return COMMANDS

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [api]

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [sets.routes, runs.routes]

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        return [RUN]

    @hookimpl
    def choose_measured(
        self, session: Session, knowledge_base_id: str, kind: str
    ) -> rag.MeasuredChoice | None:
        return choose_measured(session, knowledge_base_id, kind)

    @hookimpl
    def remove_derived(
        self, unit: Unit, knowledge_base_id: str, document_id: str | None
    ) -> Sequence[rag.RemovedPart]:
        return deleting.remove(unit, knowledge_base_id, document_id)

    @hookimpl
    def count_derived(
        self, session: Session, knowledge_base_id: str, document_id: str | None
    ) -> Mapping[str, int]:
        return deleting.count(session, knowledge_base_id, document_id)

    @hookimpl(optionalhook=True)
    def export_derived(
        self, platform: Platform, session: Session, knowledge_base_id: str
    ) -> Mapping[str, Any]:
        return exchange.write_out(session, platform, knowledge_base_id)

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
