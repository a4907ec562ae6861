"""A day in a minute: contents and permissions at a source change at random while the worker is killed.

After each step, every account that is asked reads here exactly what the source itself says that it may read.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

from builtin_plugins.accounts.verified_addresses import note_verified
from builtin_plugins.sources.api import SourceGrant, SourceGroup, SourcePerson
from kernel.sdk import Account, Unit
from kernel.sdk.accounts import TOKENS
from kernel.testing import Start
from tests.durability.test_kill_sources import Keeper
from tests.durability.test_kills import Server
from tests.fakes.intranet import Intranet, intranet_package
from tests.fakes.paced_embeddings import paced

pytestmark = [pytest.mark.durability, pytest.mark.long]

PEOPLE, GROUPS = 200, 50
UNVERIFIED, UNKNOWN = 20, 20
"""How many of the people have an account here whose address is not proven, and how many have none."""
STEPS, CHANGES, ASKED = 3, 60, 20
REVOCATIONS = 4
MOST_SECONDS = 60.0
PATIENCE, PATIENCE_EACH = 600.0, 0.2
"""Seconds that a run may take, and more for each document."""

LONG_TOKENS = {"JWT_EXPIRATION_MINUTES": "600"}


class Office(Intranet):
    """An intranet in which people work."""

    def __init__(self, chance: random.Random, documents: int) -> None:
        super().__init__()
        self._chance, self._number = chance, 0
        for number in range(PEOPLE):
            name = f"person-{number}"
            self.people[name] = SourcePerson(name, name, f"{name}@example.org")
        for number in range(GROUPS):
            self._set_group(number)
        for _ in range(documents):
            self.add()

    def _set_group(self, number: int) -> None:
        """Other people, and maybe a group with a greater number within it."""
        members = self._chance.sample(sorted(self.people), self._chance.randrange(12))
        inner = [f"group-{self._chance.randrange(number + 1, GROUPS)}"] if number < GROUPS - 1 else []
        self.groups[f"group-{number}"] = SourceGroup(
            f"group-{number}", "", members, inner if self._chance.random() < 0.3 else []
        )

    def _grant(self) -> SourceGrant:
        kind = self._chance.random()
        if kind < 0.1:
            return SourceGrant(everybody=True)
        if kind < 0.2:
            return SourceGrant()
        people = self._chance.sample(sorted(self.people), self._chance.randrange(4))
        groups = self._chance.sample(sorted(self.groups), self._chance.randrange(3))
        return SourceGrant(people, groups)

    def add(self) -> None:
        self._number += 1
        one = f"doc-{self._number}"
        self.texts[one] = f"Part {self._number} weighs {self._chance.randrange(10**9)} grams."
        self.grants[one] = self._grant()

    def change(self) -> None:
        """Something that somebody does."""
        one = self._chance.choice(sorted(self.texts))
        match self._chance.choice(["add", "write", "delete", "grant", "grant", "grant", "group"]):
            case "add":
                self.add()
            case "write":
                self.texts[one] = f"{one} weighs {self._chance.randrange(10**9)} grams by now."
            case "delete":
                del self.texts[one], self.grants[one]
            case "grant":
                self.grants[one] = self._grant()
            case "group":
                self._set_group(self._chance.randrange(GROUPS))

    def readable(self, person: str) -> set[str]:
        """What the source itself says."""
        return {f"{one}.txt" for one in self.texts if self.may_read(person, one)}

    def revoke(self, person: str, document: str) -> None:
        """Take one document from one person: by its grant, or by a group's members."""
        grant = self.grants[document]
        for name, group in self.groups.items():
            if person in group.people:
                people = [one for one in group.people if one != person]
                self.groups[name] = SourceGroup(name, "", people, group.groups)
        self.grants[document] = SourceGrant([one for one in grant.people if one != person], grant.groups)


async def _accounts(start_platform: Start, home: Path) -> Mapping[str, str]:
    """Tokens by person: of most, the address is proven; some have no account."""
    running = await start_platform("rag", home=home, role="tool", env=LONG_TOKENS)
    tokens = running.platform.resource(TOKENS)

    def write(unit: Unit) -> dict[str, str]:
        made = {}
        for number in range(PEOPLE - UNKNOWN):
            name = f"person-{number}"
            email = f"{name}@example.org"
            account = Account(username=name, username_key=name, email=email, email_key=email)
            unit.session.add(account)
            unit.session.flush()
            if number >= UNVERIFIED:
                note_verified(unit, account, "operator")
            made[name] = tokens.mint(account, {})
        return made

    return await running.platform.database.write(write)


class Asker:
    """Asks as many accounts what they read, through the routes."""

    def __init__(self, server: Server, session: aiohttp.ClientSession, keeper: Keeper) -> None:
        self._server, self._session, self._keeper = server, session, keeper

    async def readable(self, token: str) -> set[str]:
        found: set[str] = set()
        for offset in itertools.count(0, 500):
            path = f"/v1/rag/knowledge-bases/{self._keeper.base}/documents?limit=500&offset={offset}"
            headers = {"Authorization": f"Bearer {token}"}
            async with self._session.get(self._server.url + path, headers=headers) as answer:
                assert answer.status == 200, await answer.text()
                page = await answer.json()
            found |= {one["filename"] for one in page["items"]}
            if offset + 500 >= page["total"]:
                break
        return found


@pytest.mark.parametrize("seed", [1])
async def test_a_day_of_changed_permissions_and_kills(
    start_platform: Start, platform_home: Path, tmp_path: Path, request: pytest.FixtureRequest, seed: int
) -> None:
    chance = random.Random(seed)
    office = Office(chance, request.config.getoption("source_documents"))
    tokens = await _accounts(start_platform, platform_home)
    environment = {**paced(tmp_path / "packages"), **LONG_TOKENS}
    environment["PYTHONPATH"] += os.pathsep + intranet_package(tmp_path / "more")
    server = Server(platform_home, None, plugins=("rag", "sources"), **environment)
    async with TestServer(office.application()) as place, aiohttp.ClientSession() as session:
        await server.start()
        try:
            keeper = Keeper(server, session)
            await keeper.sign_up()
            await keeper.share()
            await keeper.add_guarded(str(place.make_url("/")))
            asker, questions, differences = Asker(server, session, keeper), 0, 0
            patience = PATIENCE + PATIENCE_EACH * len(office.texts)
            began, took = time.monotonic(), list[float]()
            for step in range(STEPS):
                await asyncio.sleep(chance.uniform(0.0, 1.0))  # the random moment itself
                server.kill_worker()
                ended = await keeper.end(patience)
                took.append(time.monotonic() - began)
                assert ended["state"] == "done", ended
                for person in chance.sample(sorted(tokens), ASKED):
                    proven = int(person.removeprefix("person-")) >= UNVERIFIED
                    there = office.readable(person if proven else "somebody unknown")
                    differences += len(there ^ await asker.readable(tokens[person]))
                    questions += len(office.texts)
                assert differences == 0, f"after step {step}"
                for _ in range(CHANGES):
                    office.change()
                began = time.monotonic()
                await keeper.begin()
            await keeper.end(patience)
            delays = [await _revoked(office, asker, tokens, chance) for _ in range(REVOCATIONS)]
            before, began = office.fetched_bytes, time.monotonic()
            await keeper.begin()
            still = await keeper.end(patience)
            took.append(time.monotonic() - began)
            fetched = office.fetched_bytes - before
            shown = ", ".join(f"{delay:.1f}" for delay in delays)
            times = ", ".join(f"{seconds:.1f}" for seconds in took)
            sys.stdout.write(f"\n{len(office.texts)} documents, runs of {times} s")
            sys.stdout.write(
                f"\n{differences} differences in {questions} questions; revoked after {shown} s; "
            )
            sys.stdout.write(f"{fetched} bytes fetched of an unchanged source\n")
            assert max(delays) <= MOST_SECONDS
            assert (fetched, still["fetched_bytes"], still["state"]) == (0, 0, "done")
        finally:
            await server.stop()


async def _revoked(office: Office, asker: Asker, tokens: Mapping[str, str], chance: random.Random) -> float:
    """The seconds until somebody no longer reads what was taken from them; nothing is run for that."""
    proven = [one for one in sorted(tokens) if int(one.removeprefix("person-")) >= UNVERIFIED]
    for person in chance.sample(proven, len(proven)):
        for document in sorted(office.texts):
            if person in office.grants[document].people and not office.grants[document].everybody:
                office.revoke(person, document)
                if office.may_read(person, document):
                    continue
                began = time.monotonic()
                while f"{document}.txt" in await asker.readable(tokens[person]):
                    await asyncio.sleep(0.25)
                    assert time.monotonic() - began < 2 * MOST_SECONDS
                return time.monotonic() - began
    raise AssertionError("nobody may read anything")
