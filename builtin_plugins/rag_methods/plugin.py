"""The plugin of the methods beyond `standard`: hyde, self_rag, corrective, raptor, auto."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from builtin_plugins.rag.api import QueryMethod
from builtin_plugins.rag_methods.auto import AUTO
from builtin_plugins.rag_methods.corrective import CORRECTIVE
from builtin_plugins.rag_methods.decisions import DECISIONS, open_decisions
from builtin_plugins.rag_methods.handlers import routes
from builtin_plugins.rag_methods.hyde import HYDE
from builtin_plugins.rag_methods.raptor import RAPTOR
from builtin_plugins.rag_methods.self_rag import SELF_RAG
from kernel.sdk import Plugin, Resource, RouteTable, hookimpl


class RagMethodsPlugin(Plugin):
    """Methods of answering, registered as any plugin's are."""

    name = "rag_methods"
    version = "0.1.0"
    description = "Methods of answering: hyde, self_rag, corrective, raptor and auto"
    author = "Platform"
    requires = ("rag",)

    @hookimpl
    def register_methods(self) -> Sequence[QueryMethod]:
        return [HYDE, SELF_RAG, CORRECTIVE, RAPTOR, AUTO]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [Resource(DECISIONS, open_decisions)]

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes]
