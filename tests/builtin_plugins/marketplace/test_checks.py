"""The automatic checks of a submission: what a wheel says, what is wrong with it, and who sees that."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from functools import cache
from typing import Any

import aiohttp
import pytest

from kernel.testing import Actor, Reply
from tests.builtin_plugins.marketplace.conftest import Market
from tests.builtin_plugins.marketplace.marketplace_support import PLUGINS, SUBMISSIONS, bring, draft, move
from tests.builtin_plugins.tenancy.tenancy_support import fresh

pytestmark = pytest.mark.asyncio(loop_scope="session")

CLASS = "from kernel.sdk import Plugin\n\nclass ThePlugin(Plugin):\n    name = 'acme_tides'\n"
INFO = "acme_tides-1.2.dist-info"
POINTS = "[platform.plugins]\nacme_tides = acme_tides:ThePlugin\n"
METADATA = "Metadata-Version: 2.4\nName: acme-tides\nVersion: 1.2\n"
GOOD = {
    "acme_tides/__init__.py": CLASS,
    f"{INFO}/METADATA": METADATA + "License-Expression: apache-2.0\nRequires-Dist: aiohttp>=3\n",
    f"{INFO}/entry_points.txt": POINTS,
}
FILENAME = "acme_tides-1.2-py3-none-any.whl"
DESCRIPTION = "Tells the tides of every port of the coast."


def wheel(more: Mapping[str, str] | None = None) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in {**GOOD, **(more or {})}.items():
            archive.writestr(name, content)
    return packed.getvalue()


async def upload(actor: Actor, plugin_id: str, content: bytes, filename: str = FILENAME) -> Reply:
    form = aiohttp.FormData()
    form.add_field("file", io.BytesIO(content), filename=filename)
    return await actor.post(f"{SUBMISSIONS}/{plugin_id}/package", data=form)


async def checked(market: Market, files: Mapping[str, str], **fields: Any) -> dict[str, tuple[bool, str]]:
    """Submit a listing with a wheel; returns what each check said."""
    author = await market.user()
    defaults = {
        "package": "acme-tides",
        "version_range": ">=1,<2",
        "description": DESCRIPTION,
        "repository_url": "https://example.org/tides",
        **fields,
    }
    listing = await draft(author, **defaults)
    answer = await upload(author, listing["id"], wheel(files))
    assert answer.status == 200, answer.body
    submitted = await move(author, listing["id"], "submit")
    assert submitted.status == 200, submitted.body
    for trigger in ("claim", "approve", "archive"):  # the package's name is free again
        await move(market.admin, listing["id"], trigger)
    return {one["check"]: (one["ok"], one["message"]) for one in submitted.json()["checks"]}


async def test_a_good_plugin(market: Market) -> None:
    said = await checked(market, {"acme_tides/__init__.py": CLASS + "    api_version = 'platform.dev/v1'\n"})
    assert {name: ok for name, (ok, _) in said.items()} == dict.fromkeys(
        ("metadata", "source", "package", "license", "api_version", "names", "conflicts", "files"), True
    ), said
    assert "Apache-2.0" in said["license"][1]


@pytest.mark.parametrize(
    ("files", "fields", "check", "why"),
    [
        ({}, {"description": "Tides"}, "metadata", "fewer than 20 characters"),
        ({}, {"repository_url": None}, "source", "No repository_url"),
        ({}, {"package": "acme-other"}, "package", "'acme-tides'"),
        ({}, {"version_range": ">=2"}, "package", ">=2"),
        ({}, {"version_range": ">=x"}, "package", ">=x"),
        ({f"{INFO}/entry_points.txt": ""}, {}, "package", "entry point"),
        ({f"{INFO}/METADATA": METADATA}, {}, "license", "license"),
        (
            {"acme_tides/__init__.py": CLASS + "    api_version = '2.0'\n"},
            {},
            "api_version",
            " 2.0",
        ),
        (
            {"acme_tides/__init__.py": CLASS + "    api_version = 'platform.dev/v2'\n"},
            {},
            "api_version",
            "platform.dev/v2",
        ),
        ({"acme_tides/__init__.py": "class ("}, {}, "api_version", "can't be read"),
        (
            {f"{INFO}/entry_points.txt": "[platform.plugins]\nmarketplace = acme_tides:ThePlugin\n"},
            {},
            "names",
            "'marketplace'",
        ),
        (
            {f"{INFO}/entry_points.txt": POINTS + "  marketplace = acme_tides:ThePlugin\n"},
            {},
            "names",
            "'marketplace'",
        ),
        (
            {f"{INFO}/entry_points.txt": "[[platform.plugins]]\nmarketplace = acme_tides:ThePlugin\n"},
            {},
            "names",
            "'marketplace'",
        ),
        (
            {f"{INFO}/METADATA": METADATA + "License: MIT\nRequires-Dist: aiohttp<3\n"},
            {},
            "conflicts",
            "aiohttp<3",
        ),
        ({"acme.pth": "import os"}, {}, "files", "acme.pth"),
        ({"../../outside.py": ""}, {}, "files", "outside.py"),
        ({"kernel/sdk/__init__.py": ""}, {}, "files", "kernel/"),
        ({"aiohttp/__init__.py": ""}, {}, "files", "aiohttp/"),
        ({"acme_tides/.env": "KEY=1"}, {}, "files", "looks private"),
        ({"acme_tides/fast.so": "x"}, {}, "files", "is compiled"),
        ({"acme_tides-1.2.data/data/etc/x": ""}, {}, "files", "installed outside the package"),
    ],
)
async def test_what_is_wrong(
    market: Market, files: dict[str, str], fields: dict[str, Any], check: str, why: str
) -> None:
    """Each check names what it found; the submission is made all the same, as a person decides."""
    said = await checked(market, files, **fields)
    assert (said[check][0], why in said[check][1]) == (False, True), said
    assert [name for name, (ok, _) in said.items() if not ok] == [check]


async def test_a_package_that_is_listed_already(market: Market) -> None:
    """Two listings that name the same package, however it is written."""
    package = fresh("acme-port")
    author = await market.user()
    for owner, status in ((author, "submitted"), (await market.user(), "approved")):
        first = await bring(owner, market.admin, status, package=package)
        second = await bring(author, market.admin, "submitted", package=package.replace("-", "_"))
        said = next(one["message"] for one in second["checks"] if one["check"] == "names")
        assert f"'{package}'" in said and f"'{first['name']}'" in said


@pytest.mark.parametrize(
    ("status", "ok"), [("draft", True), ("rejected", True), ("submitted", False), ("in_review", False)]
)
async def test_a_package_of_a_hidden_listing(market: Market, status: str, ok: bool) -> None:
    """A listing that is not public is not named to another author, nor one that nobody reviews to anybody."""
    package = fresh("acme-quay")
    hidden = await bring(await market.user(), market.admin, status, package=package)
    mine = await bring(await market.user(), market.admin, "submitted", package=package)
    names = next(one for one in mine["checks"] if one["check"] == "names")
    assert names["ok"] is ok
    assert hidden["name"] not in names["message"]
    assert ("under review" in names["message"]) is not ok


async def test_who_sees_it(market: Market) -> None:
    """Author and reviewer see checks and wheel, nobody else, not even once it is approved."""
    author = await market.user()
    found = await draft(author, package="acme-tides")
    await upload(author, found["id"], wheel())
    await move(author, found["id"], "submit")
    queue = (await market.admin.get(f"{SUBMISSIONS}?limit=100")).json()["plugins"]
    mine = (await author.get(f"{SUBMISSIONS}/mine")).json()["plugins"]
    for seen in (mine[0], next(one for one in queue if one["id"] == found["id"])):
        assert (seen["wheel"]["filename"], seen["wheel"]["version"]) == (FILENAME, "1.2")
        assert len(seen["wheel"]["sha256"]) == 64
        assert seen["checks"]
    await move(market.admin, found["id"], "claim")
    await move(market.admin, found["id"], "approve")
    for reader in (market.running.anonymous, await market.user()):
        shown = (await reader.get(f"{PLUGINS}/{found['id']}")).json()
        assert (shown["wheel"], shown["checks"]) == (None, None)


@cache
def bomb() -> bytes:
    return wheel({"acme_tides/zeros.py": "\0" * 320_000_000})


@pytest.mark.parametrize(
    ("content", "filename", "why"),
    [
        (b"nonsense", FILENAME, "zip archive"),
        (wheel()[:-40], FILENAME, "zip archive"),
        (wheel(), "tides.zip", "file name"),
        (wheel({f"x-1.dist-info/{'METADATA'}": METADATA}), FILENAME, "METADATA"),
        (wheel({f"acme_tides/{n}.py": "" for n in range(5_001)}), FILENAME, "5000"),
        (wheel({f"{INFO}/METADATA": METADATA + "x" * 3_000_000}), FILENAME, "too large"),
        (wheel({f"{INFO}/entry_points.txt": POINTS + "nothing"}), FILENAME, "entry points"),
        (
            wheel({f"{INFO}/entry_points.txt": POINTS + "".join(f"p{n} = m:C\n" for n in range(20))}),
            FILENAME,
            " 20 plugins",
        ),
        (None, FILENAME, "300 MB"),
    ],
    ids=["nonsense", "cut", "name", "two", "many", "long", "unreadable points", "plugins", "bomb"],
)
async def test_files_that_are_no_wheel(
    market: Market, content: bytes | None, filename: str, why: str
) -> None:
    """What is no wheel, or a bomb, is 415 with the reason, and nothing is kept."""
    author = await market.user()
    found = await draft(author)
    answer = await upload(author, found["id"], bomb() if content is None else content, filename)
    assert (answer.status, json.loads(answer.body)["code"]) == (415, "not_a_wheel")
    assert why in answer.json()["detail"]
    assert (await author.get(f"{PLUGINS}/{found['id']}")).json()["wheel"] is None


async def test_when_a_wheel_can_be_sent(market: Market) -> None:
    """While the listing is a draft or rejected, by its author or an administrator."""
    author, eve = await market.user(), await market.user()
    found = await bring(author, market.admin, "submitted")
    assert (await upload(author, found["id"], wheel())).status == 409
    assert (await upload(eve, found["id"], wheel())).status == 404
    await move(market.admin, found["id"], "reject")
    assert (await upload(author, found["id"], wheel())).status == 200
    assert (await author.post(f"{SUBMISSIONS}/{found['id']}/package", json={})).status == 415
