"""The plugin that answers Dify, for which a knowledge base is an external one."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.dify_knowledge.handlers import routes
from kernel.sdk import Plugin, RouteTable, hookimpl


class DifyKnowledgePlugin(Plugin):
    """Knowledge bases as Dify's external knowledge, on the service `rag-pipeline`."""

    name = "dify_knowledge"
    version = "0.1.0"
    description = "Knowledge bases as external knowledge of Dify"
    author = "Platform"
    requires = ("rag",)

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes]
