"""Tests against an installation that runs already (`--against URL`), unchanged.

Requests go to the URL; what a test does past HTTP, such as making an account, is done by a platform in the
test's process on the same database. Its settings come from the environment, as those of another machine do.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from kernel.boot import open_platform
from kernel.db.engine import Unit
from kernel.db.tables import JobRecord
from kernel.plugins.loading import installed
from kernel.settings.loading import SettingsLoader
from kernel.testing import Running, Start, candidates_of, eventually

_ENDED = ("done", "failed", "cancelled")
_OURS = ("PLATFORM_", "DATABASE_URL", "REDIS_URL", "JWT_")


class Elsewhere(Running):
    """A platform that listens at another address, whose workers do the jobs."""

    async def run_jobs(self) -> int:
        """Wait until they have."""
        await eventually(self._at_rest, seconds=120)
        return 0

    async def _at_rest(self) -> bool:
        return not await self.platform.database.read(_under_way)


def _under_way(session: Session) -> int:
    query = select(func.count()).select_from(JobRecord).where(JobRecord.status.notin_(_ENDED))
    return session.scalar(query) or 0


@asynccontextmanager
async def elsewhere(url: str) -> AsyncIterator[Start]:
    """What `start_platform` gives, for an installation at `url`; a test that needs another one is skipped."""
    async with AsyncExitStack() as stack:
        started: list[Running] = []

        async def start(*plugins: Any, env: Mapping[str, str | None] | None = None, **other: Any) -> Running:
            _refuse_what_is_of_its_own(plugins, env or {}, other, started)
            values = {name: value for name, value in os.environ.items() if name.startswith(_OURS)}
            values.pop("PLATFORM_PLUGINS_DISABLED", None)
            if values.get("PLATFORM_BLOB_STORE", "").startswith("s3://"):
                plugins = (*plugins, "s3_blobs")
            platform = await stack.enter_async_context(
                open_platform(
                    SettingsLoader.from_home(values), role="api", candidates=candidates_of(*plugins)
                )
            )
            await platform.database.write(_make_room)
            session = await stack.enter_async_context(
                aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)
            )
            started.append(Elsewhere(platform, url, session))
            return started[0]

        yield start


def _refuse_what_is_of_its_own(
    plugins: tuple[Any, ...], env: Mapping[str, str | None], other: Mapping[str, Any], started: list[Running]
) -> None:
    known = {candidate.name for candidate in installed()}
    foreign = {candidate.name for candidate in candidates_of(*plugins)} - known
    if foreign:
        pytest.skip(f"brings plugins that the installation does not have: {', '.join(sorted(foreign))}")
    settings = {name for name, value in env.items() if value is not None} - {"DATABASE_URL"}
    if settings or other or started:
        pytest.skip(f"needs an installation of its own: {', '.join(sorted([*settings, *other]))}")
    if "DATABASE_URL" in env and env["DATABASE_URL"] is None:
        pytest.skip("is for SQLite")


def _make_room(unit: Unit) -> None:
    """Let names be free again that earlier tests took, and nobody be the first administrator."""
    tail = secrets.token_hex(4)
    unit.session.execute(
        text(
            "UPDATE kernel_account SET username = id || '-' || :tail, username_key = id || '-' || :tail,"
            " email = id || '-' || :tail || '@example.org', email_key = id || '-' || :tail || '@example.org',"
            " platform_admin = false"
        ),
        {"tail": tail},
    )
