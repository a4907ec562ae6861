"""The plugin for RDF over the graphs of documents: SPARQL, export and import, on the service `graph-rag`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from builtin_plugins.graph_rdf.children import RDF_CHILDREN, open_children
from builtin_plugins.graph_rdf.endpoint import ENDPOINT, check_server, open_endpoint
from builtin_plugins.graph_rdf.handlers import routes
from builtin_plugins.graph_rdf.live import RDF_GRAPHS, open_rdf
from builtin_plugins.graph_rdf.query_slots import QUERY_TURNS, open_turns
from builtin_plugins.graph_rdf.settings import RdfSettings
from kernel.sdk import HealthCheck, Plugin, Resource, RouteTable, hookimpl


class GraphRdfPlugin(Plugin):
    """SPARQL over the graphs that a caller sees, and the graphs as RDF."""

    name = "graph_rdf"
    version = "0.1.0"
    description = "SPARQL over knowledge graphs, and their export and import as RDF"
    author = "Platform"
    requires = ("graph_rag",)
    databases = ("rdf",)

    @hookimpl
    def register_settings(self) -> type[RdfSettings]:
        return RdfSettings

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [
            Resource(RDF_CHILDREN, open_children),
            Resource(QUERY_TURNS, open_turns),
            Resource(RDF_GRAPHS, open_rdf),
            Resource(ENDPOINT, open_endpoint),
        ]

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("sparql_server", check_server, service="graph-rag")]
