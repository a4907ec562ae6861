"""Clocks that are set back, or are wrong on one machine: sessions, jobs, schedules and limits go on."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from sqlalchemy import select

from builtin_plugins.conversations.models import Thread, Turn
from builtin_plugins.conversations.services.removal import TIDY as TIDY_CONVERSATIONS
from builtin_plugins.manifest_webhooks.models import EventRow
from builtin_plugins.manifest_webhooks.storing import FORGET_OLD
from builtin_plugins.published_chat.models import ChatEndpoint, VisitorSession
from builtin_plugins.published_chat.services.retention import TIDY as TIDY_SESSIONS
from kernel.auth.tokens import TOKENS
from kernel.db.tables import JobRecord, WorkerRecord
from kernel.http.rate_limits import RATE_LIMITS
from kernel.jobs.heartbeats import SILENT_SECONDS, Watched
from kernel.jobs.schedules import known_schedules
from kernel.process.housekeeping import HOUSEKEEP
from kernel.sdk import Unit
from kernel.testing import Start, eventually
from tests.fakes.own_clock import OwnClock
from tests.fakes.paced_embeddings import paced
from tests.fakes.processes import (
    Served,
    process_environment,
    running_process,
    served_platform,
    without_plugins,
)

pytestmark = pytest.mark.long

BACK = -3600.0
MOVED = Path(__file__).resolve().parents[1] / "fakes" / "moved_clock"


class Clock:
    """The clock of processes that are started with `env`; the tests' own goes on as before."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.env = {"PYTHONPATH": str(MOVED), "TEST_CLOCK": str(file)}
        self.set(0)

    def set(self, seconds: float) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(str(seconds))
        fresh.replace(self._file)


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "clock")


@pytest.mark.durability
@pytest.mark.long
async def test_set_back_an_hour(
    platform_home: Path, tmp_path: Path, database_url: str | None, clock: Clock
) -> None:
    """Sessions from before hold, in these processes and in new ones; documents are read, limits limit."""
    env = {**without_plugins("rag", "extractive_answers"), **clock.env, "RATE_LIMIT_ENABLED": "true"}
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


@pytest.mark.long
async def test_a_worker_whose_clock_is_a_year_ahead(
    platform_home: Path, postgres_url: str, clock: Clock, start_platform: Start
) -> None:
    """It goes by the database's clock, as all do: no schedule moves into its future, nothing is forgotten."""
    clock.set(365 * 24 * 3600.0)
    plugins = ("owner_secrets", "plugin_registry", "manifest_webhooks")
    env = {**without_plugins(*plugins), **clock.env, "DATABASE_URL": postgres_url}
    observer = await start_platform(*plugins, env={"DATABASE_URL": postgres_url})
    read, write = observer.platform.database.read, observer.platform.database.write

    def keep(unit: Unit) -> None:
        unit.enqueue(HOUSEKEEP, HOUSEKEEP.payload(), job_id="earlier")
        where = {"plugin": "notes", "collection": "notes", "point_id": "p", "dimension": 4}
        unit.session.add(EventRow(event_id="e", **where))

    await write(keep)
    await observer.run_jobs()

    def forget(unit: Unit) -> None:
        unit.enqueue(HOUSEKEEP, HOUSEKEEP.payload(), job_id="jobs")
        unit.enqueue(FORGET_OLD, FORGET_OLD.payload(), job_id="events")

    async def ended() -> set[str]:
        done = select(JobRecord.id).where(JobRecord.status == "done")
        return await read(lambda session: set(session.scalars(done)))

    async def forgot() -> bool:
        return {"jobs", "events"} <= await ended()

    async def due() -> list[datetime]:
        found = await read(known_schedules)
        return [record.next_at for record in found.values()]

    async def is_known() -> bool:
        return bool(await due())

    async with served_platform(platform_home, env=env):
        await eventually(is_known, 30)
        assert max(await due()) < datetime.now(UTC) + timedelta(days=2)
        await write(forget)
        await eventually(forgot, 30)
        assert "earlier" in await ended()
        assert await read(lambda session: session.scalar(select(EventRow.event_id))) == "e"


@pytest.mark.long
async def test_conversations_of_today_and_a_worker_whose_clock_is_a_year_ahead(
    platform_home: Path, postgres_url: str, clock: Clock, start_platform: Start
) -> None:
    """It deletes neither conversations nor sessions that only its own clock calls old, nor open questions."""
    clock.set(365 * 24 * 3600.0)
    plugins = ("models", "rag", "extractive_answers", "conversations", "published_chat")
    env = {**without_plugins(*plugins), **clock.env, "DATABASE_URL": postgres_url}
    env |= {"PLATFORM_CONVERSATIONS_RETENTION_DAYS": "30", "PLATFORM_PUBLISHED_CHAT_RETENTION_DAYS": "30"}
    observer = await start_platform(*plugins, env={"DATABASE_URL": postgres_url})
    ana = await observer.user()
    read, write = observer.platform.database.read, observer.platform.database.write

    def keep(unit: Unit) -> None:
        chat = {"owner_id": ana.user["id"], "name": "chat", "slug": "chat", "slug_key": "chat"}
        chat |= {"pipeline_id": "p", "rag_config": {}, "rate_limit_per_minute": 1}
        unit.session.add(ChatEndpoint(id="chat", daily_questions=1, daily_tokens=1, **chat))
        answered = Thread(holder="user:1", conversation_id="answered", last_activity=unit.now())
        asked = Thread(holder="user:1", conversation_id="asked")
        unit.session.add_all([answered, asked])
        unit.session.flush()
        question = {"asked_by": "user:1", "pipeline_id": "p", "question": "Why?", "pieces": []}
        unit.session.add(Turn(thread_id=asked.id, **question))
        unit.session.add(VisitorSession(id="visitor", endpoint_id="chat", origin=""))
        for job in (TIDY_CONVERSATIONS, TIDY_SESSIONS):
            unit.enqueue(job, job.payload(), job_id=job.name)

    async def tidied() -> bool:
        done = select(JobRecord.id).where(JobRecord.status == "done")
        found = await read(lambda session: set(session.scalars(done)))
        return {TIDY_CONVERSATIONS.name, TIDY_SESSIONS.name} <= found

    await write(keep)
    async with served_platform(platform_home, env=env):
        await eventually(tidied, 120)
    threads = select(Thread.conversation_id).order_by(Thread.id)
    assert await read(lambda session: list(session.scalars(threads))) == ["answered", "asked"]
    assert await read(lambda session: session.scalar(select(Turn.question))) == "Why?"
    assert await read(lambda session: session.scalar(select(VisitorSession.id))) == "visitor"


@pytest.mark.long
async def test_a_conversation_with_a_server_whose_clock_is_a_year_behind(
    platform_home: Path, postgres_url: str, tmp_path: Path, clock: Clock, start_platform: Start
) -> None:
    """It is as new as it is: the next tidying up deletes it nowhere."""
    clock.set(-365 * 24 * 3600.0)
    plugins = ("models", "rag", "extractive_answers", "conversations")
    env = {**without_plugins(*plugins), **clock.env, "DATABASE_URL": postgres_url}
    env["PYTHONPATH"] += os.pathsep + paced(tmp_path / "packages")["PYTHONPATH"]
    days = {"PLATFORM_CONVERSATIONS_RETENTION_DAYS": "30"}
    observer = await start_platform(*plugins, env={"DATABASE_URL": postgres_url, **days})
    async with served_platform(platform_home, "--no-worker", env=env) as served:
        account = await served.sign_up()

        async def post(path: str, **body: object) -> dict[str, str]:
            async with served.session.post(served.url + path, headers=account, json=body) as answer:
                assert answer.status == 200, await answer.text()
                return dict(await answer.json())

        base = await post("/v1/rag/knowledge-bases", name="empty")
        pipeline = await post("/v1/rag/pipeline", name="ask", knowledge_base_ids=[base["id"]])
        path = f"/v1/rag/pipeline/{pipeline['pipeline_id']}/query"
        await post(path, question="Why?", conversation_id="today")

    def tidy(unit: Unit) -> None:
        unit.enqueue(TIDY_CONVERSATIONS, TIDY_CONVERSATIONS.payload())

    await observer.platform.database.write(tidy)
    await observer.run_jobs()
    kept = select(Thread.conversation_id)
    assert await observer.platform.database.read(lambda session: session.scalar(kept)) == "today"


@pytest.mark.parametrize(("seconds", "said"), [(7200.0, "ahead of"), (-7200.0, "behind"), (0.0, "agrees")])
async def test_doctor_names_the_machine_whose_clock_is_wrong(
    platform_home: Path, postgres_url: str, clock: Clock, start_platform: Start, seconds: float, said: str
) -> None:
    """PostgreSQL's clock decides, whatever a machine with another one has stored."""
    running = await start_platform(env={"DATABASE_URL": postgres_url})
    future = datetime.now(UTC) + timedelta(days=365)
    await running.platform.database.write(
        lambda unit: unit.session.add(WorkerRecord(id="elsewhere:1", seen_at=future))
    )
    clock.set(seconds)
    settings = {**without_plugins(), **clock.env}
    settings |= {"DATABASE_URL": postgres_url, "PLATFORM_HOME": str(platform_home), "PLATFORM_PORT": "0"}
    log = platform_home.parent / "doctor.log"
    async with running_process("-m", "cli", "doctor", env=process_environment(settings), log=log) as doctor:
        await doctor.wait(60)
    line = next(line for line in doctor.output().splitlines() if " clock " in line)
    assert said in line


async def _is_read(served: Served, url: str, account: dict[str, str]) -> bool:
    async with served.session.get(url, headers=account) as answer:
        assert answer.status == 200, await answer.text()
        return bool((await answer.json())["status"] == "completed")


async def test_a_token_from_before_the_clock_was_set_back(
    start_platform: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was issued in the future, as it seems; its end bounds it all the same."""
    running = await start_platform()
    moved = OwnClock(monkeypatch)
    moved.by(3600)
    ana = await running.user()
    assert ana.token is not None
    moved.by(0)
    assert (await ana.get("/v1/permissions")).status == 200
    assert running.platform.resource(TOKENS).verify(ana.token)["iat"] > time.time() + 3000


async def test_limits_forget_the_future(start_platform: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was counted an hour later refuses nobody for an hour."""
    running = await start_platform(env={"RATE_LIMIT_ENABLED": "true"})
    limits, moved = running.platform.resource(RATE_LIMITS), OwnClock(monkeypatch)
    moved.by(3600)
    for _ in range(5):
        await limits.exceeds("somebody", 3, 60)
    assert await limits.current_count("somebody") == 5
    moved.by(0)
    assert await limits.current_count("somebody") == 0
    assert not await limits.exceeds("somebody", 3, 60)


def test_workers_are_judged_by_an_own_clock() -> None:
    """A clock that jumps neither makes a live worker silent nor keeps a dead one alive."""
    noon, watched = datetime(2026, 1, 1, 12, tzinfo=UTC), Watched()
    assert watched.silent({"live": noon, "dead": noon}, 0) == []
    back = noon - timedelta(hours=1)
    assert watched.silent({"live": back, "dead": noon}, 10) == []
    assert watched.silent({"live": back + timedelta(seconds=10), "dead": noon}, 20) == []
    on = {"live": noon + timedelta(hours=5), "dead": noon}
    assert watched.silent(on, SILENT_SECONDS + 1) == ["dead"]
    assert watched.silent({"live": on["live"]}, SILENT_SECONDS + 20) == []
    assert watched.silent({"live": on["live"]}, 2 * SILENT_SECONDS + 2) == ["live"]


def test_who_could_not_look_takes_no_live_workers_jobs() -> None:
    """After an outage of the database all are silent alike: the first to be back waits for the others."""
    noon, watched = datetime(2026, 1, 1, 12, tzinfo=UTC), Watched()
    before = {"live": noon, "dead": noon}
    assert watched.silent(before, 0) == []
    assert watched.silent(before, 60) == []
    after = {"live": noon + timedelta(seconds=65), "dead": noon}
    assert watched.silent(after, 70) == []
    assert watched.silent(after, 80) == []
    assert watched.silent(after, 91) == ["dead"]
