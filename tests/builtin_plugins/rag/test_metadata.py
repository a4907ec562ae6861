"""Fields of documents: declared, set, read, edited in bulk and as a table, by rules, and over versions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernel.testing import Actor, Reply, Running
from tests.builtin_plugins.rag.rag_support import ingest, make_base, path_of, problems, record
from tests.builtin_plugins.rag.test_versions import form_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASES = "/v1/rag/knowledge-bases"
KINDS = {"year": "number", "until": "date", "at": "date", "signed": "boolean", "owner": "person"}
TEXT = "# Lease\n\nThe office in Bergen is rented until the end of the year.\n"


async def declare(actor: Actor, base: str, name: str, kind: str = "text", **more: Any) -> Reply:
    """Declare a field."""
    return await actor.put(f"{BASES}/{base}/fields/{name}", json={"kind": kind, **more})


async def send(actor: Actor, base: str, content: str = TEXT, name: str = "a.md", **metadata: Any) -> Reply:
    """Upload a file with values."""
    form = form_of(content, name, metadata=json.dumps(metadata))
    return await actor.post(f"{BASES}/{base}/upload", data=form)


async def change(actor: Actor, base: str, document: str, **values: Any) -> Reply:
    """Set values of a document."""
    return await actor.patch(path_of(base, document, "/metadata"), json=values)


async def put_rules(running: Running, actor: Actor, base: str, *rules: dict[str, Any]) -> Reply:
    """Replace the rules, and apply them."""
    reply = await actor.put(f"{BASES}/{base}/metadata-rules", json={"rules": rules})
    await running.run_jobs()
    return reply


@pytest.mark.each_database
async def test_values_come_with_an_upload_and_are_shown_as_their_kind(
    running: Running, ann: Actor, base: str
) -> None:
    for name, kind in KINDS.items():
        assert (await declare(ann, base, name, kind)).status == 200
    me = ann.user
    values = {"year": 2026, "until": "2026-03-01", "at": "2026-03-01T10:00:00+02:00", "signed": "true"}
    sent = await send(ann, base, **values, owner=me["username"], tags=["Lease", "Lease", "Bergen"])
    assert sent.status == 202, sent.body
    wanted = {
        "year": 2026,
        "until": "2026-03-01",
        "at": "2026-03-01T08:00:00Z",
        "signed": True,
        "owner": {"id": me["id"], "name": me["username"]},
        "tags": ["Lease", "Bergen"],
    }
    assert sent.json()["metadata"] == wanted
    await running.run_jobs()
    document = sent.json()["document_id"]
    wanted["language"] = "en"
    assert (await record(ann, base, document))["metadata"] == wanted
    listed = (await ann.get(f"{BASES}/{base}/documents")).json()["items"]
    assert [one["metadata"] for one in listed] == [wanted]
    shown = (await ann.get(path_of(base, document, "/metadata"))).json()
    assert (shown["metadata"], shown["origins"]["year"], shown["origins"]["language"]) == (
        wanted,
        "hand",
        "file",
    )


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"unknown": 1}, "unknown"),
        ({"year": "many"}, "year"),
        ({"year": True}, "year"),
        ({"year": 10**17}, "year"),
        ({"year": [2026]}, "year"),
        ({"until": "tomorrow"}, "until"),
        ({"until": "2026-03-01T10:00:00"}, "until"),
        ({"title": 7}, "title"),
        ({"title": "x" * 513}, "title"),
        ({"title": "a\u0001b"}, "title"),
        ({"tags": ["x"] * 101}, "tags"),
        ({"owner": "nobody-of-this-name"}, "owner"),
        ({"size_bytes": 3}, "size_bytes"),
    ],
)
async def test_values_that_do_not_fit_are_refused_by_name(
    running: Running, ann: Actor, values: dict[str, Any], field: str
) -> None:
    """Before anything is stored."""
    base = await make_base(ann)
    for name, kind in (("year", "number"), ("until", "date"), ("owner", "person")):
        await declare(ann, base, name, kind)
    assert list(problems(await send(ann, base, **values))) == [f"body.metadata.{field}"]
    assert (await ann.get(f"{BASES}/{base}/documents")).json()["total"] == 0
    document = (await ingest(running, ann, base))["document_id"]
    assert list(problems(await change(ann, base, document, **values))) == [f"body.{field}"]


async def test_fields_are_listed_changed_and_removed(running: Running, ann: Actor, base: str) -> None:
    """The kind only while no document has a value, and never that of a built-in one."""
    assert (await declare(ann, base, "cafe\u0301", "text", description="Where")).json()["name"] == "caf\u00e9"
    listed = {one["name"]: one for one in (await ann.get(f"{BASES}/{base}/fields")).json()["items"]}
    assert (listed["caf\u00e9"]["built_in"], listed["title"]["built_in"]) == (False, True)
    assert (listed["version"]["can_be_set"], listed["tags"]["many"]) == (False, True)
    assert (await declare(ann, base, "caf\u00e9", "number")).json()["kind"] == "number"
    document = (await send(ann, base, café=1)).json()["document_id"]
    for refused, code in (
        (await declare(ann, base, "caf\u00e9", "text"), "field_in_use"),
        (await declare(ann, base, "title"), "built_in_field"),
        (await ann.delete(f"{BASES}/{base}/fields/title"), "built_in_field"),
    ):
        assert (refused.status, refused.json()["code"]) == (409, code), refused.body
    assert (await declare(ann, base, "no-dash")).status == 422
    assert (await declare(ann, base, "caf\u00e9", "number", many=True)).json()["many"] is True
    assert (await ann.delete(f"{BASES}/{base}/fields/caf\u00e9")).status == 200
    assert (await ann.get(f"{BASES}/{base}/fields/caf\u00e9")).json()["code"] == "field_not_found"
    await declare(ann, base, "caf\u00e9", "text")
    assert (await record(ann, base, document))["metadata"] == {}
