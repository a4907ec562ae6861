"""Metrics of several API processes: whoever is asked answers for all of them."""

from __future__ import annotations

import signal
import stat
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from builtin_plugins.platform_ops.shared_metrics import add_up
from kernel.observe.metrics import Metrics
from tests.fakes.processes import Served, listening, served_platform, without_plugins
from tests.fakes.waiting import eventually

PATH = "/v1/auth/capabilities"
OPS = without_plugins("platform_ops")
SCRAPES = 12  # by chance all of them reach one process in one run of two thousand


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home whose path is short enough for a socket in it."""
    with tempfile.TemporaryDirectory(prefix="pm-") as folder:
        yield Path(folder) / "home"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(home: Path) -> AsyncIterator[Served]:
    async with served_platform(
        home, "--workers", "2", "--no-worker", env=without_plugins("platform_ops")
    ) as served:
        await eventually(lambda: len(listening(served.process)) == 2, 30)
        yield served


async def fetch(served: Served, path: str) -> str:
    """An answer over its own connection: whichever process takes it."""
    async with aiohttp.ClientSession() as session, session.get(served.url + path) as answer:
        assert answer.status == 200
        return await answer.text()


def value(text: str, sample: str, **labels: str) -> float:
    return sum(
        entry.value
        for family in text_string_to_metric_families(text)
        for entry in family.samples
        if entry.name == sample and labels.items() <= entry.labels.items()
    )


async def counted(served: Served) -> set[float]:
    """How many requests of PATH were served, as several scrapes tell."""
    texts = [await fetch(served, "/metrics") for _ in range(SCRAPES)]
    return {value(text, "http_requests_total", endpoint=PATH) for text in texts}


def sockets(folder: Path, pattern: str) -> list[Path]:
    return [path for path in folder.glob(pattern) if path.is_socket()]


@pytest.mark.asyncio(loop_scope="module")
class TestTwoProcesses:
    async def test_every_scrape_tells_of_all(self, served: Served) -> None:
        """Requests over many connections are counted once each, whichever process is asked."""
        before = await counted(served)
        for _ in range(40):
            await fetch(served, PATH)
        assert await counted(served) == {min(before) + 40}
        text = await fetch(served, "/metrics")
        durations = value(text, "http_request_duration_seconds_count", endpoint=PATH)
        assert durations == min(before) + 40
        assert value(text, "http_request_duration_seconds_bucket", endpoint=PATH, le="+Inf") == durations
        assert value(text, "http_requests_in_progress", method="GET") == 1

    async def test_each_process_has_its_part(self, served: Served, home: Path) -> None:
        found = sockets(home, "run/*")
        assert len(found) == 2
        assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}

    async def test_a_sibling_that_hangs(self, served: Served) -> None:
        """One that does not answer is left out and named in the log; the scrape is answered all the same."""
        hung, awake = listening(served.process)
        hung.send_signal(signal.SIGSTOP)
        try:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(6)) as session:
                await eventually(lambda: answers(session, served), 60)
        finally:
            hung.send_signal(signal.SIGCONT)
        assert f"process {hung.pid}" in served.process.output()
        assert awake.is_running()

    async def test_a_sibling_that_died(self, served: Served, home: Path) -> None:
        """Its share is gone, the one in its place is counted, and its socket is removed."""
        killed = listening(served.process)[0]
        killed.kill()
        await eventually(
            lambda: (
                killed.pid not in (living := [c.pid for c in listening(served.process)]) and len(living) == 2
            ),
            30,
        )
        assert len(await counted(served)) == 1
        assert len(sockets(home, "run/*")) == 2


async def answers(session: aiohttp.ClientSession, served: Served) -> bool:
    """Whether a new connection reached the process that is awake."""
    try:
        async with session.get(served.url + "/metrics") as answer:
            return answer.status == 200
    except TimeoutError:
        return False


async def test_a_home_too_deep_for_a_socket(tmp_path: Path) -> None:
    """Where the path would be too long the sockets lie in a private folder elsewhere; the sum is the same."""
    deep = tmp_path / ("d" * 120) / "home"
    with tempfile.TemporaryDirectory(prefix="pm-") as elsewhere:
        options = ("--workers", "2", "--no-worker")
        async with served_platform(deep, *options, env={**OPS, "TMPDIR": elsewhere}) as served:
            await eventually(lambda: len(listening(served.process)) == 2, 30)
            for _ in range(20):
                await fetch(served, PATH)
            assert await counted(served) == {20}
            (folder,) = {path.parent for path in sockets(Path(elsewhere), "*/*")}
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_kinds_of_figures() -> None:
    """Counters, histograms and what is in progress are summed; of other gauges the largest stands."""
    texts = []
    for number in (2, 5):
        metrics = Metrics()
        metrics.counter("seen_total", "Seen.", ("what",)).labels('a "b"\n').inc(number)
        metrics.histogram("took_seconds", "Took.").observe(number)
        metrics.gauge("models_registered", "Models.").set(number)
        metrics.gauge("jobs_in_progress", "Jobs.").set(number)
        texts.append(metrics.render())
    text = add_up(texts).decode()
    assert value(text, "seen_total", what='a "b"\n') == 7
    assert value(text, "took_seconds_sum") == 7
    assert value(text, "took_seconds_bucket", le="2.5") == 1
    assert value(text, "took_seconds_bucket", le="+Inf") == 2
    assert value(text, "models_registered") == 5
    assert value(text, "jobs_in_progress") == 7
    kinds = Counter(family.type for family in text_string_to_metric_families(text))
    assert (kinds["counter"], kinds["histogram"]) == (2, 2)
