"""Dify's external knowledge: its requests as it sends them, its errors as it shows them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from kernel.testing import Actor, Reply, Running
from tests.builtin_plugins.rag.rag_support import HANDBOOK, NOWHERE, ingest, make_base, path_of, somebody
from tests.fakes.kept import Kept
from tests.fakes.protocols import with_protocols

pytestmark = pytest.mark.asyncio(loop_scope="session")

RETRIEVAL = "/v1/rag/dify/retrieval"
QUERY = "How much may a hotel cost per night?"


@dataclass
class Connected:
    """A knowledge base with two documents, asked as Dify does."""

    ann: Actor
    base: str

    async def retrieve(
        self, actor: Actor | None = None, headers: Mapping[str, str] | None = None, **fields: Any
    ) -> Reply:
        setting = {"top_k": 3, "score_threshold": 0.0}
        body = {"knowledge_id": self.base, "query": QUERY, "retrieval_setting": setting, **fields}
        return await (actor or self.ann).post(RETRIEVAL, json=body, headers=headers or {})


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def running(kept: Kept) -> AsyncIterator[Running]:
    yield await with_protocols(kept)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def connected(running: Running) -> Connected:
    ann = await somebody(running)
    base = await make_base(ann)
    for name, year in (("handbook.md", 2025), ("rules.md", 2026)):
        document = await ingest(running, ann, base, name, HANDBOOK.replace("130", str(year - 1900)))
        await ann.put(f"/v1/rag/knowledge-bases/{base}/fields/year", json={"kind": "number"})
        values = {"year": year}
        answer = await ann.patch(path_of(base, document["document_id"], "/metadata"), json=values)
        assert answer.status == 200, answer.body
    return Connected(ann, base)


async def test_records(connected: Connected) -> None:
    answer = await connected.retrieve()
    assert answer.status == 200, answer.body
    first = answer.json()["records"][0]
    assert first["title"] in ("handbook.md", "rules.md") and "hotel" in first["content"]
    assert 0 < first["score"] <= 1 and first["metadata"]["knowledge_base_id"] == connected.base


async def test_weaker_passages_than_the_threshold_are_left_out(connected: Connected) -> None:
    records = (await connected.retrieve()).json()["records"]
    least = records[0]["score"]
    kept = await connected.retrieve(retrieval_setting={"top_k": 3, "score_threshold": least})
    assert [one["score"] for one in kept.json()["records"]] == [
        one["score"] for one in records if one["score"] >= least
    ]


async def test_a_condition_leaves_matching_documents(connected: Connected) -> None:
    condition = {"name": ["year"], "comparison_operator": "≥", "value": "2026"}
    answer = await connected.retrieve(
        metadata_condition={"logical_operator": "and", "conditions": [condition]}
    )
    assert {one["title"] for one in answer.json()["records"]} == {"rules.md"}


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 401, 1001),
        ({"Authorization": "Basic eDp5"}, 401, 1001),
        ({"Authorization": "Bearer plk_x"}, 401, 1002),
    ],
)
async def test_who_is_unknown(
    running: Running, connected: Connected, headers: dict[str, str], status: int, code: int
) -> None:
    answer = await connected.retrieve(running.anonymous, headers=headers)
    assert (answer.status, answer.json()["error_code"]) == (status, code)


async def test_knowledge_that_is_not_there_or_not_theirs(running: Running, connected: Connected) -> None:
    missing = await connected.retrieve(knowledge_id=NOWHERE)
    theirs = await connected.retrieve(await somebody(running))
    assert missing.status == theirs.status == 404
    assert missing.json() == theirs.json() and missing.json()["error_code"] == 2001


def _condition(name: Any, operator: str, value: Any) -> dict[str, Any]:
    condition = {"name": name, "comparison_operator": operator, "value": value}
    return {"metadata_condition": {"logical_operator": None, "conditions": [condition]}}


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"query": " "}, "query"),
        ({"retrieval_setting": {"top_k": 0}}, "retrieval_setting.top_k"),
        (_condition("no", "is", "x"), "metadata_condition.conditions.0.name"),
        (_condition("n" * 65, "is", "x"), "metadata_condition.conditions.0.name"),
        (_condition("title", "is", None), "metadata_condition.conditions.0"),
        (_condition("title", "is", "x" * 513), "metadata_condition.conditions.0.value"),
        (_condition("size_bytes", "=", "9" * 5000), "metadata_condition.conditions.0.value"),
        (_condition(["title"] * 65, "is", "x"), "metadata_condition"),
        (_condition("year", "~", 1), "metadata_condition.conditions.0.comparison_operator"),
    ],
)
async def test_wrong_requests_name_the_field(
    connected: Connected, fields: dict[str, Any], names: str
) -> None:
    answer = await connected.retrieve(**fields)
    assert answer.status == 422 and answer.json()["error_code"] == 422
    assert answer.json()["error_msg"].startswith(f"{names}: ")
    assert "pydantic" not in answer.json()["error_msg"]
