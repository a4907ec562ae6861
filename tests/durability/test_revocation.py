"""How long somebody finds a document whose source has taken it from them, on a served platform."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

from builtin_plugins.accounts.verified_addresses import note_verified
from builtin_plugins.sources.api import SourceGrant, SourceGroup, SourcePerson
from kernel.sdk import Account, Unit
from kernel.sdk.accounts import TOKENS
from kernel.testing import Start
from tests.builtin_plugins.source_folder.test_posix_rights import acl
from tests.durability.test_kill_sources import Keeper
from tests.durability.test_kills import Server
from tests.fakes.intranet import Intranet, intranet_package
from tests.fakes.paced_embeddings import paced

pytestmark = [pytest.mark.durability, pytest.mark.long]

TIMES = 5
USER = "daemon"
AT_MOST, INTERVAL, LOOKS = 60.0, 15, 10.0
"""Seconds with a push; between readings of permissions without one; between looks whether one is due."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may pass."""
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


async def _token(start_platform: Start, home: Path) -> str:
    """Of an account with the proven address of the user `USER`."""
    running = await start_platform("rag", home=home, role="tool")

    def write(unit: Unit) -> str:
        email = f"{USER}@example.org"
        account = Account(username=USER, username_key=USER, email=email, email_key=email)
        unit.session.add(account)
        unit.session.flush()
        note_verified(unit, account, "operator")
        return running.platform.resource(TOKENS).mint(account, {})

    return await running.platform.database.write(write)


class Office(Keeper):
    """A knowledge base with guarded sources, and somebody who searches."""

    token = ""

    async def add(self, kind: str, settings: dict[str, object], rights_seconds: int) -> None:
        fields = {"settings": settings, "rights_seconds": rights_seconds}
        body = {"kind": kind, "name": kind, **fields}
        made = await self._call("POST", f"/v1/rag/knowledge-bases/{self.base}/sources", json=body)
        self.source = f"/v1/rag/sources/{made['id']}"
        await self.end()

    async def push_alone(self) -> str:
        """Where to push; nothing else counts within the next hour."""
        await self._call("PATCH", self.source, json={"rights_seconds": 3600})
        return str((await self._call("POST", f"{self.source}/push-address"))["path"])

    async def push(self, path: str) -> None:
        async with self._session.post(self._server.url + path) as answer:
            assert answer.status < 300

    async def finds(self, name: str) -> bool:
        """Whether the searcher finds a document by its name."""
        url = f"{self._server.url}/v1/rag/knowledge-bases/{self.base}/search"
        body = {"question": f"What does part {name} weigh?", "metadata_filter": {"filename": f"{name}.txt"}}
        headers = {"Authorization": f"Bearer {self.token}"}
        async with self._session.post(url, json=body, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            return bool((await answer.json())["items"])

    async def until(self, name: str, *, found: bool) -> float:
        began = time.monotonic()
        async with asyncio.timeout(4 * AT_MOST):
            while await self.finds(name) != found:  # noqa: ASYNC110 - what another process does
                await asyncio.sleep(0.1)
        return time.monotonic() - began

    async def delays(self, names: list[str], take: Callable[[str], Awaitable[None]]) -> list[float]:
        for name in names:
            await self.until(name, found=True)
        found = []
        for name in names:
            await take(name)
            found.append(await self.until(name, found=False))
        return found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
async def test_what_is_taken_away_is_found_no_longer(
    start_platform: Start, platform_home: Path, tmp_path: Path, folder: Path
) -> None:
    token = await _token(start_platform, platform_home)
    environment = paced(tmp_path / "packages")
    environment["PYTHONPATH"] += os.pathsep + intranet_package(tmp_path / "more")
    plugins = ("rag", "sources", "source_folder")
    settings = {"PLATFORM_SOURCE_FOLDERS": str(folder), **environment}
    server = Server(platform_home, None, plugins=plugins, **settings)
    intranet = Intranet()
    _fill(intranet, "polled", "grouped", 2)
    user = pwd.getpwnam(USER).pw_uid
    for number in range(TIMES):
        (folder / f"acl{number}.txt").write_text(f"The part acl{number} weighs {number} kg.")
        _allow(folder / f"acl{number}.txt", user, 4)
    async with TestServer(intranet.application()) as place, aiohttp.ClientSession() as session:
        await server.start()
        try:
            office = Office(server, session)
            office.token = token
            await office.sign_up()
            await office.share()
            url = str(place.make_url("/"))

            async def take_file(name: str) -> None:
                _allow(folder / f"{name}.txt", user, 0)

            posix = {"path": str(folder), "rights": "posix", "email_domain": "example.org"}
            await office.add("folder", posix, 3600)
            watched = await office.delays([f"acl{one}" for one in range(TIMES)], take_file)

            async def take_grant(name: str) -> None:
                intranet.grants[name] = SourceGrant()

            async def take_group(name: str) -> None:
                intranet.groups[name] = replace(intranet.groups[name], people=())

            await office.add("intranet", {"url": url}, INTERVAL)
            polled = await office.delays(["polled0", "polled1"], take_grant)
            grouped = await office.delays(["grouped0", "grouped1"], take_group)

            _fill(intranet, "pushed", "left", TIMES)
            address = await office.push_alone()
            await office.push(address)

            async def push_grant(name: str) -> None:
                await take_grant(name)
                await office.push(address)

            async def push_group(name: str) -> None:
                await take_group(name)
                await office.push(address)

            pushed = await office.delays([f"pushed{one}" for one in range(TIMES)], push_grant)
            left = await office.delays([f"left{one}" for one in range(TIMES)], push_group)
        finally:
            await server.stop()
    _report("watched folder, list of access changed", watched, AT_MOST)
    _report("push, grant taken", pushed, AT_MOST)
    _report("push, group left", left, AT_MOST)
    _report(f"read every {INTERVAL} s, grant taken", polled, INTERVAL + LOOKS)
    _report(f"read every {INTERVAL} s, group left", grouped, INTERVAL + LOOKS)


def _allow(file: Path, user: int, bits: int) -> None:
    """Let a user besides the owner read a file, or no longer."""
    os.setxattr(file, "system.posix_acl_access", acl(6, 0, 0, 7, (2, user, bits)))


def _fill(intranet: Intranet, granted: str, grouped: str, times: int) -> None:
    """Documents that the user reads by a grant each, and others by a group each."""
    intranet.people[USER] = SourcePerson(USER, USER, f"{USER}@example.org")
    for number in range(times):
        for name in (f"{granted}{number}", f"{grouped}{number}"):
            intranet.texts[name] = f"The part {name} weighs 3 kg."
        intranet.grants[f"{granted}{number}"] = SourceGrant([USER])
        intranet.grants[f"{grouped}{number}"] = SourceGrant(groups=[f"{grouped}{number}"])
        intranet.groups[f"{grouped}{number}"] = SourceGroup(f"{grouped}{number}", "", [USER])


def _report(what: str, seconds: list[float], at_most: float) -> None:
    sys.stdout.write(f"\n{what}: {statistics.median(seconds):.1f} s, at most {max(seconds):.1f} s")
    assert max(seconds) <= at_most, what
