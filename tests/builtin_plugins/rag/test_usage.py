"""How much one account, and one organization, may store and queue, so that there is room for the others."""

from __future__ import annotations

import asyncio
import io
import zipfile

from kernel.testing import Start
from tests.builtin_plugins.rag.rag_support import ingest, make_base, path_of, somebody, upload
from tests.fakes.hash_embeddings import HashEmbeddings

PLUGINS = ("rag", HashEmbeddings())
MEGABYTE = 1024 * 1024
LINE = "The station on Senja was opened in 1921, and its light was kept for thirty years by one family.\n"


def text(megabytes: float, mark: str) -> str:
    """A text of this size that no other is the same as."""
    return mark + LINE * int(megabytes * MEGABYTE / len(LINE))


async def test_bytes(start_platform: Start, database_url: str | None) -> None:
    """The limit of an account holds across its knowledge bases, and for uploads sent at the same time;
    the refusal says what is used and allowed, deleting makes room, and others are not affected.
    """
    env = {"DATABASE_URL": database_url, "PLATFORM_RAG_ACCOUNT_STORAGE_MB": "1"}
    running = await start_platform(*PLUGINS, env=env)
    ann, ben = await somebody(running), await somebody(running)
    one, other = await make_base(ann), await make_base(ann)
    sent = [upload(ann, base, f"{at}.txt", text(0.4, str(at))) for at in range(4) for base in (one, other)]
    answers = await asyncio.gather(*sent)
    taken = [answer for answer in answers if answer.status == 202]
    assert len(taken) == 2
    refused = next(answer for answer in answers if answer.status != 202)
    assert (refused.status, refused.json()["code"]) == (413, "storage_limit")
    assert "0.8 of 1 MB" in refused.detail and "0.4" in refused.detail
    again = await upload(ann, one, "0.txt", text(0.4, "0"))
    assert again.status in (200, 413)
    assert (await upload(ben, await make_base(ben), "b.txt", text(0.4, "b"))).status == 202
    base = one if (await ann.get(f"/v1/rag/knowledge-bases/{one}/documents")).json()["items"] else other
    document = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"][0]
    assert (await ann.delete(path_of(base, document["document_id"]))).status == 200
    assert (await upload(ann, other, "n.txt", text(0.4, "n"))).status == 202


async def test_files_inside(start_platform: Start) -> None:
    """What an archive unpacks counts; what is too much is left out, and the notice says so."""
    running = await start_platform(*PLUGINS, env={"PLATFORM_RAG_ACCOUNT_STORAGE_MB": "1"})
    ann = await somebody(running)
    base = await make_base(ann)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for at in range(4):
            archive.writestr(f"{at}.txt", text(0.4, str(at)))
    own = await ingest(running, ann, base, "all.zip", packed.getvalue())
    items = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
    assert len(items) == 3  # the archive, and two of four
    assert own["status"] == "completed" and own["notice"].startswith("2 of 4 ")


async def test_passages(start_platform: Start) -> None:
    """A document whose passages are more than are left fails, and says why; its file can be deleted."""
    running = await start_platform(*PLUGINS, env={"PLATFORM_RAG_ACCOUNT_PASSAGES": "20"})
    ann = await somebody(running)
    base = await make_base(ann)
    await ingest(running, ann, base, "small.txt", text(0.01, "s"))
    await upload(ann, base, "large.txt", text(0.1, "l"))
    await running.run_jobs()
    items = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
    small, large = sorted(items, key=lambda one: int(one["size_bytes"]))
    assert (small["status"], large["status"]) == ("completed", "failed")
    assert f"{small['chunk_count']} of 20" in large["error"]


async def test_an_organizations(start_platform: Start) -> None:
    """What several members keep in an organization's knowledge bases counts together."""
    env = {"PLATFORM_RAG_ORGANIZATION_STORAGE_MB": "1"}
    running = await start_platform(*PLUGINS, "tenancy", env=env)
    boss = await running.user(role="admin")
    made = {"name": "Aurora", "slug": "aurora"}
    org = (await boss.post("/v1/organizations", json=made)).json()["id"]
    people = [await running.user() for _ in range(3)]
    for person in people:
        member = {"user_id": person.user["id"], "org_role": "member"}
        assert (await boss.post(f"/v1/organizations/{org}/members", json=member)).status == 201
    answers = []
    for at, person in enumerate(people):
        base = await make_base(person, visibility="organization", organization_id=org)
        answers.append((await upload(person, base, "a.txt", text(0.4, str(at)))).status)
    assert answers == [202, 202, 413]
    assert (await upload(people[2], await make_base(people[2]), "a.txt", text(0.4, "own"))).status == 202


async def test_what_waits(start_platform: Start) -> None:
    """Files that wait to be read are limited, too: 429 until some are read."""
    running = await start_platform(*PLUGINS, env={"PLATFORM_RAG_ACCOUNT_QUEUED_MB": "1"})
    ann = await somebody(running)
    base = await make_base(ann)
    answers = [await upload(ann, base, f"{at}.txt", text(0.4, str(at))) for at in range(3)]
    assert [answer.status for answer in answers] == [202, 202, 429]
    assert answers[2].json()["code"] == "queue_limit" and int(answers[2].headers["Retry-After"]) > 0
    await running.run_jobs()
    assert (await upload(ann, base, "2.txt", text(0.4, "2"))).status == 202


async def test_shown(start_platform: Start) -> None:
    """What an account and its organizations use is shown before anything is refused, and to no other."""
    env = {"PLATFORM_RAG_ACCOUNT_STORAGE_MB": "5", "PLATFORM_RAG_ACCOUNT_PASSAGES": "0"}
    running = await start_platform(*PLUGINS, "tenancy", env=env)
    boss, other = await running.user(role="admin"), await running.user()
    made = {"name": "Aurora", "slug": "aurora"}
    org = (await boss.post("/v1/organizations", json=made)).json()["id"]
    base = await make_base(boss, visibility="organization", organization_id=org)
    first, second = text(0.1, "a"), text(0.1, "b")
    document = await ingest(running, boss, base, "a.txt", first)
    await upload(boss, base, "b.txt", second)
    usage = (await boss.get("/v1/rag/usage")).json()
    stored = len(first) + len(second)
    assert usage["storage_bytes"] == {"used": stored, "limit": 5 * MEGABYTE}
    assert usage["passages"] == {"used": document["chunk_count"], "limit": None}
    assert usage["queued_bytes"] == {"used": len(second), "limit": 2000 * MEGABYTE}
    assert usage["streams"] == {"used": 0, "limit": 100}
    assert usage["organizations"] == [
        {
            "organization_id": org,
            "storage_bytes": {"used": stored, "limit": 100_000 * MEGABYTE},
            "passages": {"used": document["chunk_count"], "limit": 20_000_000},
        }
    ]
    theirs = (await other.get("/v1/rag/usage")).json()
    assert (theirs["storage_bytes"]["used"], theirs["organizations"]) == (0, [])
