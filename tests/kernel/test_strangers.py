"""Packages by somebody else, pip-installed beside the platform: one that works, many that do not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.fakes.processes import Served, served_platform, without_plugins
from tests.fakes.waiting import eventually

REASONS = {
    "blocks_at_open": "opening 'blocked' blocked the whole process",
    "blocks_on_start": "on_start blocked the whole process",
    "claims_table": "table 'kernel_account' belongs to 'kernel'",
    "fails_at_import": "it can't be imported: RuntimeError: the license file is missing",
    "hangs_at_import": "it did not finish loading within 1 s",
    "hangs_at_open": "opening 'never' took longer than 1 s",
    "misspells_hook": "there is no hook 'register_rotues'; did you mean 'register_routes'?",
    "needs_broken": "it requires the plugin 'fails_at_import', which is failed: it can't be imported",
    "needs_missing": "it requires the plugin 'telepathy', which is not installed",
    "open_route": "GET /v1/open does not say who may use it",
    "raises_in_hook": "register_routes raised KeyError: 'routes'",
    "wrong_api_version": "it is written for plugin API 99.0",
    "wrong_setting": "WRONG_SIZE (setting 'wrong_setting.size'): Input should be greater than or equal to 1",
}


def environment(packages: Path, **more: str) -> dict[str, str]:
    """These packages, and none of the built-in plugins: a busy machine may not load those within a second."""
    return {
        "PYTHONPATH": str(packages),
        "PLATFORM_PLUGIN_START_TIMEOUT": "1",
        **without_plugins(),
        **more,
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crowd(stranger_packages: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    home = tmp_path_factory.mktemp("crowd") / "home"
    async with served_platform(home, "--no-worker", env=environment(stranger_packages)) as served:
        yield served


@pytest.mark.asyncio(loop_scope="module")
class TestCrowd:
    async def test_each_reason_is_told(self, crowd: Served) -> None:
        """/health names every misbehaving plugin with the reason for which it is out of service."""
        status, health = await crowd.get("/health")
        told = {name: health["plugins"][name]["reason"] for name in REASONS}
        assert {name: told[name] for name in REASONS if REASONS[name] not in (told[name] or "")} == {}
        assert (status, health["status"]) == (200, "degraded")

    async def test_the_platform_serves(self, crowd: Served) -> None:
        assert (await crowd.get("/v1/auth/capabilities"))[0] == 200
        assert (await crowd.get("/v1/bookmarks"))[0] == 401
        assert (await crowd.get("/v1/open"))[0] == 404

    async def test_the_good_neighbour_is_in_service(self, crowd: Served) -> None:
        """A plugin that does everything right is loaded beside them."""
        _, health = await crowd.get("/health")
        assert health["plugins"]["bookmarks"] == {"status": "loaded", "reason": None}
        assert health["checks"]["bookmarks_room"] == "healthy"

    async def test_the_process_was_replaced_not_doubled(self, crowd: Served) -> None:
        """A plugin that blocks the loop costs a restart in place: the process is still the one we started."""
        assert crowd.process.returncode is None
        assert crowd.process.output().count("starting again") == 2


class TestQuarantine:
    async def test_a_new_version_is_tried_again(self, stranger_packages: Path, tmp_path: Path) -> None:
        """A plugin that blocked the loop in another version of its package gets another chance."""
        home = tmp_path / "home"
        _write_quarantine(home, blocks_on_start="0.9.0", blocks_at_open="1.0.0")
        async with served_platform(home, "--no-worker", env=environment(stranger_packages)) as served:
            _, health = await served.get("/health")
            output = served.process.output()
        assert health["plugins"]["blocks_at_open"]["reason"] == "kept out by the test"
        assert REASONS["blocks_on_start"] in health["plugins"]["blocks_on_start"]["reason"]
        assert output.count("starting again") == 1

    async def test_a_damaged_file_keeps_nobody_out(self, sample_package: Path, tmp_path: Path) -> None:
        """A quarantine file that can't be read does not stop the start."""
        home = tmp_path / "home"
        _write_quarantine(home)
        (home / "run" / "quarantine.json").write_text("{[")
        async with served_platform(home, "--no-worker", env=environment(sample_package)) as served:
            _, health = await served.get("/health")
        assert health["plugins"]["bookmarks"]["status"] == "loaded"


def _write_quarantine(home: Path, **versions: str) -> None:
    (home / "run").mkdir(parents=True)
    entries: dict[str, Any] = {
        name: {"version": version, "reason": "kept out by the test"} for name, version in versions.items()
    }
    (home / "run" / "quarantine.json").write_text(json.dumps(entries))


class TestSample:
    async def test_everything_that_it_offers_works(self, sample_package: Path, tmp_path: Path) -> None:
        """Routes, permission, table, setting and health check of a package that knows `kernel.sdk` alone."""
        env = {
            "PYTHONPATH": str(sample_package),
            "BOOKMARKS_LIMIT": "1",
            **without_plugins("plugin_registry", "api_docs"),
        }
        async with served_platform(tmp_path / "home", "--no-worker", env=env) as served:
            headers = await served.sign_up()
            made = {"address": "https://example.org/a", "title": "A page", "note": "read on Monday"}
            async with served.session.post(
                served.url + "/v1/bookmarks", json=made, headers=headers
            ) as answer:
                assert answer.status == 201, await answer.text()
            status, page = await served.get("/v1/bookmarks", headers=headers)
            assert (status, page["total"], page["items"][0]["note"]) == (200, 1, "read on Monday")
            async with served.session.post(
                served.url + "/v1/bookmarks",
                json={**made, "address": "https://example.org/b"},
                headers=headers,
            ) as answer:
                assert (answer.status, (await answer.json())["code"]) == (409, "bookmarks_full")

            async def is_full() -> bool:  # what /health answers may be seconds old
                _, health = await served.get("/health")
                return "raise BOOKMARKS_LIMIT" in health["checks"]["bookmarks_room"]

            await eventually(is_full)
            _, document = await served.get("/openapi.json")
            assert document["paths"]["/v1/bookmarks"]["post"]["responses"]["201"]
            find = "/v1/plugins/bookmarks/actions/find"
            status, found = await served.get(find, params={"words": "monday"}, headers=headers)
            assert (status, [item["title"] for item in found["result"]["bookmarks"]]) == (200, ["A page"])
            _, tools = await served.get("/v1/plugins/ai/tools")
            assert any("bookmarks" in json.dumps(tool) for tool in tools["tools"])
            _, entry = await served.get("/v1/plugins/bookmarks")
            assert (entry["version"], entry["status"]) == ("1.0.0", "enabled")

    async def test_its_parser(self, sample_package: Path, tmp_path: Path) -> None:
        """A document of the plugin's own type is ingested by its parser, in a worker process."""
        env = {"PYTHONPATH": str(sample_package), **without_plugins("rag", "embeddings")}
        async with served_platform(tmp_path / "home", env=env) as served:
            headers = await served.sign_up()
            base = served.url + "/v1/rag/knowledge-bases"
            async with served.session.post(base, json={"name": "Links"}, headers=headers) as answer:
                base += f"/{(await answer.json())['id']}"
            form = aiohttp.FormData()
            form.add_field("file", URI_LIST, filename="links.uris", content_type="application/octet-stream")
            async with served.session.post(base + "/upload", data=form, headers=headers) as answer:
                assert answer.status == 202, await answer.text()
                document = (
                    base.removeprefix(served.url) + f"/documents/{(await answer.json())['document_id']}"
                )

            async def ingested() -> bool:
                return (await served.get(document, headers=headers))[1]["status"] != "processing"

            await eventually(ingested, 60)
            _, record = await served.get(document, headers=headers)
            assert (record["status"], record["content_type"]) == ("completed", "text/uri-list")
            _, chunks = await served.get(document + "/chunks", headers=headers)
            text = " ".join(item["text"] for item in chunks["items"])
            assert "https://example.org/kernel" in text and "about kernels" in text


URI_LIST = b"""# uri-list
# about kernels
https://example.org/kernel
https://example.org/plugins
"""
