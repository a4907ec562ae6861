"""Filters on documents' fields through the API: where they hold, what is refused, counts per value."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from builtin_plugins.rag import api as rag
from builtin_plugins.rag.filters.dify import MetadataCondition, filter_from_dify
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import (
    ask,
    ask_raw,
    ingest,
    make_base,
    make_pipeline,
    path_of,
    problems,
    somebody,
)
from tests.builtin_plugins.rag.test_pipeline_tools import caller

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.own_installation]

QUESTION = "How much may a hotel cost per night?"
TEXT = "# Travel\n\nA hotel may cost up to {} EUR a night. Breakfast is paid by the company.\n"
YEARS = {"old.md": (2024, 100), "present.md": (2026, 130), "other.md": (None, 170)}
NATIVE = {"type": "gte", "key": "year", "value": 2025}
DIFY_LIST = MetadataCondition.model_validate(
    {"conditions": [{"name": "year", "comparison_operator": "in", "value": "2024, 2026"}]}
)
BASES = "/v1/rag/knowledge-bases"


@dataclass
class Archive:
    """Documents that say different things about the same, two of them with a year."""

    running: Running
    ann: Actor
    base: str
    pipeline: str
    documents: dict[str, str]

    async def search(self, wanted: Any, **fields: Any) -> set[str]:
        body = {"question": QUESTION, "metadata_filter": wanted, "top_k": 50, **fields}
        answer = await self.ann.post(f"{BASES}/{self.base}/search", json=body)
        assert answer.status == 200, answer.body
        return {item["source"] for item in answer.json()["items"]}

    async def listed(self, wanted: Any, **query: Any) -> tuple[set[str], int]:
        page = await self.ann.get(
            f"{BASES}/{self.base}/documents", params={"filter": json.dumps(wanted), **query}
        )
        assert page.status == 200, page.body
        return {item["filename"] for item in page.json()["items"]}, page.json()["total"]

    async def set(self, name: str, **values: Any) -> None:
        """Set values of declared fields by hand."""
        path = path_of(self.base, self.documents[name], "/metadata")
        answer = await self.ann.patch(path, json=values)
        assert answer.status == 200, answer.body


@pytest_asyncio.fixture(loop_scope="session")
async def archive(running: Running) -> Archive:
    ann = await somebody(running)
    base = await make_base(ann)
    documents = {}
    for name, (_, price) in YEARS.items():
        documents[name] = (await ingest(running, ann, base, name, TEXT.format(price)))["document_id"]

    declared = await ann.put(f"{BASES}/{base}/fields/year", json={"kind": "number"})
    assert declared.status == 200, declared.body
    archive = Archive(running, ann, base, await make_pipeline(ann, base), documents)
    for name, (year, _) in YEARS.items():
        if year is not None:
            await archive.set(name, year=year)
    return archive


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (NATIVE, {"present.md"}),
        ({"year": 2024}, {"old.md"}),
        ({"year": [2024, 2026]}, {"old.md", "present.md"}),
        (filter_from_dify(DIFY_LIST) or {}, {"old.md", "present.md"}),
        ({"type": "ne", "key": "year", "value": 2024}, {"present.md", "other.md"}),
        ({"type": "exists", "key": "year", "value": False}, {"other.md"}),
        ({"type": "not", "filter": {"year": 2026}}, {"old.md", "other.md"}),
        (
            {"type": "or", "filters": [{"source": "other.md"}, {"type": "lt", "key": "year", "value": 2025}]},
            {"old.md", "other.md"},
        ),
        ({"type": "contains", "key": "filename", "value": "ESENT"}, {"present.md"}),
        ({"type": "gt", "key": "uploaded_at", "value": "now-1h"}, set(YEARS)),
        ({"year": 1999}, set()),
    ],
)
async def test_a_filter_leaves_the_same_everywhere(
    archive: Archive, wanted: dict[str, Any], expected: set[str]
) -> None:
    """In searches by meaning and with words, in lists with their totals, and in counts."""
    assert await archive.search(wanted) == expected == await archive.search(wanted, hybrid=False)
    assert await archive.listed(wanted) == (expected, len(expected))
    body = {"fields": ["year"], "filter": wanted}
    for place in (f"{BASES}/{archive.base}", f"/v1/rag/pipeline/{archive.pipeline}"):
        counted = await archive.ann.post(f"{place}/facets", json=body)
        assert counted.status == 200 and counted.json()["total"] == len(expected)


async def test_every_method_keeps_the_filter(archive: Archive) -> None:
    """And every option; the answer is the filtered document's, and says what the filter was."""
    methods = (await archive.ann.get("/v1/rag/capabilities")).json()["methods"]
    tried = [name for name, there in methods.items() if there and name != "conversational"]
    assert {"standard", "hyde", "self_rag", "corrective", "raptor", "auto"} <= set(tried)
    options = {"rerank": True, "compress": True, "graph": True}
    for method in tried:
        for more in ({}, options, {"parent_context": True}, {"hybrid": False}):
            answer = await ask(
                archive.ann, archive.pipeline, QUESTION, method=method, metadata_filter=NATIVE, **more
            )
            assert {one["source"] for one in answer["sources"]} == {"present.md"}, (method, more)
            assert answer["method_details"]["metadata_filter"] == NATIVE


async def test_a_pipeline_with_a_filter_of_its_own(archive: Archive) -> None:
    """A question's filter narrows it, and can't widen it; tools and counts keep to it, too."""
    config = {"metadata_filter": {"type": "exists", "key": "year"}}
    pipeline = await make_pipeline(archive.ann, archive.base, retrieval_config=config)
    place = f"/v1/rag/pipeline/{pipeline}"
    assert (await archive.ann.get(place)).json()["metadata_filter"] == config["metadata_filter"]

    async def sources(**fields: Any) -> set[str]:
        answer = await ask(archive.ann, pipeline, QUESTION, top_k=50, **fields)
        body = {"question": QUESTION, "top_k": 50, **fields}
        found = (await archive.ann.post(f"{place}/search", json=body)).json()["items"]
        assert {one["source"] for one in answer["sources"]} == {one["source"] for one in found}
        return {one["source"] for one in found}

    assert await sources() == {"old.md", "present.md"}
    assert await sources(metadata_filter=NATIVE) == {"present.md"}
    assert await sources(metadata_filter={"source": "other.md"}) == set()
    everything = {"type": "or", "filters": [{"source": list(YEARS)}, {"type": "not", "filter": NATIVE}]}
    assert await sources(metadata_filter=everything) == {"old.md", "present.md"}
    counted = await archive.ann.post(f"{place}/facets", json={"fields": ["filename", "year"]})
    names, years = counted.json()["facets"]
    assert {one["value"]: one["count"] for one in names["values"]} == {"old.md": 1, "present.md": 1}
    assert (years["documents"], years["min"], years["max"], years["values"]) == (2, 2024, 2026, [])
    changed = await archive.ann.patch(place, json={"retrieval_config": {"metadata_filter": NATIVE}})
    assert changed.json()["metadata_filter"] == NATIVE and await sources() == {"present.md"}
    assert (await archive.ann.patch(place, json={"retrieval_config": {}})).status == 200
    assert await sources() == set(YEARS)


async def test_what_changes_counts_for_the_next_search(archive: Archive) -> None:
    """A filter that was used before finds documents by their new values, and nothing that is deleted."""
    wanted = {"year": 2030}
    assert await archive.search(wanted) == set()
    await archive.set("other.md", year=2030)
    assert await archive.search(wanted) == {"other.md"}
    await archive.set("present.md", year=2030)
    assert await archive.search(wanted) == {"other.md", "present.md"}
    await archive.set("other.md", year=2031)
    assert await archive.search(wanted) == {"present.md"}
    assert (await archive.ann.delete(path_of(archive.base, archive.documents["present.md"]))).status == 200
    assert await archive.search(wanted) == set() and await archive.listed(wanted) == (set(), 0)
    late = await ingest(archive.running, archive.ann, archive.base, "late.md", TEXT.format(7))
    archive.documents["late.md"] = late["document_id"]
    await archive.set("late.md", year=2030)
    assert await archive.search(wanted) == {"late.md"}


async def test_editing_what_a_filter_leaves(archive: Archive) -> None:
    """Instead of ids; neither or both is refused."""
    place = f"{BASES}/{archive.base}/documents/metadata"
    wanted = {"type": "exists", "key": "year"}
    edited = await archive.ann.post(place, json={"filter": wanted, "add": {"tags": ["dated"]}})
    assert edited.json() == {"documents": 2}
    assert await archive.search({"tags": "dated"}) == {"old.md", "present.md"}
    for body in ({}, {"filter": wanted, "document_ids": list(archive.documents.values())}):
        assert (await archive.ann.post(place, json={"set": {"year": 1}, **body})).status == 422
    misspelled = {"filter": {"colour": 1}, "set": {"year": 1}}
    assert "body.filter.colour" in problems(await archive.ann.post(place, json=misspelled))


DEEP: Any = {"year": 1}
for _ in range(8):
    DEEP = {"type": "not", "filter": DEEP}


@pytest.mark.parametrize(
    ("wanted", "place"),
    [
        ({"colour": "red"}, "colour"),
        ({"type": "eq", "key": "colour", "value": 1}, "key"),
        (
            {"type": "and", "filters": [{"year": 1}, {"type": "gt", "key": "title", "value": "a"}]},
            "filters.1.value",
        ),
        ({"type": "not", "filter": {"year": "2026"}}, "filter.year"),
        ({"type": "in", "key": "year", "value": 2026}, ""),
        ({"type": "contains", "key": "year", "value": "2"}, "value"),
        ({"type": "eq", "key": "uploaded_at", "value": "soon"}, "value"),
        ({"type": "eq", "key": "folder", "value": {"a": 1}}, "value"),
        ({"type": "or", "filters": []}, "filters"),
        ({"type": "or", "filters": [{"year": n} for n in range(65)]}, ""),
        (DEEP, ""),
        ({"type": "or", "filters": [{"year": list(range(400))}] * 3}, ""),
        ({"uploaded_at": ["2026"] * 201}, "uploaded_at"),
        ("year", ""),
        ({"title": "a\x00b"}, "title"),
    ],
)
async def test_what_can_not_be_is_refused_with_its_place(archive: Archive, wanted: Any, place: str) -> None:
    """In a search, a question, a list, counts, and as the filter of a pipeline."""
    where = f".{place}" if place else ""
    body = {"question": QUESTION, "metadata_filter": wanted}
    ann = archive.ann
    for path in (f"{BASES}/{archive.base}/search", f"/v1/rag/pipeline/{archive.pipeline}/query"):
        assert f"body.metadata_filter{where}" in problems(await ann.post(path, json=body))
    listed = await ann.get(f"{BASES}/{archive.base}/documents", params={"filter": json.dumps(wanted)})
    assert f"query.filter{where}" in problems(listed)
    counted = await ann.post(f"{BASES}/{archive.base}/facets", json={"fields": ["year"], "filter": wanted})
    assert f"body.filter{where}" in problems(counted)
    made = {
        "name": "x",
        "knowledge_base_ids": [archive.base],
        "retrieval_config": {"metadata_filter": wanted},
    }
    refused = await ann.post("/v1/rag/pipeline", json=made)
    assert f"body.retrieval_config.metadata_filter{where}" in problems(refused)


@pytest.mark.parametrize("field", ["year", "size_bytes", "uploaded_at", "created", "title", "filename"])
async def test_as_many_values_as_a_filter_may_have(archive: Archive, field: str) -> None:
    """Databases limit parameters, and how deep a condition is."""
    is_text, is_date = field in ("title", "filename"), field in ("uploaded_at", "created")
    many: list[Any] = [str(n + 2000) for n in range(200)] if is_date else list(range(500))
    many = list(map(str, many)) if is_text else many
    wanted = {"type": "or", "filters": [{field: many}, {"type": "nin", "key": field, "value": many}]}
    assert await archive.search(wanted) == set(YEARS)


async def test_a_field_of_one_of_two_knowledge_bases(archive: Archive) -> None:
    """Documents of the other one have no value of it; a name that neither knows is refused."""
    other = await make_base(archive.ann)
    await ingest(archive.running, archive.ann, other, "plain.md", TEXT.format(1))
    pipeline = await make_pipeline(archive.ann, archive.base, other)
    for wanted, expected in (
        ({"year": [2024, 2026]}, {"old.md", "present.md"}),
        ({"type": "not", "filter": NATIVE}, {"old.md", "other.md", "plain.md"}),
    ):
        answer = await ask(archive.ann, pipeline, QUESTION, metadata_filter=wanted, top_k=50)
        assert {one["source"] for one in answer["sources"]} == expected
    assert (await ask_raw(archive.ann, pipeline, QUESTION, metadata_filter={"colour": 1})).status == 422


async def test_a_stored_filter_outlives_its_field(archive: Archive) -> None:
    """No document has values of a field that is gone: the pipeline finds nothing rather than everything."""
    config = {"metadata_filter": NATIVE}
    pipeline = await make_pipeline(archive.ann, archive.base, retrieval_config=config)
    assert (await ask(archive.ann, pipeline, QUESTION))["sources"]
    field = f"{BASES}/{archive.base}/fields/year"
    assert (await archive.ann.delete(field)).status == 200
    assert (await ask(archive.ann, pipeline, QUESTION))["sources"] == []
    assert (await archive.ann.put(field, json={"kind": "number"})).status == 200
    assert (await ask(archive.ann, pipeline, QUESTION))["sources"] == []


async def test_passages_for_tools(archive: Archive) -> None:
    """The hook for other plugins takes a filter as clients send it."""
    found = await archive.running.platform.hooks.ask(
        rag.search_passages,
        caller=caller(archive.running, archive.ann),
        question=QUESTION,
        top_k=10,
        knowledge_base_ids=[archive.base],
        metadata_filter=NATIVE,
    )
    assert {one.source for one in found or ()} == {"present.md"}


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("contains", "a", {"type": "contains", "key": "f", "value": "a"}),
        ("not contains", "a", {"type": "not", "filter": {"type": "contains", "key": "f", "value": "a"}}),
        ("start with", "a", {"type": "starts_with", "key": "f", "value": "a"}),
        ("end with", "a", {"type": "ends_with", "key": "f", "value": "a"}),
        ("is", "2026", {"type": "eq", "key": "f", "value": "2026"}),
        ("is not", "a", {"type": "not", "filter": {"type": "eq", "key": "f", "value": "a"}}),
        ("empty", None, {"type": "not", "filter": {"type": "exists", "key": "f", "value": True}}),
        ("not empty", "", {"type": "exists", "key": "f", "value": True}),
        ("in", "a, b", {"type": "in", "key": "f", "value": ["a", "b"]}),
        ("not in", ["a"], {"type": "not", "filter": {"type": "in", "key": "f", "value": ["a"]}}),
        ("=", "5", {"type": "eq", "key": "f", "value": 5}),
        ("≠", 5, {"type": "not", "filter": {"type": "eq", "key": "f", "value": 5}}),
        (">", "2.5", {"type": "gt", "key": "f", "value": 2.5}),
        ("<", 1, {"type": "lt", "key": "f", "value": 1}),
        ("≥", 1, {"type": "gte", "key": "f", "value": 1}),
        ("≤", 1, {"type": "lte", "key": "f", "value": 1}),
        ("before", "2026-03-01", {"type": "lt", "key": "f", "value": "2026-03-01"}),
        ("before", "2026", {"type": "lt", "key": "f", "value": "2026"}),
        ("after", "1767225600", {"type": "gt", "key": "f", "value": 1767225600}),
    ],
)
async def test_filters_in_the_shape_of_dify(operator: str, value: Any, expected: Any) -> None:
    condition = {"name": ["f"], "comparison_operator": operator, "value": value}
    given = MetadataCondition.model_validate({"logical_operator": "or", "conditions": [condition]})
    assert filter_from_dify(given) == {"type": "or", "filters": [expected]}
    for nothing in (None, MetadataCondition(conditions=[]), MetadataCondition(logical_operator=None)):
        assert filter_from_dify(nothing) is None
