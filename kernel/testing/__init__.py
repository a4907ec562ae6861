"""Fixtures for the platform's tests and for those of plugin authors; pytest finds them by entry point.

- `platform_home`: a temporary PLATFORM_HOME.
- `database_url`: the test runs on SQLite, and on PostgreSQL if it is available.
- `start_platform`: `await start_platform("rag", MyPlugin, env={...})` boots a real platform with these
  plugins and those that they require on a real port and returns a `Running`.
- `somebody(running)`: an account with a token. `audited(running, "team.created")`: entries of the audit log.
- `await eventually(check)`: waits for something that another process does.
- `migrated_home(home)`: a home with the tables of the built-in plugins, for commands and processes.
- `open_unit` holds a unit of writing open while others read and write.
"""

from __future__ import annotations

import asyncio
import inspect
import io
import json
import os
import secrets
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from argon2 import PasswordHasher
from sqlalchemy import select

from kernel.auth.models import Account, AuditEntry
from kernel.auth.tokens import TOKENS
from kernel.boot import open_platform
from kernel.db.engine import Database, Unit
from kernel.db.units import off_the_loop
from kernel.gateway.app import gateway_app, service_app
from kernel.platform import Platform, Role
from kernel.plugins.offers import OFFERS
from kernel.process.server import Listener, bind
from kernel.settings.loading import SettingsLoader
from kernel.testing import databases
from kernel.testing.databases import candidates_of as candidates_of
from kernel.testing.databases import migrated_home as migrated_home
from kernel.testing.databases import pytest_configure as pytest_configure
from kernel.testing.databases import pytest_configure_node as pytest_configure_node
from kernel.testing.databases import pytest_unconfigure as pytest_unconfigure
from kernel.testing.draining import drain

POSTGRES = "postgresql://postgres@127.0.0.1:5432/postgres"
REDIS = "redis://127.0.0.1:6379"
_ALWAYS = ("accounts", "long_jobs", "shared_counters")
# Next to no work: the minimum that the settings allow takes half as long as a platform's start, each time.
_HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@dataclass
class Reply:
    """A complete response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def detail(self) -> Any:
        """The `detail` of an error."""
        return self.json()["detail"]


@dataclass
class Actor:
    """A person or program that sends requests to a running platform."""

    running: Running
    token: str | None = None
    user: dict[str, Any] = field(default_factory=dict)
    password: str = ""

    async def request(self, method: str, path: str, **options: Any) -> Reply:
        """Send a request and read the whole response."""
        headers = dict(options.pop("headers", {}))
        if self.token and "Authorization" not in headers:
            headers["Authorization"] = f"Bearer {self.token}"
        url = path if path.startswith("http") else self.running.url + path
        async with self.running.session.request(method, url, headers=headers, **options) as answer:
            return Reply(answer.status, answer.headers, await answer.read())

    async def get(self, path: str, **options: Any) -> Reply:
        """GET."""
        return await self.request("GET", path, **options)

    async def post(self, path: str, **options: Any) -> Reply:
        """POST."""
        return await self.request("POST", path, **options)

    async def put(self, path: str, **options: Any) -> Reply:
        """PUT."""
        return await self.request("PUT", path, **options)

    async def patch(self, path: str, **options: Any) -> Reply:
        """PATCH."""
        return await self.request("PATCH", path, **options)

    async def delete(self, path: str, **options: Any) -> Reply:
        """DELETE."""
        return await self.request("DELETE", path, **options)

    async def upload(self, path: str, name: str, content: bytes, content_type: str = "text/plain") -> Reply:
        """POST a multipart body with one file."""
        form = aiohttp.FormData()
        form.add_field("file", io.BytesIO(content), filename=name, content_type=content_type)
        return await self.post(path, data=form)


@dataclass
class Running:
    """A platform that is listening."""

    platform: Platform
    url: str
    session: aiohttp.ClientSession

    @property
    def anonymous(self) -> Actor:
        """A client without a token."""
        return Actor(self)

    async def user(self, name: str | None = None, *, role: str = "user") -> Actor:
        """Create an account and sign in."""
        name = name or f"user-{secrets.token_hex(4)}"
        password = f"pw-{secrets.token_hex(8)}"
        from builtin_plugins.accounts.api import ACCOUNTS

        await self.platform.resource(ACCOUNTS).register(name, f"{name}@example.org", password, role=role)
        return await self.sign_in(name, password)

    async def sign_in(self, name: str, password: str) -> Actor:
        """Start a new session for an account."""
        answer = await self.anonymous.post("/v1/auth/login", json={"username": name, "password": password})
        assert answer.status == 200, answer.body
        body = answer.json()
        return Actor(self, body["access_token"], body["user"], password)

    async def run_jobs(self) -> int:
        """Run all queued jobs like a worker, but with brief pauses between attempts; returns how many ran."""
        return await drain(self.platform)


Start = Callable[..., Awaitable[Running]]


async def somebody(
    running: Running,
    *,
    role: str = "user",
    platform_admin: bool = False,
    is_active: bool = True,
    local: bool = False,
) -> Actor:
    """A new account with a token, made without the routes: faster than `Running.user`; no password.

    A `local` one counts as having a password, which nobody knows.
    """
    name = f"somebody-{secrets.token_hex(4)}"
    email = f"{name}@example.org"
    account = Account(
        username=name,
        username_key=name,
        email=email,
        email_key=email,
        role=role,
        platform_admin=platform_admin,
        is_active=is_active,
        password_hash="unknown" if local else None,
    )
    await running.platform.database.write(lambda unit: unit.session.add(account))
    token = running.platform.resource(TOKENS).mint(account, {})
    return Actor(running, token, {"id": account.id, "username": name, "email": email})


async def audited(
    where: Running | Platform, action: str | None = None, target_id: int | str | None = None
) -> list[AuditEntry]:
    """Entries of the audit log, oldest first; if given, only those of this action or target."""
    platform = where.platform if isinstance(where, Running) else where
    query = select(AuditEntry).order_by(AuditEntry.id)
    if action is not None:
        query = query.where(AuditEntry.action == action)
    if target_id is not None:
        query = query.where(AuditEntry.target_id == str(target_id))
    return await platform.database.read(lambda session: list(session.scalars(query)))


async def eventually(check: Callable[[], bool | Awaitable[bool]], seconds: float = 60) -> float:
    """Poll until `check()` is true; returns the seconds that took. Raises TimeoutError after `seconds`.

    Use it only if there is no event to await, as for the work of another process. It polls fifty times a
    second, later ten times, because polling takes processor time from that work.
    """
    started = time.monotonic()
    async with asyncio.timeout(seconds):
        while True:
            outcome = check()
            if await outcome if inspect.isawaitable(outcome) else outcome:
                return time.monotonic() - started
            await asyncio.sleep(min(0.1, max(0.02, (time.monotonic() - started) / 20)))


def services_required() -> bool:
    """Whether a missing PostgreSQL or Redis fails the tests instead of skipping them (CI)."""
    return os.environ.get("PLATFORM_TEST_REQUIRE_SERVICES") == "1"


@pytest.fixture
def platform_home(tmp_path: Path) -> Path:
    """A temporary PLATFORM_HOME."""
    return tmp_path / "home"


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A new PostgreSQL database with the kernel's tables, dropped afterwards; skips if no server answers. In
    a test with `start_platform`, the first platform to use it creates it with its plugins' tables.
    """
    with postgres_database(by_first="start_platform" in request.fixturenames) as url:
        yield url


@pytest.fixture
def empty_postgres_url() -> Iterator[str]:
    """A new PostgreSQL database without tables, for tests of migrations."""
    with postgres_database(plain=True) as url:
        yield url


@contextmanager
def postgres_database(*, plain: bool = False, by_first: bool = False) -> Iterator[str]:
    """Like `postgres_url`, for fixtures whose database many tests share. With `plain`, it is as an operator
    creates it: without tables, and each commit waits for the server's disk. With `by_first`, the first
    platform of `platforms` that starts on it creates it.
    """
    server = os.environ.get("PLATFORM_TEST_POSTGRES", POSTGRES)
    name = ""
    try:
        if by_first:
            name = databases.promise(server)
        else:
            name = databases.create(server, plain=plain)
    except OSError as error:
        missing(f"PostgreSQL does not answer at {server}: {error}")
    try:
        yield server.rpartition("/")[0] + f"/{name}"
    finally:
        databases.drop(server, name, plain=plain)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """None for the embedded SQLite, then the address of a new PostgreSQL database."""
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request: pytest.FixtureRequest) -> str | None:
    """Like `database_url`, but without tables; start the platform with ``migrated=False``."""
    return None if request.param == "sqlite" else request.getfixturevalue("empty_postgres_url")


@pytest_asyncio.fixture
async def redis_url() -> AsyncIterator[str]:
    """The address of a Redis server; skips if none answers."""
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

    url = os.environ.get("PLATFORM_TEST_REDIS", REDIS)
    client: Any = Redis.from_url(url)
    try:
        await client.ping()
    except (RedisError, OSError) as error:
        missing(f"Redis does not answer at {url}: {error}")
    finally:
        await client.aclose()
    yield url


def missing(reason: str) -> None:
    """Skip the test because something is missing; fail it if everything is required (CI)."""
    if services_required():
        pytest.fail(reason)
    pytest.skip(reason)


@pytest_asyncio.fixture
async def start_platform(platform_home: Path) -> AsyncIterator[Start]:
    """Boots platforms; everything is closed after the test. See `platforms`."""
    async with platforms(platform_home) as start:
        yield start


@asynccontextmanager
async def platforms(platform_home: Path) -> AsyncIterator[Start]:
    """Boots platforms, closed at the end: for fixtures whose platform many tests share.

    ``await start_platform(*plugins, env=None, only=None, role="api", home=None, migrated=True)``: `plugins`
    are names of installed plugins or plugin classes, and come with what they require and with the plugins
    of accounts, long jobs and shared counters; `env` adds settings;
    `only` serves one service at its root. A new home gets a copy of an already migrated SQLite database with
    the installed plugins' tables;
    with ``migrated=False``, the start creates them.
    """
    async with AsyncExitStack() as stack:

        async def start(
            *plugins: Any,
            env: Mapping[str, str | None] | None = None,
            only: str | None = None,
            role: Role = "api",
            home: Path | None = None,
            migrated: bool = True,
        ) -> Running:
            values = environment(home or platform_home, env)
            names = databases.names_among((*_ALWAYS, *plugins)) if migrated else []
            databases.keep_promise(values, names)
            if migrated and not databases.has_database(values):
                databases.copy_sqlite(home or platform_home, names)
            candidates = candidates_of(*_ALWAYS, *plugins)
            if not any(candidate.name == "manifest_webhooks" for candidate in candidates):
                values.pop("PLATFORM_MANIFESTS_DIR", None)  # only manifest_webhooks has this setting
            platform = await stack.enter_async_context(
                open_platform(
                    SettingsLoader.from_home(values),
                    role=role,
                    candidates=candidates,
                    services=databases.known_services(),
                )
            )
            if role != "tool" and "PLATFORM_PASSWORD_MEMORY_MB" not in (env or {}):
                _hash_cheaply(platform)
            offered = platform.resource(OFFERS).services
            app = gateway_app(platform) if only is None else service_app(platform, offered[only][1])
            patience = platform.settings.header_timeout
            listener = Listener(app, patience=patience, grace=2, last_words=0)  # the session is closed first
            await listener.start(bind("127.0.0.1", 0, send_timeout=platform.settings.send_timeout))
            stack.push_async_callback(listener.stop)
            session = await stack.enter_async_context(
                aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)
            )
            return Running(platform, f"http://127.0.0.1:{listener.port}", session)

        yield start


def _hash_cheaply(platform: Platform) -> None:
    from builtin_plugins.accounts.api import PASSWORDS

    platform.resource(PASSWORDS).use(_HASHER)


@asynccontextmanager
async def open_unit(
    database: Database, begin: Callable[[Unit], object], end: Callable[[Unit], object] | None = None
) -> AsyncIterator[None]:
    """A writing unit that stays open during the block, to test what others see of it.

    `begin(unit)` runs before the block and `end(unit)` after it; then the unit is committed.
    """
    loop, begun, may_end = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def run(unit: Unit) -> None:
        begin(unit)
        unit.session.flush()
        loop.call_soon_threadsafe(begun.set)
        off_the_loop(may_end.wait)
        if end is not None:
            end(unit)

    writing = asyncio.create_task(database.write(run))
    writing.add_done_callback(lambda _: begun.set())
    try:
        await begun.wait()
        if writing.done():
            writing.result()
        yield
    finally:
        may_end.set()
        await writing


def environment(home: Path, extra: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """The settings of a platform under test: its own home, and by default no rate limits.

    A response that doesn't fit its route's `returns` is a 500.
    """
    values: dict[str, str | None] = {
        "PLATFORM_HOME": str(home),
        "PLATFORM_MANIFESTS_DIR": str(home / "manifests"),
        "PLATFORM_STRICT_ANSWERS": "true",
        "RATE_LIMIT_ENABLED": "false",
        "PLATFORM_HEALTH_CACHE_SECONDS": "0",
        "ENVIRONMENT": "test",
        "PLATFORM_PASSWORD_MEMORY_MB": "12",  # for separate processes; `platforms` hashes more cheaply
        "PLATFORM_DATABASE_POOL_SIZE": "3",  # the platforms of many tests share one server
        **(extra or {}),
    }
    return {key: value for key, value in values.items() if value is not None}
