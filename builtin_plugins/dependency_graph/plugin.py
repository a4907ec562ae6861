"""The dependency graph, on the service `marketplace`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api as plugin_registry
from kernel.sdk import Platform, Plugin, Resource, RouteTable, Tables, hookimpl

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
    requires = ("plugin_registry",)
    after = ("marketplace",)

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[LiveGraph]]:
        return [Resource(GRAPH, open_graph)]

    @hookimpl
    def find_requirements(
        self, platform: Platform, session: Session, plugin_id: str
    ) -> Sequence[plugin_registry.RequiredPlugin]:
        return closure(platform, session, plugin_id, backwards=False)

    @hookimpl
    def find_dependents(
        self, platform: Platform, session: Session, plugin_id: str
    ) -> Sequence[plugin_registry.RequiredPlugin]:
        return closure(platform, session, plugin_id, backwards=True)

    @hookimpl
    def judge_dependencies(
        self, platform: Platform, session: Session, plugin_id: str
    ) -> plugin_registry.DependencyVerdict:
        return judge(platform, session, plugin_id)
