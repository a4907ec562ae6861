"""A clock that is set back an hour while the platform runs: sessions, jobs, schedules and limits go on."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from kernel.auth.tokens import TOKENS
from kernel.jobs.silence import GONE, SILENT_SECONDS, Watched
from kernel.rate_limits import RATE_LIMITS
from kernel.testing import Start, eventually
from tests.fakes.paced_embeddings import paced
from tests.fakes.processes import Served, served_platform, without_plugins

BACK = -3600.0
MOVED = Path(__file__).resolve().parents[1] / "fakes" / "moved_clock"


class Clock:
    """The clock of processes that are started with `env`; the tests' own goes on as before."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.env = {"PYTHONPATH": str(MOVED), "TEST_CLOCK": str(file)}
        self.set(0)

    def set(self, seconds: float) -> None:
        """By how much it differs from the machine's."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(str(seconds))
        fresh.replace(self._file)


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    """A clock that can be set."""
    return Clock(tmp_path / "clock")


@pytest.mark.durability
@pytest.mark.long
async def test_set_back_an_hour(
    platform_home: Path, tmp_path: Path, database_url: str | None, clock: Clock
) -> None:
    """Sessions from before hold, in these processes and in new ones; documents are read, limits limit."""
    env = {**without_plugins("rag"), **clock.env, "RATE_LIMIT_ENABLED": "true"}
    env["PYTHONPATH"] += os.pathsep + paced(tmp_path / "packages")["PYTHONPATH"]
    if database_url is not None:
        env["DATABASE_URL"] = database_url
    account: dict[str, str] = {}
    for turn in ("the processes that run", "new processes"):
        async with served_platform(platform_home, env=env) as served:
            account = account or await served.sign_up()
            bases = f"{served.url}/v1/rag/knowledge-bases"
            async with served.session.post(bases, headers=account, json={"name": turn}) as answer:
                assert answer.status == 200, await answer.text()
                base = (await answer.json())["id"]
            if turn == "the processes that run":
                clock.set(BACK)
            form = aiohttp.FormData()
            form.add_field("file", f"The clock of {turn}.".encode(), filename="clock.txt")
            async with served.session.post(f"{bases}/{base}/upload", headers=account, data=form) as answer:
                assert answer.status == 202, await answer.text()
                document = (await answer.json())["document_id"]

            await eventually(partial(_is_read, served, f"{bases}/{base}/documents/{document}", account), 90)
            async with served.session.post(f"{served.url}/v1/auth/refresh", headers=account) as answer:
                assert answer.status == 200, await answer.text()
            assert served.process.returncode is None


async def _is_read(served: Served, url: str, account: dict[str, str]) -> bool:
    """Whether a worker has read the document."""
    async with served.session.get(url, headers=account) as answer:
        assert answer.status == 200, await answer.text()
        return bool((await answer.json())["status"] == "completed")


class _Moved:
    """Moves what `time.time` says, for what runs in the tests' own process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch, self._real = monkeypatch, time.time

    def by(self, seconds: float) -> None:
        self._patch.setattr(time, "time", lambda: self._real() + seconds)


async def test_a_token_from_before_the_clock_was_set_back(
    start_platform: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was issued in the future, as it seems; its end bounds it all the same."""
    running = await start_platform()
    moved = _Moved(monkeypatch)
    moved.by(3600)
    ana = await running.user()
    assert ana.token is not None
    moved.by(0)
    assert (await ana.get("/v1/permissions")).status == 200
    assert running.platform.resource(TOKENS).verify(ana.token)["iat"] > time.time() + 3000


async def test_limits_forget_the_future(start_platform: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was counted an hour later refuses nobody for an hour."""
    running = await start_platform(env={"RATE_LIMIT_ENABLED": "true"})
    limits, moved = running.platform.resource(RATE_LIMITS), _Moved(monkeypatch)
    moved.by(3600)
    for _ in range(5):
        await limits.exceeds("somebody", 3, 60)
    assert await limits.seen("somebody") == 5
    moved.by(0)
    assert await limits.seen("somebody") == 0
    assert not await limits.exceeds("somebody", 3, 60)


def test_workers_are_judged_by_an_own_clock() -> None:
    """A clock that jumps neither makes a live worker silent nor keeps a dead one alive."""
    noon, watched = datetime(2026, 1, 1, 12, tzinfo=UTC), Watched()
    assert watched.silent({"live": noon, "dead": noon}, 0) == []
    back = noon - timedelta(hours=1)
    assert watched.silent({"live": back, "dead": noon}, 10) == []
    assert watched.silent({"live": back + timedelta(seconds=10), "dead": noon}, 20) == []
    on = {"live": noon + timedelta(hours=5), "dead": noon, "left": GONE}
    assert watched.silent(on, SILENT_SECONDS + 1) == ["dead", "left"]
    assert watched.silent({"live": on["live"]}, SILENT_SECONDS + 20) == []
    assert watched.silent({"live": on["live"]}, 2 * SILENT_SECONDS + 2) == ["live"]


def test_who_could_not_look_takes_no_live_workers_jobs() -> None:
    """After an outage of the database all are silent alike: the first to be back waits for the others."""
    noon, watched = datetime(2026, 1, 1, 12, tzinfo=UTC), Watched()
    before = {"live": noon, "dead": noon, "left": noon}
    assert watched.silent(before, 0) == []
    assert watched.silent({**before, "left": GONE}, 60) == ["left"]
    after = {"live": noon + timedelta(seconds=65), "dead": noon}
    assert watched.silent(after, 70) == []
    assert watched.silent(after, 80) == []
    assert watched.silent(after, 91) == ["dead"]
