"""Webhooks of manifest plugins over HTTP: stored once, durable, searchable, and refused with a reason."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from builtin_plugins.manifest_webhooks.models import EventRow
from builtin_plugins.manifest_webhooks.storing import EVENT_RETENTION
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import Unavailable, utc_now
from kernel.testing import Running, Start
from tests.builtin_plugins.manifest_webhooks.webhook_support import (
    drop,
    folder_of,
    github_headers,
    hits,
    make_older,
    manifest,
    send,
    standard_headers,
)
from tests.fakes.hash_embeddings import DIMENSION, HashEmbeddings

PLUGINS = ("owner_secrets", "plugin_registry", "manifest_webhooks")
KEY = b"a secret of the operator's choice"


async def notes(start_platform: Start, home: Path, *documents: dict[str, Any], **options: Any) -> Running:
    """A platform whose folder already holds these manifests."""
    for number, document in enumerate(documents or [manifest()]):
        drop(home / "manifests", f"{number}.yaml", document)
    embeddings = options.pop("embeddings", None) or HashEmbeddings()
    return await start_platform(*PLUGINS, embeddings, **options)


async def count(running: Running, collection: str = "manifest:notes:notes") -> int:
    return await running.platform.resource(VECTORS).count(collection)


async def test_stored_and_found(start_platform: Start, platform_home: Path) -> None:
    """A delivery becomes a point with its rendered metadata, and the plugin's search finds it."""
    document = manifest(text="{{ .title }}: {{ .body }}", metadata={"author": "{{ .by }}", "tags": ["a"]})
    running = await notes(start_platform, platform_home, document)
    client = running.anonymous
    answer = await send(client, "/notes", {"title": "Leak", "body": "water in room 4", "by": "ayse"})
    await send(client, "/notes", {"title": "Lunch", "body": "soup and bread", "by": "ali"})
    assert answer.status == 200
    body = answer.json()
    assert body["plugin"] == "notes"
    assert body["result"] == {
        "point_id": body["result"]["point_id"],
        "collection": "notes",
        "text_length": len("Leak: water in room 4"),
        "metadata": {"author": "ayse", "tags": ["a"]},
        "embedding_dim": DIMENSION,
    }
    best = (await hits(client, "notes", "water in the room"))[0]
    assert best["point_id"] == body["result"]["point_id"]
    assert best["text"] == "Leak: water in room 4"
    assert best["metadata"] == {"author": "ayse", "tags": ["a"]}
    assert best["timestamp"].startswith(str(utc_now().year)) and 0 < best["score"] <= 1


async def test_search_sees_own_points_only(start_platform: Start, platform_home: Path) -> None:
    """Two plugins that name one collection do not find each other's points; `limit` bounds the hits."""
    running = await notes(start_platform, platform_home, manifest(), manifest("other", "/other"))
    for number in range(3):
        await send(running.anonymous, "/notes", {"text": f"mine {number}"})
    await send(running.anonymous, "/other", {"text": "mine too"})
    assert {hit["text"] for hit in await hits(running.anonymous, "notes", "mine")} == {
        "mine 0",
        "mine 1",
        "mine 2",
    }
    assert [hit["text"] for hit in await hits(running.anonymous, "other", "mine")] == ["mine too"]
    assert len(await hits(running.anonymous, "notes", "mine", limit=2)) == 2


@pytest.mark.parametrize(("declared", "anonymous"), [(None, 401), ("authenticated", 401), ("public", 200)])
async def test_who_may_search(
    start_platform: Start, platform_home: Path, declared: str | None, anonymous: int
) -> None:
    """What was collected is read with a token, unless the manifest says that it is public."""
    changes = {"search": declared} if declared else {}
    running = await notes(start_platform, platform_home, manifest(**changes))
    await send(running.anonymous, "/notes", {"text": "a name and an address"})
    path = "/v1/plugins/notes/actions/search?query=address"
    answer = await running.anonymous.get(path)
    assert answer.status == anonymous and (b"a name" in answer.body) is (anonymous == 200)
    assert (await running.anonymous.post(path, json={"query": "address"})).status == 401
    assert b"a name" in (await (await running.user()).get(path)).body


async def test_form_fields(start_platform: Start, platform_home: Path) -> None:
    """An urlencoded form is a payload too."""
    running = await notes(start_platform, platform_home)
    answer = await running.anonymous.post("/webhook/notes", data={"text": "from a form"})
    assert answer.status == 200 and answer.json()["result"]["text_length"] == len("from a form")


class TestEvents:
    async def test_repeated_event_is_stored_once(self, start_platform: Start, platform_home: Path) -> None:
        """The second delivery of an event answers the first one's point; nothing is embedded or stored."""
        embeddings = HashEmbeddings()
        running = await notes(start_platform, platform_home, embeddings=embeddings)
        first = await send(running.anonymous, "/notes", {"text": "once"}, {"webhook-id": "e1"})
        second = await send(running.anonymous, "/notes", {"text": "once"}, {"webhook-id": "e1"})
        other = await send(running.anonymous, "/notes", {"text": "once"}, {"webhook-id": "e2"})
        assert first.json() == second.json() and first.status == second.status == 200
        assert other.json()["result"]["point_id"] != first.json()["result"]["point_id"]
        assert (await count(running), embeddings.calls) == (2, 2)

    async def test_concurrent_duplicates(
        self, start_platform: Start, platform_home: Path, database_url: str | None
    ) -> None:
        """Duplicates that arrive together, at two processes, end as one point with one answer."""
        env = {"DATABASE_URL": database_url}
        one = await notes(start_platform, platform_home, env=env)
        two = await start_platform(*PLUGINS, HashEmbeddings(), env=env)
        await send(one.anonymous, "/notes", {"text": "before"})
        calls = [
            send(running.anonymous, "/notes", {"text": "rush"}, {"webhook-id": "e1"})
            for running in (one, two)
            for _ in range(8)
        ]
        answers = await asyncio.gather(*calls)
        assert [answer.status for answer in answers] == [200] * 16
        assert len({answer.json()["result"]["point_id"] for answer in answers}) == 1
        assert await count(one) == 2

    async def test_event_without_id(self, start_platform: Start, platform_home: Path) -> None:
        """Without an id each delivery is a new point, equal or not."""
        running = await notes(start_platform, platform_home)
        answers = [await send(running.anonymous, "/notes", {"text": "again"}) for _ in range(2)]
        assert len({answer.json()["result"]["point_id"] for answer in answers}) == 2

    async def test_same_id_at_two_plugins(self, start_platform: Start, platform_home: Path) -> None:
        running = await notes(start_platform, platform_home, manifest(), manifest("other", "/other"))
        for path in ("/notes", "/other"):
            assert (await send(running.anonymous, path, {"text": "x"}, {"webhook-id": "e"})).status == 200
        assert await count(running) == await count(running, "manifest:notes:other") == 1

    async def test_old_events_are_forgotten(self, start_platform: Start, platform_home: Path) -> None:
        running = await notes(start_platform, platform_home)
        await send(running.anonymous, "/notes", {"text": "x"}, {"webhook-id": "e"})
        await make_older(running, EVENT_RETENTION / 2)
        await send(running.anonymous, "/notes", {"text": "y"}, {"webhook-id": "fresh"})
        await make_older(running, EVENT_RETENTION / 2)
        query = select(EventRow.event_id)
        assert await running.platform.database.read(lambda session: session.scalars(query).all()) == ["fresh"]
        assert await count(running) == 2


class TestProofs:
    @pytest.mark.parametrize("sign", [standard_headers, github_headers])
    async def test_change_of_a_secret(self, start_platform: Start, platform_home: Path, sign: Any) -> None:
        """While the next secret is set both are accepted; without a first one it opens nothing."""
        running = await notes(start_platform, platform_home, manifest(secret="notes.key"))
        secrets, new, body = running.platform.secrets, b"the secret that follows", b'{"text": "proved"}'

        async def statuses(*keys: bytes) -> list[int]:
            headers = [sign(key, body, f"d{number}") for number, key in enumerate(keys)]
            return [(await send(running.anonymous, "/notes", body, one)).status for one in headers]

        secrets.set("notes.key.next", new.decode() + "\n")
        assert await statuses(new) == [503]
        secrets.set("notes.key", KEY.decode())
        assert await statuses(KEY, new, b"another key") == [200, 200, 401]
        secrets.set("notes.key", new.decode())
        secrets.remove("notes.key.next")
        assert await statuses(KEY, new) == [401, 200]

    async def test_secret_that_is_not_set(self, start_platform: Start, platform_home: Path) -> None:
        running = await notes(start_platform, platform_home, manifest(secret="notes.key"))
        body = json.dumps({"text": "later"}).encode()
        answer = await send(running.anonymous, "/notes", body, standard_headers(KEY, body))
        assert answer.status == 503 and "platformctl secret set notes.key" in answer.detail
        health = (await running.anonymous.get("/health")).json()
        assert health["status"] == "healthy" and "notes.key" in health["checks"]["manifests"]
        assert "notes.key" in health["plugins"]["notes"]["reason"]
        record = (await running.anonymous.get("/v1/plugins/notes")).json()
        assert record["health_status"] == "unhealthy" and "notes.key" in record["reason"]
        running.platform.secrets.set("notes.key", KEY.decode())
        assert (await send(running.anonymous, "/notes", body, standard_headers(KEY, body))).status == 200
        assert (await running.anonymous.get("/health")).json()["checks"]["manifests"] == "healthy"


class TestRefusals:
    async def test_unknown_path(self, start_platform: Start, platform_home: Path) -> None:
        """A path of no manifest is 404, and so is one that only begins like a manifest's."""
        running = await notes(start_platform, platform_home)
        for path in ("/nowhere", "/notes/more", "/note"):
            assert (await send(running.anonymous, path, {"text": "x"})).status == 404

    async def test_body_over_the_cap(self, start_platform: Start, platform_home: Path) -> None:
        """More than MAX_WEBHOOK_BODY_SIZE_MB is 413, announced or not; the cap itself still passes."""
        running = await notes(start_platform, platform_home)

        async def chunked() -> Any:
            for _ in range(20):
                yield b"x" * 100_000

        large = io.BytesIO(b" " * (1024 * 1024 + 1))
        assert (await running.anonymous.post("/webhook/notes", data=large)).status == 413
        assert (await running.anonymous.post("/webhook/notes", data=chunked())).status == 413
        padded = io.BytesIO(json.dumps({"text": "x"}).encode().ljust(1024 * 1024))
        headers = {"Content-Type": "application/json"}
        answer = await running.anonymous.post("/webhook/notes", data=padded, headers=headers)
        assert answer.status == 200

    async def test_missing_field(self, start_platform: Start, platform_home: Path) -> None:
        """A payload without what a template asks for is 422 naming the path; nothing is stored."""
        document = manifest(text="{{ .issue.title }}", metadata={"who": "{{ .user }}"})
        running = await notes(start_platform, platform_home, document)
        answer = await send(running.anonymous, "/notes", {"issue": {}, "user": "ali"})
        assert answer.status == 422
        assert answer.detail[0]["loc"] == ["body", "issue", "title"]
        assert ".issue.title" in answer.detail[0]["msg"] and "missing" in answer.detail[0]["msg"]
        answer = await send(running.anonymous, "/notes", {"issue": {"title": "x"}, "user": None})
        assert answer.status == 422 and answer.detail[0]["loc"] == ["body", "user"]
        assert await count(running) == 0

    async def test_empty_text(self, start_platform: Start, platform_home: Path) -> None:
        """A text of white space is 422: there is nothing to find later."""
        running = await notes(start_platform, platform_home)
        answer = await send(running.anonymous, "/notes", {"text": "  \n"})
        assert answer.status == 422 and "empty" in answer.detail[0]["msg"]

    async def test_no_embeddings(self, start_platform: Start, platform_home: Path) -> None:
        """Without a plugin that embeds, or for a model nobody has, the answer is 503 naming the model."""
        drop(platform_home / "manifests", "a.yaml", manifest(model="nomic-embed-text"))
        running = await start_platform(*PLUGINS)
        answer = await send(running.anonymous, "/notes", {"text": "x"})
        assert answer.status == 503 and "nomic-embed-text" in answer.detail

    @pytest.mark.parametrize("error", [RuntimeError("secret path /etc"), Unavailable("being loaded")])
    async def test_failing_engine(self, start_platform: Start, platform_home: Path, error: Exception) -> None:
        """An engine that fails is 503 without its inner text, and the event may be sent again."""
        embeddings = HashEmbeddings()
        running = await notes(start_platform, platform_home, embeddings=embeddings)

        def fail() -> None:
            raise error

        embeddings.before = fail
        answer = await send(running.anonymous, "/notes", {"text": "x"}, {"webhook-id": "e"})
        assert answer.status == 503 and "secret path" not in answer.detail
        embeddings.before = lambda: None
        assert (await send(running.anonymous, "/notes", {"text": "x"}, {"webhook-id": "e"})).status == 200

    async def test_another_engine(self, start_platform: Start, platform_home: Path) -> None:
        """Vectors of two engines never meet: 409 with the way out, for storing and for searching."""
        running = await notes(start_platform, platform_home)
        await send(running.anonymous, "/notes", {"text": "old"})
        later = await start_platform(*PLUGINS, HashEmbeddings("hash-2"))
        answer = await send(later.anonymous, "/notes", {"text": "new"})
        assert answer.status == 409 and "collection" in answer.detail
        user = await later.user()
        found = await user.get("/v1/plugins/notes/actions/search?query=old")
        assert found.status == 409

    async def test_mapped_model(self, start_platform: Start, platform_home: Path) -> None:
        """The operator may let another model stand for the one that a manifest names."""
        env = {"PLATFORM_WEBHOOK_EMBED_MODELS": "nomic-embed-text=all-minilm"}
        running = await notes(start_platform, platform_home, manifest(model="nomic-embed-text"), env=env)
        assert (await send(running.anonymous, "/notes", {"text": "x"})).status == 200

    @pytest.mark.parametrize("header", ["Bearer nope", "Basic Og==", "Digest x", ""])
    async def test_credentials_for_a_proxy(
        self, start_platform: Start, platform_home: Path, header: str
    ) -> None:
        """Credentials that a proxy in front has checked are none of this platform's."""
        running = await notes(start_platform, platform_home)
        answer = await send(running.anonymous, "/notes", {"text": "x"}, {"Authorization": header})
        assert answer.status == 200 and await count(running) == 1


ALERTS = {"host": "db", "alerts": [{"name": "disk full"}, {"name": "load high"}, {"other": 1}]}


class TestLists:
    """`forEach`: one record for each item of a list."""

    @staticmethod
    async def started(start_platform: Start, home: Path, **changes: Any) -> Running:
        text = "{{ .host }}: {{ .item.name }}"
        return await notes(start_platform, home, manifest(text=text, for_each=".alerts", **changes))

    async def test_items(self, start_platform: Start, platform_home: Path) -> None:
        """Items that lack a value are skipped; those that were stored before stay the same points."""
        text = "{{ .host }}: {{ .item.name }}"
        document = manifest(text=text, for_each=".alerts", on_missing="skip")
        running = await notes(start_platform, platform_home, document)
        first = (await send(running.anonymous, "/notes", ALERTS)).json()["results"]
        assert [one["text_length"] for one in first] == [13, 13]
        more = {**ALERTS, "alerts": [{"name": "load high"}, {"name": "mail stuck"}, {"name": "load high"}]}
        second = (await send(running.anonymous, "/notes", more)).json()["results"]
        assert second[0]["point_id"] == first[1]["point_id"]
        assert (len(second), await count(running)) == (2, 3)

    async def test_deliveries_with_an_id(self, start_platform: Start, platform_home: Path) -> None:
        """A repeated delivery is stored once, and a different one again, whatever it holds."""
        running = await self.started(start_platform, platform_home, on_missing="skip")
        answers = [await send(running.anonymous, "/notes", ALERTS, {"webhook-id": one}) for one in "aab"]
        points = [[one["point_id"] for one in answer.json()["results"]] for answer in answers]
        assert points[0] == points[1] and not set(points[1]) & set(points[2])

    @pytest.mark.parametrize(
        ("payload", "loc"),
        [
            ({"host": "db", "alerts": {"name": "x"}}, ["body", "alerts"]),
            ({"host": "db", "alerts": [{"name": "x"}] * 501}, ["body", "alerts"]),
            ({"host": "db"}, ["body", "alerts"]),
            ({"host": "db", "alerts": []}, ["body", "alerts"]),
            (ALERTS, ["body", "item", "name"]),
        ],
    )
    async def test_unfit(
        self, start_platform: Start, platform_home: Path, payload: dict[str, Any], loc: list[str]
    ) -> None:
        """What is no list, too long, empty, or has an unfit item is refused as a whole."""
        running = await self.started(start_platform, platform_home)
        answer = await send(running.anonymous, "/notes", payload)
        assert (answer.status, answer.json()["detail"][0]["loc"]) == (422, loc)
        assert await count(running) == 0


async def test_on_the_service_itself(start_platform: Start, platform_home: Path) -> None:
    """The registry's service alone, as on its own machine, answers webhooks too, without a token."""
    running = await notes(start_platform, platform_home, only="plugin-registry")
    assert (await send(running.anonymous, "/notes", {"text": "x"})).status == 200


async def test_without_the_registry(start_platform: Start, platform_home: Path) -> None:
    """With no plugin registry installed, webhooks still work."""
    drop(platform_home / "manifests", "a.yaml", manifest())
    running = await start_platform("manifest_webhooks", HashEmbeddings())
    assert (await send(running.anonymous, "/notes", {"text": "x"})).status == 200


async def test_restart(start_platform: Start, platform_home: Path) -> None:
    """What one process stored, another finds, and an event it knew stays known."""
    first = await notes(start_platform, platform_home)
    before = await send(first.anonymous, "/notes", {"text": "kept"}, {"webhook-id": "e"})
    second = await start_platform(*PLUGINS, HashEmbeddings())
    after = await send(second.anonymous, "/notes", {"text": "kept"}, {"webhook-id": "e"})
    assert after.json() == before.json()
    assert [hit["text"] for hit in await hits(second.anonymous, "notes", "kept")] == ["kept"]


async def test_removed_while_a_delivery_is_under_way(start_platform: Start, platform_home: Path) -> None:
    """A delivery whose manifest goes away before it is stored is 404, and leaves no point behind."""
    embeddings = HashEmbeddings()
    running = await notes(start_platform, platform_home, embeddings=embeddings)
    embeddings.before = (folder_of(running) / "0.yaml").unlink
    answer = await send(running.anonymous, "/notes", {"text": "late"}, {"webhook-id": "e"})
    assert answer.status == 404 and await count(running) == 0
