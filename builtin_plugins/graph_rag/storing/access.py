"""Which graphs a caller sees, as a condition of the query itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, exists, or_, select

from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, Scope, scope_of

from ..models import Graph


@dataclass(frozen=True)
class GraphSight:
    """What a caller sees: the graphs it constructed, and those of the knowledge bases it sees."""

    subject: str
    documents: Select[str] | None

    @property
    def condition(self) -> ColumnElement[bool]:
        """A condition for queries over `Graph`."""
        own: ColumnElement[bool] = Graph.maker == self.subject
        if self.documents is None:
            return own
        return or_(own, and_(Graph.maker == "", Graph.document_id.in_(self.documents)))

    @property
    def graphs(self) -> Select[int]:
        """The ids of these graphs, for use inside other queries."""
        return select(Graph.id).where(self.condition)

    def sees(self, graph_id: Any) -> ColumnElement[bool]:
        """The same as `graph_id.in_(graphs)`, for queries by name.

        With `in_`, SQLite searches for each name in each graph: millions of searches for thousands of graphs.
        """
        return exists().where(Graph.id == graph_id, self.condition)


async def sight_of(caller: Caller) -> GraphSight:
    """What the caller sees now."""
    scope = await scope_of(caller.platform, caller.principal)
    return GraphSight(caller.principal.subject, _documents(caller, scope))


def _documents(caller: Caller, scope: Scope) -> Select[str] | None:
    spec, platform = rag.select_graph_documents, caller.platform
    return platform.hooks.ask_now(spec, platform=platform, scope=scope)
