"""Pipelines over HTTP: create, list, show, change, delete (wire-facts 11.3)."""

from __future__ import annotations

import pytest

from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import (
    NOWHERE,
    ask,
    ask_raw,
    ingest,
    make_base,
    make_pipeline,
    problems,
    somebody,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

PIPELINES = "/v1/rag/pipeline"


async def test_record(ann: Actor, base: str) -> None:
    """What creation answers and what reading answers, each in its documented shape."""
    body = {"name": "Ask", "knowledge_base_ids": [base, base], "generation_config": {"temperature": 0}}
    made = (await ann.post(PIPELINES, json=body)).json()
    sharing = {"visibility": "private", "team_id": None, "organization_id": None}
    fields = {"pipeline_id", "name", "knowledge_base_ids", "created_at", "message"}
    assert set(made) == fields | set(sharing)
    assert made["knowledge_base_ids"] == [base]
    shown = (await ann.get(f"{PIPELINES}/{made['pipeline_id']}")).json()
    assert shown == {
        "id": made["pipeline_id"],
        "name": "Ask",
        "knowledge_base_ids": [base],
        "created_at": made["created_at"],
        "owner_user_id": ann.user["id"],
        **sharing,
    }


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"generation_config": []}, "body.generation_config"),
        ({"generation_config": {"model": 5}}, "body.generation_config.model"),
        ({"generation_config": {"model": ""}}, "body.generation_config.model"),
        ({"generation_config": {"temperature": "hot"}}, "body.generation_config.temperature"),
        ({"generation_config": {"temperature": True}}, "body.generation_config.temperature"),
        ({"generation_config": {"temperature": 2.1}}, "body.generation_config.temperature"),
        ({"generation_config": {"temperature": -0.1}}, "body.generation_config.temperature"),
        ({"generation_config": {"max_tokens": 0}}, "body.generation_config.max_tokens"),
        ({"generation_config": {"max_tokens": 32769}}, "body.generation_config.max_tokens"),
        ({"generation_config": {"max_tokens": 1.5}}, "body.generation_config.max_tokens"),
        ({"generation_config": {"stop": ["x" * 30_000]}}, "body.generation_config"),
    ],
)
async def test_refusals(ann: Actor, change: dict[str, object], place: str) -> None:
    """A field that does not fit is named when the pipeline is made, not when it is asked."""
    body = {"name": "Ask", "knowledge_base_ids": [await make_base(ann)], **change}
    assert place in problems(await ann.post(PIPELINES, json=body))


async def test_json_that_is_no_number(ann: Actor, base: str) -> None:
    for key, value in [
        (key, value) for key in ("temperature", "x") for value in ("NaN", "Infinity", "1e999")
    ]:
        config = f'"generation_config": {{"{key}": {value}}}'
        body = f'{{"name": "a", "knowledge_base_ids": ["{base}"], {config}}}'
        answer = await ann.post(PIPELINES, data=body, headers={"Content-Type": "application/json"})
        assert answer.status == 422, (key, value, answer.body)


async def test_unknown_keys_of_a_configuration_are_kept(ann: Actor) -> None:
    config = {"model": "tiny", "temperature": 0, "max_tokens": 100, "top_p": 0.5, "seed": 3}
    await make_pipeline(ann, await make_base(ann), generation_config=config)


async def test_unknown_knowledge_base_is_named(ann: Actor, base: str) -> None:
    pipeline = await make_pipeline(ann, base)
    for missing in (NOWHERE, "nonsense"):
        body = {"name": "Ask", "knowledge_base_ids": [base, missing]}
        answers = [
            await ann.post(PIPELINES, json=body),
            await ann.patch(f"{PIPELINES}/{pipeline}", json=body),
        ]
        for answer in answers:
            assert answer.status == 404 and missing in answer.detail
    assert (await ann.get(f"{PIPELINES}/{pipeline}")).json()["knowledge_base_ids"] == [base]


async def test_list(running: Running, ann: Actor, base: str) -> None:
    """Pages of what the caller may see, oldest first; the owner filter keeps ownerless ones."""
    made = [await make_pipeline(ann, base, name=f"n{number}") for number in range(3)]
    mine = f"owner_user_id={ann.user['id']}"
    pages = [(await ann.get(f"{PIPELINES}?limit=2&offset={at}&{mine}")).json() for at in (0, 2)]
    assert [item["id"] for page in pages for item in page["items"]] == made
    assert [(page["total"], page["limit"], page["offset"]) for page in pages] == [(3, 2, 0), (3, 2, 2)]
    admin = await somebody(running, role="admin")
    theirs = (await admin.get(f"{PIPELINES}?limit=500&owner_user_id={admin.user['id']}")).json()["items"]
    assert not set(made) & {item["id"] for item in theirs}


async def test_change(ann: Actor) -> None:
    """Name and knowledge bases change one by one; their order is kept."""
    one, two = await make_base(ann), await make_base(ann)
    path = f"{PIPELINES}/{await make_pipeline(ann, one)}"
    assert (await ann.patch(path, json={"name": "New"})).json()["knowledge_base_ids"] == [one]
    changed = (await ann.patch(path, json={"knowledge_base_ids": [two, one]})).json()
    assert (changed["name"], changed["knowledge_base_ids"]) == ("New", [two, one])
    assert (await ann.get(path)).json() == changed
    assert "body.knowledge_base_ids" in problems(await ann.patch(path, json={"knowledge_base_ids": []}))


async def test_delete(ann: Actor, base: str) -> None:
    pipeline = await make_pipeline(ann, base)
    answer = await ann.delete(f"{PIPELINES}/{pipeline}")
    assert answer.json() == {"message": "Pipeline deleted", "id": pipeline}
    for status in (
        (await ann.get(f"{PIPELINES}/{pipeline}")).status,
        (await ann.delete(f"{PIPELINES}/{pipeline}")).status,
        (await ask_raw(ann, pipeline, "What?")).status,
    ):
        assert status == 404
    assert (await ann.delete(f"/v1/rag/knowledge-bases/{base}")).status == 200


async def test_retrieval_config_is_the_default_of_its_questions(running: Running, ann: Actor) -> None:
    base = await make_base(ann, chunk_size=60, chunk_overlap=0)
    await ingest(running, ann, base)
    pipeline = await make_pipeline(ann, base, retrieval_config={"top_k": 1, "hybrid": True, "note": "x"})
    question = "How much may a hotel cost per night?"
    answer = await ask(ann, pipeline, question)
    assert (len(answer["sources"]), answer["method_details"]["retrieval"]) == (1, "hybrid")
    answer = await ask(ann, pipeline, question, top_k=2, hybrid=False)
    assert (len(answer["sources"]), answer["method_details"]["retrieval"]) == (2, "dense")
