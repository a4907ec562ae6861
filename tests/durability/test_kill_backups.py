"""Backups whose process is killed, and the restart that a restore asks for."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from kernel.testing import environment, platforms
from tests.durability.test_kills import Server
from tests.fakes.command_line import run_command
from tests.fakes.loaded_once import LoadedOnce
from tests.fakes.other_client import in_transaction
from tests.fakes.processes import Process, running_process, without_plugins

pytestmark = [pytest.mark.long, pytest.mark.durability]

ACCOUNTS = 2000
PLUGINS = ("embeddings", "models", "rag", "platform_ops")


@dataclass
class Home:
    """A home without running processes, and the commands and rows in it."""

    path: Path
    database_url: str | None

    @property
    def _environment(self) -> dict[str, str]:
        return environment(self.path, {"DATABASE_URL": self.database_url, **without_plugins(*PLUGINS)})

    @asynccontextmanager
    async def command(self, *arguments: str) -> AsyncIterator[Process]:
        command, log = ("-m", "cli", *arguments), self.path.with_name(f"{secrets.token_hex(4)}.log")
        async with running_process(*command, env=self._environment, log=log, grace=0) as process:
            yield process

    async def run(self, *arguments: str) -> str:
        result = await asyncio.to_thread(run_command, *arguments, env=self._environment)
        assert result.exit_code == 0, result.output
        return result.stdout

    async def seconds(self, *arguments: str) -> float:
        """How long a process takes for a command, which must succeed."""
        started = time.monotonic()
        async with self.command(*arguments) as process:
            assert await process.wait() == 0, process.output()
        return time.monotonic() - started

    async def kill(self, after: float, *arguments: str) -> None:
        """Start a command and kill it after so many seconds, should it still run."""
        async with self.command(*arguments) as process:
            try:
                await process.wait(after)  # the random moment itself
            except TimeoutError:
                await process.kill()

    async def newest(self) -> str:
        return str(json.loads(await self.run("backup", "list", "--json"))[0]["name"])

    def change(self, *statements: str) -> None:
        def run(connection: sa.Connection) -> None:
            for statement in statements:
                connection.execute(sa.text(statement))

        in_transaction(self._url, run)

    def rows(self, query: str) -> list[Any]:
        return in_transaction(self._url, lambda connection: list(connection.scalars(sa.text(query))))

    def copy_account(self, original: str, copies: int) -> None:
        def copy(connection: sa.Connection) -> None:
            table = sa.Table("kernel_account", sa.MetaData(), autoload_with=connection)
            row = connection.execute(sa.select(table).where(table.c.username == original)).mappings().one()
            own = {key: value for key, value in row.items() if key != "id"}
            names = [f"copy-{at}" for at in range(copies)]
            mails = [f"{name}@example.org" for name in names]
            made = [
                {**own, "username": name, "username_key": name, "email": mail, "email_key": mail}
                for name, mail in zip(names, mails, strict=True)
            ]
            connection.execute(sa.insert(table), made)

        in_transaction(self._url, copy)

    @property
    def _url(self) -> str:
        if self.database_url is None:
            return f"sqlite+aiosqlite:///{self.path / 'platform.db'}"
        return make_url(self.database_url).set(drivername="postgresql+asyncpg").render_as_string(False)

    def state(self) -> tuple[int, int]:
        (accounts,), (documents,) = (
            self.rows(f"SELECT count(*) FROM {table}") for table in ("kernel_account", "rag_document")
        )
        return accounts, documents


@pytest.fixture
async def home(platform_home: Path, database_url: str | None) -> Home:
    async with platforms(platform_home) as start:
        running = await start(LoadedOnce, *PLUGINS[1:], env={"DATABASE_URL": database_url})
        ann = await running.user("ann")
        base = (await ann.post("/v1/rag/knowledge-bases", json={"name": "Kept"})).json()["id"]
        sent = await ann.upload(
            f"/v1/rag/knowledge-bases/{base}/upload", "1.txt", b"Ships pass the lighthouse."
        )
        assert sent.status == 202, sent.body
        await running.run_jobs()
    found = Home(platform_home, database_url)
    found.copy_account("ann", ACCOUNTS)
    return found


@pytest.mark.long
@pytest.mark.either_database
async def test_killed_backups_leave_only_whole_ones(home: Home, request: pytest.FixtureRequest) -> None:
    """Every backup that is listed is complete, rows are as before, and the next backup cleans up."""
    chance = random.Random(7)
    before = home.state()
    whole = await home.seconds("backup", "create")
    for at in range(request.config.getoption("--backup-kills")):
        home.change(f"UPDATE kernel_account SET email = username || '-{at}@example.org'")
        await home.kill(whole * chance.uniform(0.5, 1.0), "backup", "create")
        await home.run("backup", "verify")
        assert home.state() == before
    await home.run("backup", "create")
    await home.run("backup", "verify", await home.newest())
    assert not list((home.path / "backups").rglob(".new-*"))


async def test_a_restore_starts_the_processes_again(platform_home: Path) -> None:
    """Ordered over HTTP, it replaces the rows in a process with the same id, which then serves and stops."""
    server = Server(platform_home, None, plugins=PLUGINS)
    commands = Home(platform_home, None)
    said = await commands.run("users", "create", "boss", "--admin", "--generate", "--json")
    account = json.loads(said[said.index("{") :])
    await server.start()
    assert server.process is not None
    process = server.process.pid
    try:
        async with aiohttp.ClientSession() as session:
            boss = _Boss(session, server, account["password"])
            await boss.sign_in()
            made = await boss.follow("/v1/backups")
            assert made["status"] == "done", made
            await commands.run("users", "create", "late", "--generate")
            name = made["archive"]
            done = await boss.follow(f"/v1/backups/{name}/restore", json={"confirm_filename": name})
            assert (done["status"], boss.signed_in) == ("done", 2), done
        assert commands.rows("SELECT username FROM kernel_account") == ["boss"]
        assert (server.process.pid, server.process.returncode) == (process, None)
    finally:
        await server.stop()
    assert server.process.returncode == 0


class _Boss:
    """The administrator, who signs in again where the session has ended, as it does at a restore."""

    def __init__(self, session: aiohttp.ClientSession, server: Server, password: str) -> None:
        self._session, self._server = session, server
        self._login = {"username": "boss", "password": password}
        self.signed_in = 0

    async def sign_in(self) -> None:
        self._session.headers.pop("Authorization", None)
        async with self._session.post(f"{self._server.url}/v1/auth/login", json=self._login) as answer:
            self._session.headers["Authorization"] = f"Bearer {(await answer.json())['access_token']}"
        self.signed_in += 1

    async def follow(self, path: str, **body: Any) -> dict[str, Any]:
        """Ask for a backup or a restore, and wait until it has ended, over a restart too."""
        async with self._session.post(self._server.url + path, **body) as answer:
            job = await answer.json()
            assert answer.status == 202, job
        async with asyncio.timeout(120):
            while job["status"] in ("pending", "running"):
                with suppress(aiohttp.ClientError):
                    job = await self._job(job)
                await asyncio.sleep(0.1)  # polling is what clients do
        return dict(job)

    async def _job(self, job: dict[str, Any]) -> dict[str, Any]:
        async with self._session.get(f"{self._server.url}/v1/backups/jobs/{job['id']}") as answer:
            if answer.status == 401:
                await self.sign_in()
            return await answer.json() if answer.status == 200 else job
