"""Engines of plugins: chosen by name, and told apart when one is missing."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from builtin_plugins.graph_rag.building.protocol import EntityLink, Extraction, ExtractionEngine
from builtin_plugins.graph_rag.extraction.mentions import Mention
from kernel.sdk import Plugin, hookimpl
from kernel.testing import Start
from tests.builtin_plugins.graph_rag.graph_support import API, call, construct, names


class VerbPlugin(Plugin):
    """An engine that knows one sentence and its grammar."""

    name = "verbs"
    problem: str | None = None

    @hookimpl
    def register_extractors(self) -> Sequence[ExtractionEngine]:
        return [ExtractionEngine("verbs", "3", self._analyse, lambda: self.problem)]

    def _analyse(self, texts: Sequence[str], language: str | None) -> list[Extraction]:
        return [self._found(text) for text in texts]

    def _found(self, text: str) -> Extraction:
        mentions = [Mention(0, 3, text[0:3], "ann", "PERSON"), Mention(9, 12, text[9:12], "bob", "PERSON")]
        return Extraction(mentions, [EntityLink("ann", "greets", "bob", "SVO", 1.0, 0, 12)])


async def test_engine_with_grammar(start_platform: Start) -> None:
    """Its relations are kept as they are, with their verb; the graph walks over them."""
    env = {"PLATFORM_GRAPH_RAG_ENGINE": "verbs"}
    running = await start_platform("graph_rag", VerbPlugin(), env=env)
    ann = await running.user()
    found = await call(ann, "extract", text="Ann sees Bob")
    expected = {"subject": "Ann", "predicate": "greets", "object": "Bob", "type": "SVO"}
    assert found["relationships"] == [expected]
    await construct(ann, "a", "Ann sees Bob")
    related = await call(ann, "retrieve", query="ann")
    assert names(related, "related_entities") == ["Bob"]
    assert related["related_entities"][0]["predicate"] == "greets"


class PlainEngine:
    """An engine as a stranger writes it, from the hook's description alone."""

    name = "plain"
    version = "1"

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def missing(self) -> str | None:
        if self.fault == "missing":
            raise RuntimeError("secret")
        return None

    def analyse(self, texts: Sequence[str], language: str | None) -> list[SimpleNamespace]:
        if self.fault == "raises":
            raise RuntimeError("secret")
        label = "HERO" if self.fault == "label" else "PERSON"
        verb = None if self.fault == "verb" else "sees"
        mentions = [
            (0, 3, "Ann", {"key": 5, "nul": "a\0"}.get(self.fault, ""), label),
            (9, 12, "Eve" if self.fault == "place" else "Bob", "", "PERSON"),
        ]
        found = SimpleNamespace(mentions=mentions, links=[("ann", verb, "bob", "SVO", 1.0, 0, 12)])
        return [] if self.fault == "few" else [found for _ in texts]


class PlainPlugin(Plugin):
    """Offers it."""

    name = "plain"

    def __init__(self, fault: str = "") -> None:
        self.engine = PlainEngine(fault)

    @hookimpl
    def register_extractors(self) -> Sequence[Any]:
        return [self.engine]


@pytest.mark.parametrize("fault", ["", "raises", "label", "place", "few", "key", "nul", "verb", "missing"])
async def test_a_stranger_s_engine(
    start_platform: Start, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    """It needs nothing from this plugin; if it fails or returns nonsense, its own plugin is named."""
    env = {"PLATFORM_GRAPH_RAG_ENGINE": "plain"}
    running = await start_platform("graph_rag", PlainPlugin(fault), env=env)
    ann = await running.user()
    answer = await ann.post(f"{API}/extract", json={"text": "Ann sees Bob"})
    if fault:
        assert answer.status == 503
        assert "the plugin 'plain'" in answer.detail and "secret" not in answer.detail
        assert "the plugin 'plain' failed" in caplog.text
    else:
        expected = {"subject": "Ann", "predicate": "sees", "object": "Bob", "type": "SVO"}
        assert answer.json()["relationships"] == [expected]


async def test_missing_engine(start_platform: Start) -> None:
    """What needs the engine is 503 with the remedy, and so says /health; what is there still answers."""
    plugin = VerbPlugin()
    env = {"PLATFORM_GRAPH_RAG_ENGINE": "verbs"}
    running = await start_platform("graph_rag", plugin, env=env)
    ann = await running.user()
    await construct(ann, "a", "Ann sees Bob")
    plugin.problem = "install the package of verbs"
    for path, body in (("extract", {}), ("construct-graph", {"document_id": "b"})):
        refused = await ann.post(f"{API}/{path}", json={"text": "Ann sees Bob", **body})
        assert refused.status == 503
        assert "install the package of verbs" in refused.detail
    health = (await running.anonymous.get("/health")).json()
    assert "install the package of verbs" in health["checks"]["entity_extractor"]
    assert names(await call(ann, "graph/search", query="ann")) == ["Ann"]


async def test_unknown_engine(start_platform: Start, caplog: pytest.LogCaptureFixture) -> None:
    """The remedy names the setting and the engines that there are; the log has it from the start."""
    running = await start_platform("graph_rag", env={"PLATFORM_GRAPH_RAG_ENGINE": "magic"})
    assert "PLATFORM_GRAPH_RAG_ENGINE" in caplog.text and "model, rules" in caplog.text
    ann = await running.user()
    refused = await ann.post(f"{API}/extract", json={"text": "Ann"})
    assert refused.status == 503
    assert "PLATFORM_GRAPH_RAG_ENGINE" in refused.detail and "model, rules" in refused.detail


async def test_health(start_platform: Start) -> None:
    """The service names its parts as clients know them."""
    running = await start_platform("graph_rag")
    checks = (await running.anonymous.get("/health")).json()["checks"]
    for part in ("entity_extractor", "graph_constructor", "graph_retriever"):
        assert checks[part] == "initialized"
    assert checks["spacy_model"].startswith("en_core_web_sm")
