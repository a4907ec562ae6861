"""Fields of documents: declared, set, read, edited in bulk and as a table, by rules, and over versions."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from sqlalchemy import func, select

from builtin_plugins.rag import api as rag
from builtin_plugins.rag.models import MetadataField, MetadataRule, MetadataValue, ShadowedValue
from builtin_plugins.rag.schemas_receipts import Receipt
from builtin_plugins.rag.services.verification import look_again
from kernel.sdk import Caller, Principal
from kernel.testing import Actor, Reply, Running
from tests.builtin_plugins.rag.rag_support import (
    NOWHERE,
    ingest,
    make_base,
    path_of,
    problems,
    record,
    somebody,
)
from tests.builtin_plugins.rag.test_versions import form_of, put
from tests.fakes.keeping import Keeper

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


async def test_values_come_with_an_upload_and_are_shown_as_their_kind(
    running: Running, ann: Actor, base: str
) -> None:
    for name, kind in KINDS.items():
        assert (await declare(ann, base, name, kind)).status == 200
    me = ann.user
    values = {"year": 2026, "until": "2026-03-01", "at": "2026-03-01T10:00:00+02:00", "signed": "true"}
    sent = await send(ann, base, **values, owner=me["username"], tags=["Lease", "Lease", "Bergen"])
    assert sent.status == 202, sent.body
    assert list(problems(await send(ann, base, owner="a\0b"))) == ["body.metadata.owner"]
    assert list(problems(await send(ann, base, owner="\ud800"))) == ["body.metadata.owner"]
    infinite = await ann.post(
        f"{BASES}/{base}/upload", data=form_of(TEXT, "a.md", metadata='{"year": 1e999}')
    )
    assert list(problems(infinite)) == ["body.metadata.year"]
    assert infinite.json()["detail"][0]["input"] is None
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
    assert "caf\u00e9" not in (await record(ann, base, document))["metadata"]


async def test_what_is_set_by_hand_wins_and_what_it_hid_comes_back(
    running: Running, ann: Actor, base: str
) -> None:
    """Hand before rule before file; null empties a field that the file fills."""
    page = "---\ntitle: Of the file\nauthor: [Ada, Bo]\ndate: 2024-05-06\n---\n\nText of the page.\n"
    await put_rules(running, ann, base, {"pattern": "*.md", "field": "title", "value": "Of a rule"})
    document = (await ingest(running, ann, base, "a.md", page))["document_id"]

    async def title() -> tuple[Any, Any]:
        shown = (await ann.get(path_of(base, document, "/metadata"))).json()
        return shown["metadata"].get("title"), shown["origins"].get("title")

    read = (await record(ann, base, document))["metadata"]
    assert (read["author"], read["created"]) == (["Ada", "Bo"], "2024-05-06")
    assert await title() == ("Of a rule", "rule")
    await change(ann, base, document, title="Of a hand")
    assert await title() == ("Of a hand", "hand")
    await change(ann, base, document, title=None)
    assert await title() == (None, None)
    other = (await ingest(running, ann, base, "b.md", page + "More.\n"))["document_id"]
    await put_rules(running, ann, base)
    assert (await record(ann, base, other))["metadata"]["title"] == "Of the file"
    assert await title() == (None, None)


async def test_rules_read_paths(running: Running, ann: Actor, base: str) -> None:
    """A part of the path as a number, several rules for one field of several values, and others untouched."""
    await declare(ann, base, "year", "number")
    for path in ("contracts/2026/lease.md", "contracts/none/x.md", "notes/a.md"):
        assert (await put(ann, base, path, f"# {path}\n\nSome text.\n")).status == 202
    await running.run_jobs()
    rules = [
        {"pattern": "contracts/{year}/*.md", "field": "year"},
        {"pattern": "contracts/**", "field": "tags", "value": ["contract"]},
        {"pattern": "**/*{what}.md", "field": "tags", "part": "what"},
    ]
    assert (await put_rules(running, ann, base, *rules)).status == 202
    listed = (await ann.get(f"{BASES}/{base}/documents")).json()["items"]
    found = {one["path"]: (one["metadata"].get("year"), one["metadata"].get("tags")) for one in listed}
    assert found == {
        "contracts/2026/lease.md": (2026, ["contract", "lease"]),
        "contracts/none/x.md": (None, ["contract", "x"]),
        "notes/a.md": (None, ["a"]),
    }
    stored = (await ann.get(f"{BASES}/{base}/metadata-rules")).json()["rules"]
    assert [one["pattern"] for one in stored] == [one["pattern"] for one in rules]
    for rule, place in (
        ({"pattern": "a//b", "field": "year", "value": 1}, "pattern"),
        ({"pattern": "a/{x", "field": "year", "value": 1}, "pattern"),
        ({"pattern": "a/*", "field": "year", "value": "x"}, "field"),
        ({"pattern": "a/*", "field": "year"}, "value"),
        ({"pattern": "a/*", "field": "none", "value": 1}, "field"),
    ):
        assert list(problems(await put_rules(running, ann, base, rule))) == [f"body.rules.0.{place}"]


async def test_a_kind_stays_while_overruled_values_have_it(running: Running, ann: Actor, base: str) -> None:
    """They come back when what overrules them goes."""
    await declare(ann, base, "note", many=True)
    document = (await send(ann, base)).json()["document_id"]
    await running.run_jobs()
    await put_rules(running, ann, base, {"pattern": "**", "field": "note", "value": ["x", "y"]})
    assert (await change(ann, base, document, note=None)).json()["metadata"].get("note") is None
    assert (await declare(ann, base, "note", "number", many=True)).status == 409
    assert (await declare(ann, base, "note", many=False)).status == 409
    await put_rules(running, ann, base)
    assert (await declare(ann, base, "note", "number")).status == 200


async def test_a_version_takes_over_what_was_set_by_hand(running: Running, ann: Actor, base: str) -> None:
    """The replaced one keeps its own; values sent with the new one win."""
    first = (await put(ann, base, "a.md", "---\ntitle: First\n---\n\nOne text.\n")).json()["document_id"]
    await running.run_jobs()
    await change(ann, base, first, tags=["kept"], subject="Old")
    form = form_of("---\ntitle: Second\n---\n\nAnother text.\n", metadata='{"subject": "New"}')
    second = (await ann.put(f"{BASES}/{base}/documents/by-path/a.md", data=form)).json()["document_id"]
    await change(ann, base, first, author=["Late"])
    await running.run_jobs()
    new, old = [(await record(ann, base, one))["metadata"] for one in (second, first)]
    assert {name: new.get(name) for name in ("title", "tags", "subject", "author")} == {
        "title": "Second",
        "tags": ["kept"],
        "subject": "New",
        "author": ["Late"],
    }
    assert (old["title"], old["subject"]) == ("First", "Old")


async def test_many_documents_are_edited_at_once(running: Running, ann: Actor, base: str) -> None:
    ids = [
        (await send(ann, base, f"Text {n}.\n", f"{n}.md", tags=["draft", f"n{n}"])).json() for n in range(3)
    ]
    names = [one["document_id"] for one in ids]
    body = {
        "document_ids": names[:2],
        "set": {"title": "Both"},
        "add": {"tags": ["done"]},
        "remove": {"tags": ["DRAFT"]},
    }
    path = f"{BASES}/{base}/documents/metadata"
    assert (await ann.post(path, json=body)).json() == {"documents": 2}
    assert (await ann.post(path, json=body)).json() == {"documents": 0}
    found = [(await record(ann, base, one))["metadata"] for one in names]
    assert [(one.get("title"), one["tags"]) for one in found] == [
        ("Both", ["n0", "done"]),
        ("Both", ["n1", "done"]),
        (None, ["draft", "n2"]),
    ]
    refused = await ann.post(path, json={**body, "document_ids": [names[0], NOWHERE], "set": {"title": "No"}})
    assert refused.json()["code"] == "document_not_found"
    assert (await record(ann, base, names[0]))["metadata"]["title"] == "Both"
    assert list(problems(await ann.post(path, json={**body, "add": {"title": "x"}}))) == ["body.add.title"]


async def test_a_table_goes_out_and_comes_in(running: Running, ann: Actor, base: str) -> None:
    """Unchanged it changes nothing; a mistake in one cell keeps everything as it was."""
    await declare(ann, base, "year", "number")
    await put(ann, base, "a/b.md", "---\ntitle: '=1+1'\n---\n\nA text.\n")
    second = (await send(ann, base, "Other.\n", "c.md", tags=["x|y", "z"], year=7)).json()["document_id"]
    await running.run_jobs()
    path = f"{BASES}/{base}/metadata.csv"
    table = (await ann.get(path)).body.decode()
    lines = table.splitlines()
    assert lines[0].startswith("document_id,path,filename,tags,title")
    assert f"{second},,c.md," in table  # a person reads names, not ids
    assert ("a/b.md" in lines[1], "'=1+1" in lines[1], "x\\|y|z" in lines[2]) == (True, True, True)

    async def send_table(text: str) -> Reply:
        return await ann.put(path, data=text.encode(), headers={"Content-Type": "text/csv"})

    assert (await send_table(table)).json() == {"documents": 0}
    changed = "path;year;tags\na/b.md;2026;one|two\n"
    assert (await send_table(changed)).json() == {"documents": 1}
    wrong = f"document_id,year,tags\n{second},8,\n{NOWHERE},1,\n{second},many,\n"
    assert list(problems(await send_table(wrong))) == ["body.3.document_id", "body.4", "body.4.year"]
    assert (await record(ann, base, second))["metadata"]["year"] == 7
    assert list(problems(await send_table("path,nothing\na/b.md,1\n"))) == ["body.1.nothing"]
    assert list(problems(await send_table("document_id,year\nx\0,1\n"))) == ["body.2"]
    assert (await send_table(f"document_id,tags\n{second},\n")).json() == {"documents": 1}
    assert "tags" not in (await record(ann, base, second))["metadata"]


async def test_values_go_with_their_document_and_their_knowledge_base(running: Running, ann: Actor) -> None:
    """In the same transaction; the receipt counts them, and nothing is left to find."""
    base = await make_base(ann)
    await declare(ann, base, "year", "number")
    ids = [(await send(ann, base, f"T {n}.\n", f"{n}.md", year=n)).json()["document_id"] for n in range(2)]
    receipt = (await ann.delete(path_of(base, ids[0]))).json()["receipt"]
    removed = {one["place"]: one["count"] for one in receipt["removed"]}
    assert removed["metadata"] == 1
    await _nothing_left(running, receipt)
    await running.run_jobs()
    receipt = (await ann.delete(f"{BASES}/{base}")).json()["receipt"]
    await running.run_jobs()
    await _nothing_left(running, receipt)
    for model in (MetadataField, MetadataValue, ShadowedValue, MetadataRule):
        mine = select(func.count()).select_from(model).where(model.knowledge_base_id == base)
        assert await running.platform.database.read(lambda session, query=mine: session.scalar(query)) == 0


async def _nothing_left(running: Running, receipt: dict[str, Any]) -> None:
    places = await look_again(running.platform, Receipt.model_validate(receipt))
    assert {one.place: one.left for one in places if one.left} == {}


async def test_only_the_owner_sets_values(running: Running, ann: Actor) -> None:
    """Others read them; a person is named only to who sees that account."""
    base = await make_base(ann, visibility="shared")
    await declare(ann, base, "owner", "person")
    document = (await send(ann, base, owner=ann.user["id"])).json()["document_id"]
    bob = await somebody(running)
    assert (await record(bob, base, document))["metadata"]["owner"] == {"id": ann.user["id"], "name": None}
    table = {"Content-Type": "text/csv"}
    for reply in (
        await declare(bob, base, "x"),
        await bob.delete(f"{BASES}/{base}/fields/owner"),
        await put_rules(running, bob, base),
        await change(bob, base, document, tags=["x"]),
        await bob.post(f"{BASES}/{base}/documents/metadata", json={"document_ids": [document]}),
        await bob.put(f"{BASES}/{base}/metadata.csv", data=b"path\n", headers=table),
    ):
        assert (reply.status, reply.json()["code"]) == (403, "not_owner"), reply.body


async def test_a_source_describes_documents(running: Running, ann: Actor, base: str) -> None:
    """All that it says, in place of what it said before; never over a hand, and without what doesn't fit."""
    await declare(ann, base, "year", "number")
    document = (await ingest(running, ann, base, "a.md", "---\ntitle: File\n---\n\nText.\n"))["document_id"]
    await change(ann, base, document, tags=["mine"])
    caller = Caller(running.platform, Principal("service", "service:source"))

    async def say(**metadata: Any) -> dict[str, Any]:
        said = await running.platform.hooks.ask(
            rag.describe_document,
            caller=caller,
            knowledge_base_id=base,
            document_id=document,
            metadata=metadata,
        )
        assert said is True
        return dict((await record(ann, base, document))["metadata"])

    first = await say(title="Source", tags=["its"], year="no number", unknown=1, size_bytes=3)
    assert first == {"title": "Source", "tags": ["mine"]}
    assert await say(year=7) == {"title": "File", "tags": ["mine"], "year": 7}


async def test_a_source_describes_a_document_that_it_puts(running: Running, ann: Actor, base: str) -> None:
    """As soon as it is stored, and again with the same bytes."""
    await declare(ann, base, "year", "number")
    keeper = Keeper(running.platform, base)
    for values in ({"title": "First", "year": 7, "unknown": 1}, {"title": "Second"}):
        document = await keeper.put("a.txt", "The same text.", None, metadata=values)
        values.pop("unknown", None)
        assert (await record(ann, base, document))["metadata"] == values
    await running.run_jobs()


async def test_a_deleted_account_is_nobodys_value(running: Running) -> None:
    """Other values of the document stay, and so does a text that only looks like its id."""
    admin, bob = await running.user(role="admin"), await somebody(running)
    base = await make_base(admin)
    for name, kind in (("owner", "person"), ("note", "text")):
        await declare(admin, base, name, kind)
    given = {"owner": bob.user["username"], "note": str(bob.user["id"])}
    document = (await send(admin, base, **given)).json()["document_id"]
    assert (await record(admin, base, document))["metadata"]["owner"]["id"] == bob.user["id"]
    await declare(admin, base, "readers", "person", many=True)
    both = [bob.user["id"], admin.user["id"]]
    rules = [{"pattern": "**", "field": "owner", "value": bob.user["id"]}]
    rules.append({"pattern": "**", "field": "readers", "value": both})
    await put_rules(running, admin, base, *rules)
    assert (await admin.delete(f"/v1/auth/users/{bob.user['id']}", json={})).status in (200, 202)
    await running.run_jobs()
    found = (await record(admin, base, document))["metadata"]
    assert ("owner" in found, found["note"]) == (False, str(bob.user["id"]))
    later = (await send(admin, base, "Later.\n", "b.md")).json()["document_id"]
    await running.run_jobs()
    metadata = (await record(admin, base, later))["metadata"]
    assert ("owner" in metadata, [one["id"] for one in metadata["readers"]]) == (False, both[1:])


async def test_a_name_may_look_like_an_id(running: Running) -> None:
    """An id is an id; what is written as text is first of all a name."""
    admin = await running.user(role="admin")
    other = await running.user(str(admin.user["id"]))
    base = await make_base(admin)
    await declare(admin, base, "owner", "person")
    document = (await send(admin, base)).json()["document_id"]
    mine, text = admin.user["id"], str(admin.user["id"])
    for given, expected in ((mine, mine), ({"id": mine}, mine), (text, other.user["id"])):
        shown = await change(admin, base, document, owner=given)
        assert shown.json()["metadata"]["owner"]["id"] == expected
    assert (await change(admin, base, document, owner=str(other.user["id"]))).status == 200


async def test_a_table_keeps_every_value(running: Running, ann: Actor) -> None:
    """Also those with the signs that a table needs, and people whom its reader does not see."""
    admin, stranger = await running.user(role="admin"), await somebody(running)
    base = await make_base(ann)
    await declare(ann, base, "owner", "person")
    given = {"tags": ["back\\", "a|b", "\\|", "x"], "title": "'=1", "subject": "''-1"}
    document = (await send(ann, base, **given)).json()["document_id"]
    await running.run_jobs()
    assert (await change(admin, base, document, owner=stranger.user["username"])).status == 200
    path, before = f"{BASES}/{base}/metadata.csv", (await record(ann, base, document))["metadata"]
    assert before["owner"] == {"id": stranger.user["id"], "name": None}
    table = (await ann.get(path)).body
    sent = await ann.put(path, data=table, headers={"Content-Type": "text/csv"})
    assert sent.json() == {"documents": 0}, sent.body
    await declare(ann, base, "readers", "person", many=True)
    assert list(problems(await change(ann, base, document, readers=[admin.user["id"]]))) == ["body.readers"]
    both = [stranger.user["id"], ann.user["username"]]
    assert (await change(admin, base, document, readers=both[:1])).status == 200
    assert (await change(ann, base, document, readers=both, owner=before["owner"])).status == 200


async def test_edits_while_versions_are_published(running: Running, ann: Actor, base: str) -> None:
    """Nothing fails, and the last rules apply to all versions that answer in the end."""
    paths = [f"docs/{number}.md" for number in range(6)]
    for path in paths:
        await put(ann, base, path, f"First text of {path}.\n")
    await running.run_jobs()

    async def edit(number: int) -> Reply:
        listed = (await ann.get(f"{BASES}/{base}/documents")).json()["items"]
        body = {"document_ids": [one["document_id"] for one in listed], "add": {"tags": [f"t{number}"]}}
        return await ann.post(f"{BASES}/{base}/documents/metadata", json=body)

    for turn in range(3):
        for path in paths:
            assert (await put(ann, base, path, f"Text {turn} of {path}.\n")).status == 202
        rule = {"pattern": "docs/*", "field": "subject", "value": f"s{turn}"}
        edits = [edit(2 * turn), edit(2 * turn + 1), put_rules(running, ann, base, rule), running.run_jobs()]
        replies = [one for one in await asyncio.gather(*edits) if isinstance(one, Reply)]
        assert {one.status for one in replies} <= {200, 202, 404}, [one.body for one in replies]
        await running.run_jobs()
    listed = (await ann.get(f"{BASES}/{base}/documents")).json()["items"]
    assert {one["metadata"]["subject"] for one in listed} == {"s2"}
    assert len(listed) == len(paths)
