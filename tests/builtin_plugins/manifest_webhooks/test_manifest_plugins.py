"""Manifest files as plugins: they come, change and go within two seconds, and harm no one else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from builtin_plugins.accounts.api import ACCOUNTS
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import Plugin
from kernel.testing import Running, Start
from tests.builtin_plugins.manifest_webhooks.webhook_support import (
    drop,
    folder_of,
    hits,
    manifest,
    names,
    send,
    until,
)
from tests.fakes.gated_embeddings import GatedEmbeddings
from tests.fakes.hash_embeddings import HashEmbeddings

PLUGINS = ("owner_secrets", "plugin_registry", "manifest_webhooks")


class Taken(Plugin):
    """A plugin made of code whose name a manifest could have."""

    name = "taken"


def bomb() -> str:
    """A document of a few hundred bytes that would grow to 10^9 values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 9):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]")
    return "\n".join(lines)


async def record(running: Running, name: str) -> dict[str, Any]:
    """The plugin's record; empty when there is none."""
    answer = await running.anonymous.get(f"/v1/plugins/{name}")
    return dict(answer.json()) if answer.status == 200 else {}


async def answers(running: Running, path: str, status: int) -> bool:
    return (await send(running.anonymous, path, {"text": "x"})).status == status


async def gone(running: Running, name: str) -> bool:
    return await record(running, name) == {}


@pytest.fixture
def folder(platform_home: Path) -> Path:
    return platform_home / "manifests"


class TestRefused:
    async def test_bad_files_harm_no_good_one(self, start_platform: Start, folder: Path) -> None:
        drop(folder, "a-good.yaml", manifest())
        drop(folder, "b-broken.yaml", "apiVersion: [")
        drop(folder, "c-invalid.yaml", manifest("invalid", "no-slash"))
        drop(folder, "d-same-path.yaml", manifest("second", "/notes"))
        drop(folder, "e-same-name.yaml", manifest("notes", "/elsewhere"))
        drop(folder, "f-taken.yaml", manifest("taken", "/taken"))
        drop(folder, "g-reserved.yaml", manifest("schema", "/reserved"))
        drop(folder, "h-bomb.yaml", bomb())
        with (folder / "i-huge.yaml").open("wb") as huge:
            huge.truncate(50 * 1024 * 1024)
        running = await start_platform(*PLUGINS, HashEmbeddings(), Taken)
        reasons = {
            "b-broken.yaml": "not YAML",
            "c-invalid.yaml": "spec -> trigger -> webhook -> path",
            "d-same-path.yaml": "the webhook path /notes is also declared in a-good.yaml",
            "e-same-name.yaml": "the name notes is also declared in a-good.yaml",
            "f-taken.yaml": "the name taken belongs to an installed plugin",
            "g-reserved.yaml": "the name schema belongs to",
            "h-bomb.yaml": "instead of repeating them with aliases",
            "i-huge.yaml": "52428800 bytes, more than",
        }
        health = (await running.anonymous.get("/health")).json()
        for file, reason in reasons.items():
            found = await record(running, file)
            assert found["status"] == "error" and reason in found["reason"], file
            assert health["plugins"][file]["reason"] == found["reason"]
        assert health["status"] == "healthy" and "b-broken.yaml" in health["checks"]["manifests"]
        assert (await record(running, "notes"))["status"] == "enabled"
        assert (await record(running, "taken"))["install_source"] == "package"
        assert await answers(running, "/notes", 200) and await answers(running, "/taken", 404)

    async def test_repaired_file(self, start_platform: Start, folder: Path) -> None:
        """A refused file that is mended goes live, and its complaint goes away."""
        drop(folder, "a.yaml", "nothing")
        running = await start_platform(*PLUGINS, HashEmbeddings())
        assert (await record(running, "a.yaml"))["status"] == "error"
        drop(folder, "a.yaml", manifest())
        await until(lambda: answers(running, "/notes", 200))
        assert await record(running, "a.yaml") == {}
        assert (await running.anonymous.get("/health")).json()["checks"]["manifests"] == "healthy"

    async def test_misspelt_secret(self, start_platform: Start, folder: Path) -> None:
        document = manifest()
        document["spec"]["trigger"]["webhook"]["secretref"] = "key"
        drop(folder, "a.yaml", document)
        running = await start_platform(*PLUGINS, HashEmbeddings())
        assert "secretRef" in (await record(running, "notes"))["reason"]
        assert "secretRef" in (await running.anonymous.get("/health")).json()["checks"]["manifests"]

    async def test_secret_that_opens_another(self, start_platform: Start, folder: Path) -> None:
        """A secret named like the replacement of another one opens its webhook: the record names both."""
        drop(folder, "a.yaml", manifest(secret="key.next"))
        running = await start_platform(*PLUGINS, HashEmbeddings())
        reason = (await record(running, "notes"))["reason"]
        assert "'key.next'" in reason and "'key'" in reason

    async def test_literal_placeholder(self, start_platform: Start, folder: Path) -> None:
        """An expression without its dot is stored unchanged: the record names it, with the remedy."""
        document = manifest()
        document["spec"]["action"]["store"]["input"]["text"] = "{{ .text }} by {{ author }}"
        drop(folder, "a.yaml", document)
        running = await start_platform(*PLUGINS, HashEmbeddings())
        reason = (await record(running, "notes"))["reason"]
        assert "spec -> action -> store -> input -> text (line 13): '{{ author }}'" in reason
        assert "{{ .author }}" in reason
        assert (await send(running.anonymous, "/notes", {"text": "x"})).status == 200

    async def test_missing_secrets(self, start_platform: Start, folder: Path) -> None:
        """The check names the command that sets one missing secret, or the one that lists several."""
        drop(folder, "a.yaml", manifest("github-issues", "/issues", secret="github-issues"))
        running = await start_platform(*PLUGINS, HashEmbeddings())
        checks = (await running.anonymous.get("/health")).json()["checks"]
        assert checks["manifests"].endswith("platformctl secret set github-issues")
        for number in range(4):
            drop(folder, f"b{number}.yaml", manifest(f"form-{number}", f"/form-{number}", secret="form"))
        await until(lambda: answers(running, "/form-3", 503))
        checks = (await running.anonymous.get("/health")).json()["checks"]
        assert checks["manifests"].startswith("5 ") and "(form-0, form-1, form-2, …)" in checks["manifests"]
        assert checks["manifests"].endswith("platformctl manifests list")


class TestLife:
    async def test_dropped_changed_removed(self, start_platform: Start, folder: Path) -> None:
        """A file takes effect within two seconds, whether it comes, changes or goes."""
        running = await start_platform(*PLUGINS, HashEmbeddings())
        assert await answers(running, "/notes", 404)
        path = drop(folder, "a.yaml", manifest())
        await until(lambda: answers(running, "/notes", 200))
        drop(folder, "a.yaml", manifest(path="/moved"))
        await until(lambda: answers(running, "/moved", 200))
        assert await answers(running, "/notes", 404)
        path.unlink()
        await until(lambda: gone(running, "notes"))
        assert await answers(running, "/moved", 404)

    async def test_renamed_while_a_delivery_is_under_way(self, start_platform: Start, folder: Path) -> None:
        """The file has another name when the delivery is to be stored: its sender would not send it again."""
        path, embeddings = drop(folder, "a.yaml", manifest()), GatedEmbeddings()
        running = await start_platform(*PLUGINS, embeddings)
        delivery = asyncio.create_task(send(running.anonymous, "/notes", {"text": "collected"}))
        await embeddings.arrived.wait()
        path.rename(folder / "b.yaml")
        embeddings.go.set()
        answer = await delivery
        assert answer.status == 200, answer.body
        assert [hit["text"] for hit in await hits(running.anonymous, "notes", "collected")] == ["collected"]

    async def test_removed_file_keeps_its_points(self, start_platform: Start, folder: Path) -> None:
        """Without the file the webhook and the action are gone; back again, what was collected is there."""
        path = drop(folder, "a.yaml", manifest())
        running = await start_platform(*PLUGINS, HashEmbeddings())
        await send(running.anonymous, "/notes", {"text": "collected"})
        path.unlink()
        await until(lambda: gone(running, "notes"))
        search = await running.anonymous.get("/v1/plugins/notes/actions/search?query=collected")
        assert search.status == 404 and await answers(running, "/notes", 404)
        drop(folder, "b.yaml", manifest())
        await until(lambda: answers(running, "/notes", 200))
        assert (await hits(running.anonymous, "notes", "collected"))[0]["text"] == "collected"


class TestAdministration:
    async def test_install(self, start_platform: Start, folder: Path) -> None:
        """An installed manifest is live at once, durable in the folder, and survives a restart."""
        running = await start_platform(*PLUGINS, HashEmbeddings())
        admin = await running.user(role="admin")
        answer = await admin.post("/v1/plugins/install", json=manifest())
        assert answer.status == 200
        assert answer.json() == {"message": "Plugin installed", "plugin": "notes", "webhook_path": "/notes"}
        assert await answers(running, "/notes", 200)
        assert names(folder) == ["notes.yaml"]
        again = await start_platform(*PLUGINS, HashEmbeddings())
        assert await answers(again, "/notes", 200)

    async def test_install_the_example(self, start_platform: Start, folder: Path) -> None:
        """The manifest that the API's documents show as the example of a body can be installed as it is."""
        running = await start_platform(*PLUGINS, "api_docs", HashEmbeddings())
        document = (await running.anonymous.get("/openapi.json")).json()
        body = document["paths"]["/v1/plugins/install"]["post"]["requestBody"]
        admin = await running.user(role="admin")
        answer = await admin.post("/v1/plugins/install", json=body["content"]["application/json"]["example"])
        assert answer.status == 200, answer.body

    async def test_install_yaml(self, start_platform: Start, folder: Path) -> None:
        """YAML is taken by its content type or by its first word; its comments are kept."""
        sample = Path(__file__).parents[3] / "manifests" / "samples" / "github-issues.yaml"
        text = sample.read_text(encoding="utf-8")
        running = await start_platform(*PLUGINS, HashEmbeddings())
        admin = await running.user(role="admin")
        headers = {"Content-Type": "application/x-yaml"}
        answer = await admin.post("/v1/plugins/install", data=text.encode(), headers=headers)
        assert answer.status == 200 and answer.json()["webhook_path"] == "/github/issues"
        assert (folder / "github-issues.yaml").read_text(encoding="utf-8") == text
        plain = "apiVersion: platform.dev/v1alpha1\n" + text[text.index("kind:") :].replace(
            "github", "gitlab"
        )
        headers = {"Content-Type": "application/json"}
        assert (await admin.post("/v1/plugins/install", data=plain.encode(), headers=headers)).status == 200

    async def test_install_refusals(self, start_platform: Start, folder: Path) -> None:
        drop(folder, "notes.yaml", manifest())
        running = await start_platform(*PLUGINS, HashEmbeddings(), Taken)
        admin = await running.user(role="admin")

        async def install(document: Any) -> tuple[int, Any]:
            body = {"data": document} if isinstance(document, bytes) else {"json": document}
            answer = await admin.post("/v1/plugins/install", **body)
            return answer.status, answer.detail

        nameless = manifest("other", "/other")
        del nameless["metadata"]["name"]
        wrong = manifest("other", "other")
        wrong["spec"]["action"]["type"] = "run-code"
        assert (await install(b"{"))[0] == 400
        assert (await install(b""))[0] == 400
        assert (await install(bomb().encode()))[0] == 400
        assert (await install(nameless))[0] == 400
        assert (await install(manifest()))[0] == 409
        assert (await install(manifest("taken", "/taken")))[0] == 409
        assert (await install(manifest("schema", "/schema")))[0] == 409
        status, detail = await install(manifest("other", "/notes"))
        assert status == 409 and "'notes'" in detail
        status, detail = await install(wrong)
        assert status == 422
        assert {item["path"] for item in detail} == {
            "spec -> action -> type",
            "spec -> trigger -> webhook -> path",
        }
        assert all(item["message"] and item["msg"] and item["loc"][0] == "body" for item in detail)
        assert names(folder) == ["notes.yaml"]

    async def test_install_never_overwrites(self, start_platform: Start, folder: Path) -> None:
        """A file that happens to bear the plugin's name, but holds something else, is left alone."""
        drop(folder, "notes.yaml", "mine, unfinished")
        running = await start_platform(*PLUGINS, HashEmbeddings())
        admin = await running.user(role="admin")
        assert (await admin.post("/v1/plugins/install", json=manifest())).status == 200
        assert (folder / "notes.yaml").read_text(encoding="utf-8") == "mine, unfinished"
        assert await answers(running, "/notes", 200)

    async def test_read_only_folder(self, start_platform: Start, platform_home: Path) -> None:
        drop(platform_home, "manifests", "not a folder")
        running = await start_platform(*PLUGINS, HashEmbeddings())
        admin = await running.user(role="admin")
        answer = await admin.post("/v1/plugins/install", json=manifest())
        assert answer.status == 503 and "manifests folder" in answer.detail

    @pytest.mark.parametrize("name", ["notes.yaml", "notes.json"])
    async def test_reload(self, start_platform: Start, folder: Path, name: str) -> None:
        """A newer manifest takes the place of the installed one, in its file, at once."""
        running = await start_platform(*PLUGINS, HashEmbeddings())
        admin = await running.user(role="admin")
        missing = await admin.post("/v1/plugins/reload-webhook", json=manifest())
        assert missing.status == 404
        drop(folder, name, json.dumps(manifest()))
        await until(lambda: answers(running, "/notes", 200))
        answer = await admin.post("/v1/plugins/reload-webhook", json=manifest(path="/newer"))
        assert answer.status == 200
        assert answer.json() == {
            "message": "Webhook reloaded",
            "webhook_path": "/webhook/newer",
            "registered_routes": ["/webhook/newer"],
        }
        assert await answers(running, "/newer", 200) and await answers(running, "/notes", 404)
        assert names(folder) == [name]

    async def test_uninstall(self, start_platform: Start, folder: Path) -> None:
        """File, webhook, record and every point are gone, in every process, and stay gone."""
        drop(folder, "a.yaml", manifest())
        drop(folder, "b.yaml", manifest("other", "/other"))
        running = await start_platform(*PLUGINS, HashEmbeddings())
        second = await start_platform(*PLUGINS, HashEmbeddings())
        admin = await running.user(role="admin")
        event = {"webhook-id": "e"}
        for path in ("/notes", "/other"):
            await send(running.anonymous, path, {"text": "collected"}, event)
        drop(folder, "a.yaml", manifest(collection="second-one"))
        await until(lambda: _collects_into(running, "second-one"))
        assert (await admin.delete("/v1/plugins/notes")).status == 200
        assert not (folder / "a.yaml").exists() and await record(running, "notes") == {}
        await until(lambda: answers(second, "/notes", 404))
        for collection in ("notes", "second-one"):
            assert await second.platform.resource(VECTORS).count(f"manifest:{collection}:notes") == 0
        assert [hit["text"] for hit in await hits(second.anonymous, "other", "collected")] == ["collected"]
        for name in ("notes", "n" * 3000):
            assert (await admin.delete(f"/v1/plugins/{name}")).status == 404
        await admin.post("/v1/plugins/install", json=manifest())
        assert await hits(running.anonymous, "notes", "collected") == []
        answer = await send(running.anonymous, "/notes", {"text": "collected"}, event)
        assert answer.status == 200 and len(await hits(running.anonymous, "notes", "collected")) == 1

    async def test_uninstall_amid_deliveries(
        self, start_platform: Start, folder: Path, database_url: str | None
    ) -> None:
        """Deliveries that race with the removal, in two processes, leave no point behind."""
        env = {"DATABASE_URL": database_url}
        path = drop(folder, "a.yaml", manifest())
        running = [await start_platform(*PLUGINS, HashEmbeddings(), env=env) for _ in range(2)]
        admin = await running[0].user(role="admin")
        for _ in range(5):
            drop(folder, path.name, manifest())
            for one in running:
                await until(lambda one=one: answers(one, "/notes", 200))  # type: ignore[misc]
            racing = [send(one.anonymous, "/notes", {"text": "late"}) for one in running for _ in range(10)]
            removal = admin.delete("/v1/plugins/notes")
            removed, *delivered = await asyncio.gather(removal, *racing)
            assert removed.status == 200
            assert {answer.status for answer in delivered} <= {200, 404}
            assert await running[1].platform.resource(VECTORS).count("manifest:notes:notes") == 0

    async def test_uninstall_after_the_file_is_gone(self, start_platform: Start, folder: Path) -> None:
        path = drop(folder, "a.yaml", manifest())
        running = await start_platform(*PLUGINS, HashEmbeddings())
        admin = await running.user(role="admin")
        await send(running.anonymous, "/notes", {"text": "x"})
        path.unlink()
        await until(lambda: gone(running, "notes"))
        assert (await admin.delete("/v1/plugins/notes")).status == 200
        assert await running.platform.resource(VECTORS).count("manifest:notes:notes") == 0

    async def test_uninstall_of_a_refused_file(self, start_platform: Start, folder: Path) -> None:
        outside = drop(folder.parent, "outside.yaml", "x")
        path = drop(folder, "bad.yaml", "x")
        running = await start_platform(*PLUGINS, HashEmbeddings())
        admin = await running.user(role="admin")
        for name in ("..%2Foutside.yaml", "good.yaml", "..", "%2E%2E"):
            assert (await admin.delete(f"/v1/plugins/{name}")).status in (404, 405)
        assert (await admin.delete("/v1/plugins/bad.yaml")).status == 200
        assert not path.exists() and outside.exists()

    async def test_disable_and_enable(self, start_platform: Start, folder: Path) -> None:
        """A disabled manifest takes nothing in any process and after a restart, until it is enabled."""
        drop(folder, "a.yaml", manifest(secret="key"))
        drop(folder, "b.yaml", manifest("other", "/other"))
        running = await start_platform(*PLUGINS, HashEmbeddings())
        second = await start_platform(*PLUGINS, HashEmbeddings())
        admin = await running.user(role="admin")
        assert (await admin.post("/v1/plugins/other/disable")).status == 200
        answer = await send(running.anonymous, "/other", {"text": "x"})
        assert answer.status == 403 and answer.json()["code"] == "plugin_disabled"
        await until(lambda: answers(second, "/other", 403))
        third = await start_platform(*PLUGINS, HashEmbeddings())
        assert await answers(third, "/other", 403)
        assert (await record(third, "other"))["status"] == "disabled"
        search = await third.anonymous.get("/v1/plugins/other/actions/search?query=x")
        assert search.status == 404
        assert (await admin.post("/v1/plugins/other/enable")).status == 200
        assert await answers(running, "/other", 200)
        await until(lambda: answers(third, "/other", 200))

    async def test_disabled_tells_only_who_proves_the_secret(
        self, start_platform: Start, folder: Path
    ) -> None:
        drop(folder, "a.yaml", manifest(secret="key"))
        running = await start_platform(*PLUGINS, HashEmbeddings())
        running.platform.secrets.set("key", "a long enough secret")
        admin = await running.user(role="admin")
        await admin.post("/v1/plugins/notes/disable")
        assert await answers(running, "/notes", 401)

    async def test_force_webhooks(self, start_platform: Start, folder: Path) -> None:
        """On the service's own port, the folder is read at once and every webhook is named."""
        running = await start_platform(*PLUGINS, HashEmbeddings(), only="plugin-registry")
        account = await running.platform.resource(ACCOUNTS).register(
            "ali", "ali@example.org", "a long password"
        )
        gateway = await start_platform(*PLUGINS, HashEmbeddings())
        user = await gateway.sign_in(account.username, "a long password")
        drop(folder, "a.yaml", manifest())
        for path in ("/v1/force-webhooks", "/force-webhooks"):
            url = running.url + path
            assert (await running.anonymous.post(url)).status == 401
            answer = await user.post(url)
            assert answer.status == 200 and answer.json()["webhooks"] == ["/webhook/notes"]


async def _collects_into(running: Running, collection: str) -> bool:
    answer = await send(running.anonymous, "/notes", {"text": "collected"})
    return bool(answer.json()["result"]["collection"] == collection)


async def test_record(start_platform: Start, folder: Path) -> None:
    """A manifest's record has every field of the wire, and its search is offered to models."""
    drop(folder, "a.yaml", manifest("my-notes"))
    running = await start_platform(*PLUGINS, HashEmbeddings())
    found = await record(running, "my-notes")
    assert found.pop("registered_at").startswith("20")
    assert found == {
        "name": "my-notes",
        "version": "1.0.0",
        "description": "Notes",
        "author": "",
        "status": "enabled",
        "enabled": True,
        "dependencies": [],
        "capabilities": ["webhook", "store-vector", "search"],
        "data_sources": ["webhook:/notes"],
        "databases": ["vectors:notes"],
        "health_status": "unknown",
        "last_health_check": None,
        "health_changed_at": None,
        "install_source": "manifest",
        "required_tier": "community",
        "reason": None,
    }
    tools = (await running.anonymous.get("/v1/plugins/ai/tools")).json()["tools"]
    assert [tool["function"]["name"] for tool in tools] == ["my_notes_search"]
    assert tools[0]["metadata"] == {
        "plugin": "my-notes",
        "kind": "action",
        "tier": "community",
        "endpoint": "/v1/plugins/my-notes/actions/search",
        "method": "GET",
        "access": "authenticated",
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }
    parameters = tools[0]["function"]["parameters"]
    assert parameters["required"] == ["query"]
    assert parameters["properties"]["limit"]["type"] == "integer"


async def test_folder_moves_with_its_setting(
    start_platform: Start, platform_home: Path, tmp_path: Path
) -> None:
    drop(platform_home / "manifests", "a.yaml", manifest())
    drop(tmp_path / "mine", "a.yaml", manifest("other", "/other"))
    env = {"PLATFORM_MANIFESTS_DIR": str(tmp_path / "mine")}
    running = await start_platform(*PLUGINS, HashEmbeddings(), env=env)
    assert await answers(running, "/other", 200) and await answers(running, "/notes", 404)
    assert folder_of(running).is_dir()
