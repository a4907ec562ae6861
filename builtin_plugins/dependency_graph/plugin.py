"""The dependency graph, on the service `marketplace`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy.orm import Session

from kernel.sdk import Platform, Plugin, Resource, RouteTable, Tables, contracts, hookimpl

from .handlers import routes
from .live import GRAPH, LiveGraph, judge, open_graph
from .models import Base
from .services.edges import closure


class DependencyGraphPlugin(Plugin):
    """What requires, suggests and conflicts with what."""

    name = "dependency_graph"
    version = "0.1.0"
    description = "Dependencies and conflicts of plugins, with explanations and recommendations"
    author = "Platform"
    after = ("marketplace",)
    databases = ("rdf",)

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[LiveGraph]]:
        return [Resource(GRAPH, _open)]

    @hookimpl
    def find_requirements(
        self, platform: Platform, session: Session, plugin_id: str
    ) -> Sequence[contracts.Dependency]:
        return closure(platform, session, plugin_id, backwards=False)

    @hookimpl
    def find_dependents(
        self, platform: Platform, session: Session, plugin_id: str
    ) -> Sequence[contracts.Dependency]:
        return closure(platform, session, plugin_id, backwards=True)

    @hookimpl
    def judge_dependencies(
        self, platform: Platform, session: Session, plugin_id: str
    ) -> contracts.DependencyVerdict:
        return judge(platform, session, plugin_id)


@asynccontextmanager
async def _open(platform: Platform) -> AsyncIterator[LiveGraph]:
    async with open_graph(platform, platform.settings.home / "dependency_graph") as graph:
        yield graph
