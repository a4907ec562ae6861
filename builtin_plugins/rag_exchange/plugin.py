"""The plugin that carries knowledge bases from one platform to another, on the service `rag-pipeline`."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.rag_exchange import api
from builtin_plugins.rag_exchange.handlers import routes
from builtin_plugins.rag_exchange.importing import IMPORT
from builtin_plugins.rag_exchange.settings import RagExchangeSettings
from kernel.sdk import JobRef, Plugin, RouteTable, hookimpl


class RagExchangePlugin(Plugin):
    """A knowledge base as one file."""

    name = "rag_exchange"
    version = "0.1.0"
    description = "Export and import of knowledge bases, each as one file"
    author = "Platform"
    requires = ("documents", "inference", "rag", "vectors")

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [api]

    @hookimpl
    def register_settings(self) -> type[RagExchangeSettings]:
        return RagExchangeSettings

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        return [IMPORT]

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes]
