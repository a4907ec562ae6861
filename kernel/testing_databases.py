"""Databases of tests: migrated once in a process, then copied; PostgreSQL waits for no disk."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from kernel.boot import open_platform
from kernel.plugins import Candidate, installed
from kernel.settings import SettingsLoader

DATABASE = "platform.db"


def run_apart(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` to its end in a loop and thread of its own, whichever loop a test runs in."""
    with ThreadPoolExecutor(1, "apart") as thread:
        thread.submit(asyncio.run, work).result()


def administer(server: str, *statements: str) -> None:
    """Run statements on a connection of their own. Raises OSError."""
    import asyncpg

    async def run() -> None:
        connection = await asyncpg.connect(server, timeout=5)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    try:
        run_apart(run())
    except (asyncpg.PostgresError, TimeoutError) as error:
        raise OSError(str(error)) from error


def create(server: str, *, plain: bool) -> str:
    """The name of a new database. Raises OSError.

    A `plain` one is what an operator makes. The others have the kernel's tables, and no commit waits for the
    disk: a server that goes on running loses nothing by it.
    """
    name = f"platform_test_{secrets.token_hex(6)}"
    if plain:
        administer(server, f"CREATE DATABASE {name}")
    else:
        _create_quick(server, name, _template(server))
    return name


def _create_quick(server: str, name: str, template: str) -> None:
    quick = f"ALTER DATABASE {name} SET synchronous_commit = off"
    administer(server, f"CREATE DATABASE {name} TEMPLATE {template}", quick)


def drop(server: str, name: str, *, plain: bool) -> None:
    """Drop a database. The server makes a checkpoint for it, which no test waits for unless it is `plain`."""
    statement = f"DROP DATABASE {name} WITH (FORCE)"
    if plain:
        administer(server, statement)
    else:
        _behind().submit(administer, server, statement)


@cache
def _behind() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "drop-databases")


@cache
def _made() -> list[Callable[[], None]]:
    """What takes away the templates of this process."""
    return []


def finish() -> None:
    """Take away what the tests of this process shared; its last call here."""
    _behind().shutdown()
    for take_away in _made():
        take_away()


@cache
def _template(server: str) -> str:
    name = f"platform_test_{secrets.token_hex(6)}"
    _create_quick(server, name, "template0")
    _made().append(lambda: drop(server, name, plain=True))
    with tempfile.TemporaryDirectory(prefix="platform-") as home:
        _migrate(Path(home), (), {"DATABASE_URL": server.rpartition("/")[0] + f"/{name}"})
    return name


def has_database(values: Mapping[str, str]) -> bool:
    """Whether a platform with this environment finds a database, or is told where one is."""
    home = Path(values["PLATFORM_HOME"])
    return "DATABASE_URL" in values or (home / DATABASE).exists() or (home / "config.yaml").exists()


def copy_sqlite(home: Path, plugins: Sequence[str]) -> None:
    """Put a database into `home` that holds the tables of the kernel and of these installed plugins."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.copyfile(_sqlite_template(frozenset(plugins)), home / DATABASE)


@cache
def _sqlite_template(plugins: frozenset[str]) -> Path:
    home = Path(tempfile.mkdtemp(prefix="platform-"))
    _made().append(lambda: shutil.rmtree(home, ignore_errors=True))
    _migrate(home, [candidate for candidate in installed() if candidate.name in plugins], {})
    return home / DATABASE


def _migrate(home: Path, candidates: Sequence[Candidate], extra: Mapping[str, str]) -> None:
    """Run the migrations as a command does, which starts nothing and writes nothing else."""
    values = {"PATH": os.defpath, "PLATFORM_HOME": str(home), "ENVIRONMENT": "test", **extra}

    async def run() -> None:
        async with open_platform(SettingsLoader(values), candidates=candidates):
            pass

    run_apart(run())
