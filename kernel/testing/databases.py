"""Databases for tests: migrated once per run, then copied; PostgreSQL doesn't wait for the disk.

The processes of a run share a folder of migrated databases, one file per set of plugins.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import hashlib
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest

from kernel.boot import open_platform
from kernel.gateway.services import Service, installed_services
from kernel.plugins.loading import Candidate, direct_candidates, installed
from kernel.settings.loading import SettingsLoader
from kernel.testing.spares import Spare, Spares, look, put_back
from kernel.version import DISTRIBUTION

DATABASE = "platform.db"
T = TypeVar("T")


def run_apart(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` to its end in its own loop; if a loop is already running, in its own thread.

    While Python shuts down, there are no new threads, but no running loop either.
    """
    if not _in_a_loop():
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1, "apart") as thread:
        thread.submit(asyncio.run, work).result()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def administer(server: str, *statements: str) -> None:
    """Run statements on their own connection. Raises OSError."""
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
    """Create a database; returns its name. Raises OSError.

    A `plain` one is as an operator creates it. Others have the kernel's tables, and their commits don't wait
    for the disk, which loses nothing while the server keeps running.
    """
    name = _new_name()
    if plain:
        administer(server, f"CREATE DATABASE {name}")
    else:
        _create_quick(server, name, _template(_templates(), server, frozenset()))
    return name


def promise(server: str) -> str:
    """The name of a database that `keep_promise` creates once its tables are known. Raises OSError."""
    _template(_templates(), server, frozenset())
    name = _new_name()
    _promised()[name] = server
    return name


def keep_promise(values: Mapping[str, str], plugins: Iterable[str]) -> None:
    """Create the database of this environment with the plugins' tables, if it was promised."""
    name = urlsplit(values.get("DATABASE_URL", "")).path.removeprefix("/")
    server = _promised().pop(name, None)
    if server is None:
        return
    template = _template(_templates(), server, frozenset(plugins))
    spare = _spares().take(template)
    if spare is not None:
        administer(server, f"ALTER DATABASE {spare.name} RENAME TO {name}")
        _used()[name] = replace(spare, name=name)
    else:
        _create_quick(server, name, template)
        _used()[name] = Spare(server, name, template, _on(server, name, look))


@cache
def _promised() -> dict[str, str]:
    return {}


@cache
def _used() -> dict[str, Spare]:
    return {}


@cache
def _spares() -> Spares:
    return Spares()


def _on(server: str, name: str, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
    """The result of `work(connection)` on a database of this server."""
    import asyncpg

    results: list[T] = []

    async def run() -> None:
        connection = await asyncpg.connect(server.rpartition("/")[0] + f"/{name}", timeout=5)
        try:
            results.append(await work(connection))
        finally:
            await connection.close()

    run_apart(run())
    return results[0]


def _use_again(spare: Spare) -> None:
    """Return a database to the spare ones; drop it if that isn't possible."""
    import asyncpg

    again = replace(spare, name=_new_name())
    leave = f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{spare.name}'"
    unwanted: Spare | None = spare
    try:
        administer(spare.server, leave, f"ALTER DATABASE {spare.name} RENAME TO {again.name}")
        unwanted = again
        if _on(again.server, again.name, lambda connection: put_back(connection, again.initial)):
            unwanted = _spares().keep(again)
    except (OSError, asyncpg.PostgresError):
        pass  # still in use, or the test has closed it to connections
    if unwanted is not None:
        administer(unwanted.server, f"DROP DATABASE {unwanted.name} WITH (FORCE)")


def _new_name() -> str:
    return f"platform_test_{secrets.token_hex(6)}"


def _create_quick(server: str, name: str, template: str) -> None:
    quick = f"ALTER DATABASE {name} SET synchronous_commit = off"
    administer(server, f"CREATE DATABASE {name} TEMPLATE {template}", quick)


def drop(server: str, name: str, *, plain: bool) -> None:
    """Drop a database. The server makes a checkpoint, which tests await only for a `plain` one."""
    statement = f"DROP DATABASE {name} WITH (FORCE)"
    if _promised().pop(name, None):
        return
    spare = _used().pop(name, None)
    if spare is not None:
        _behind().submit(_use_again, spare)
    elif plain:
        administer(server, statement)
    else:
        _behind().submit(administer, server, statement)


@cache
def _behind() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "drop-databases")


@dataclass(frozen=True)
class _Templates:
    """The folder of template databases, and whether this process removes it."""

    folder: Path
    own: bool

    @contextmanager
    def making(self, name: str) -> Iterator[Path]:
        """The path of a template; during the block, no other process makes it."""
        with (self.folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self.folder / name

    def take_away(self) -> None:
        """Remove the folder and the databases named in it."""
        for file in self.folder.glob(f"{_ON_SERVER}*.name"):
            server, name = file.read_text(encoding="utf-8").splitlines()
            drop(server, name, plain=True)
        shutil.rmtree(self.folder, ignore_errors=True)


_ON_SERVER = "postgresql-"
_FOLDER = "platform_templates"


@cache
def _shared() -> list[_Templates]:
    return []


def _templates() -> _Templates:
    if not _shared():  # without pytest
        _shared().append(_Templates(Path(tempfile.mkdtemp(prefix="platform-")), own=True))
        atexit.register(_shared()[0].take_away)
    return _shared()[-1]


def pytest_configure(config: pytest.Config) -> None:
    """All processes of a run use the folder of the first one, which removes it at the end."""
    folder = getattr(config, "workerinput", {}).get(_FOLDER)
    _shared().append(_Templates(Path(folder or tempfile.mkdtemp(prefix="platform-")), own=folder is None))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the folder's path to a pytest-xdist worker."""
    node.workerinput[_FOLDER] = str(_shared()[-1].folder)


def pytest_unconfigure() -> None:
    """Remove what the tests of this process shared; the last call here."""
    _behind().shutdown()
    for spare in _spares().take_all():
        drop(spare.server, spare.name, plain=True)
    templates = _shared().pop()
    if templates.own:
        templates.take_away()


@cache
def _template(templates: _Templates, server: str, plugins: frozenset[str]) -> str:
    key = hashlib.sha256("\n".join([server, *sorted(plugins)]).encode()).hexdigest()[:12]
    with templates.making(f"{_ON_SERVER}{key}.name") as file:
        if not file.exists():
            name = _new_name()
            _create_quick(server, name, _template(templates, server, frozenset()) if plugins else "template0")
            with tempfile.TemporaryDirectory(prefix="platform-") as home:
                url = server.rpartition("/")[0] + f"/{name}"
                _migrate(Path(home), _installed(plugins), {"DATABASE_URL": url})
            file.write_text(f"{server}\n{name}\n", encoding="utf-8")
        return file.read_text(encoding="utf-8").splitlines()[1]


def has_database(values: Mapping[str, str]) -> bool:
    """Whether a platform with this environment has a database or the address of one."""
    home = Path(values["PLATFORM_HOME"])
    return "DATABASE_URL" in values or (home / DATABASE).exists() or (home / "config.yaml").exists()


@cache
def by_name() -> Mapping[str, Candidate]:
    """The installed plugins, cached: finding them takes half as long as a platform's start."""
    return {candidate.name: candidate for candidate in installed()}


@cache
def _services_on(_path: tuple[str, ...]) -> Mapping[str, Service]:
    return installed_services()


def known_services() -> Mapping[str, Service]:
    """The services of installed packages, looked for once in each state of `sys.path`: half of a start."""
    return _services_on(tuple(sys.path))


def candidates_of(*plugins: Any) -> list[Candidate]:
    """Candidates from names of installed plugins, from classes, or from objects, and what they require."""
    candidates: dict[str, Candidate] = {}
    for plugin in plugins:
        if isinstance(plugin, str) and plugin not in by_name():
            raise LookupError(f"no installed plugin is called '{plugin}'")
        for name in requirements(plugin):
            candidates.setdefault(name, by_name()[name])
        if isinstance(plugin, str):
            plugin = by_name()[plugin]
        candidate = plugin if isinstance(plugin, Candidate) else direct_candidates([plugin])[0]
        candidates[candidate.name] = candidate
    return list(candidates.values())


def requirements(plugin: Any) -> list[str]:
    """The installed plugins that a plugin requires, directly or through others; a candidate is not loaded."""
    if isinstance(plugin, str):
        plugin = _load_plugin(plugin)
    direct = [name for name in getattr(plugin, "requires", ()) if name in by_name()]
    further = [more for name in direct for more in requirements(name)]
    return list(dict.fromkeys([*further, *direct]))


def names_among(plugins: Iterable[Any]) -> list[str]:
    """The installed plugins among these, and those that they require."""
    named = (plugin for plugin in plugins if isinstance(plugin, str))
    return list(dict.fromkeys(name for plugin in named for name in [*requirements(plugin), plugin]))


@cache
def _load_plugin(name: str) -> Any:
    return by_name()[name].load()


def copy_sqlite(home: Path, plugins: Iterable[str]) -> None:
    """Put a database with the tables of the kernel and of these installed plugins into `home`."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.copyfile(_sqlite_template(_templates(), frozenset(plugins)), home / DATABASE)
    (home / DATABASE).chmod(0o600)


def migrated_home(home: Path, env: Mapping[str, str] | None = None) -> Path:
    """`home` with the tables of all built-in plugins, to save commands and processes the migrations.

    Does nothing if it, or `env`, already has a database.
    """
    if not has_database({"PLATFORM_HOME": str(home), **(env or {})}):
        own = (name for name, candidate in by_name().items() if candidate.distribution == DISTRIBUTION)
        copy_sqlite(home, own)
    return home


@cache
def _sqlite_template(templates: _Templates, plugins: frozenset[str]) -> Path:
    key = hashlib.sha256("\n".join(sorted(plugins)).encode()).hexdigest()[:12]
    with templates.making(f"sqlite-{key}.db") as file:
        if not file.exists():
            home = Path(tempfile.mkdtemp(prefix="making-", dir=file.parent))
            if plugins:
                copy_sqlite(home, ())
            _migrate(home, _installed(plugins), {})
            (home / DATABASE).rename(file)
        return file


def _installed(plugins: frozenset[str]) -> list[Candidate]:
    return [candidate for name, candidate in by_name().items() if name in plugins]


def _migrate(home: Path, candidates: Sequence[Candidate], extra: Mapping[str, str]) -> None:
    """Run the migrations as a command does; starts and writes nothing else."""
    values = {"PATH": os.defpath, "PLATFORM_HOME": str(home), "ENVIRONMENT": "test", **extra}

    async def run() -> None:
        async with open_platform(SettingsLoader(values), candidates=candidates, services=known_services()):
            pass

    run_apart(run())
