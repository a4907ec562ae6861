"""The engine that sees grammar: who does what to whom."""

from __future__ import annotations

from kernel.testing import Start
from tests.builtin_plugins.graph_rag.graph_support import API, call, construct, names


async def test_subject_verb_object(start_platform: Start) -> None:
    """Relations carry their verb and lead through the graph; labels are those of the pipeline."""
    running = await start_platform("graph_rag", env={"PLATFORM_GRAPH_RAG_ENGINE": "spacy"})
    ann = await running.user()
    text = "Google bought YouTube in 2006. Larry Page worked at Google."
    found = await call(ann, "extract", text=text)
    related = {
        (one["subject"], one["predicate"], one["object"], one["type"]) for one in found["relationships"]
    }
    assert ("Google", "buy", "YouTube", "SVO") in related
    assert ("Larry Page", "work at", "Google", "SVO") in related
    assert {one["label"] for one in found["entities"]} >= {"PERSON", "ORG", "DATE"}
    for one in found["entities"]:
        assert text[one["start"] : one["end"]] == one["text"]
    await construct(ann, "a", text)
    near = await call(ann, "retrieve", query="larry page", traversal_depth=2)
    assert names(near, "related_entities")[0] == "Google" and "YouTube" in names(near, "related_entities")


async def test_missing_pipeline(start_platform: Start) -> None:
    """The remedy names the extra and the setting."""
    env = {"PLATFORM_GRAPH_RAG_ENGINE": "spacy", "SPACY_MODEL": "no_such_pipeline"}
    running = await start_platform("graph_rag", env=env)
    ann = await running.user()
    refused = await ann.post(f"{API}/extract", json={"text": "Ann"})
    assert refused.status == 503
    assert "graph-spacy" in refused.detail and "SPACY_MODEL" in refused.detail
