"""The available engines, and the one in use."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from kernel.sdk import Platform, ResourceKey, Unavailable

from .. import api
from ..settings import GraphSettings
from .grammar import GrammarEngine
from .model_engine import ModelEngine
from .plugin_engines import offered as checked
from .protocol import ExtractionEngine
from .rule_engine import rules

log = logging.getLogger("platform.graph_rag")


class Engines:
    """Engines by name. Raises Unavailable if the chosen one can't work."""

    def __init__(self, name: str, offered: Iterable[ExtractionEngine]) -> None:
        self._choice = name
        self._by_name = {engine.name: engine for engine in (rules(), *offered)}

    def chosen(self) -> ExtractionEngine:
        """The operator's choice of engine."""
        problem = self.problem()
        if problem is not None:
            raise Unavailable(f"Entities can't be extracted: {problem}")
        return self._by_name[self._choice]

    def problem(self) -> str | None:
        """Why the chosen engine can't work, as a remedy."""
        return self.unknown() or self._by_name[self._choice].missing()

    def unknown(self) -> str | None:
        """The remedy if there is no such engine."""
        if self._choice in self._by_name:
            return None
        names = ", ".join(sorted(self._by_name))
        return f"there is no engine '{self._choice}'; PLATFORM_GRAPH_RAG_ENGINE can be {names}"

    @property
    def name(self) -> str:
        """The name of the chosen engine."""
        return self._choice


def identity(extractor: ExtractionEngine) -> str:
    """How a graph records the engine that made it."""
    return f"{extractor.name}/{extractor.version}"[:64]


@asynccontextmanager
async def open_engines(platform: Platform) -> AsyncIterator[Engines]:
    """The engines of this process. If the chosen one doesn't exist, the log says so at the start."""
    offered = platform.hooks.ask_now(api.register_extractors)
    settings = platform.settings_of(GraphSettings)
    others = (checked(plugin, engine) for plugin, engines in offered for engine in engines)
    shipped = (GrammarEngine(settings.spacy_model), ModelEngine(platform, settings.llm_model))
    engines = Engines(settings.engine, (*(engine.extractor() for engine in shipped), *others))
    if (unknown := engines.unknown()) is not None:
        log.warning("entities can't be extracted: %s", unknown)
    yield engines


ENGINES: ResourceKey[Engines] = ResourceKey("graph-rag engines")
