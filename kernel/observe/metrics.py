"""Metrics in the text exposition format, with the names of wire-facts 2.3; one registry per platform."""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from kernel.errors import ANY_ERROR
from kernel.observe.logs import mask

log = logging.getLogger("platform.metrics")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_READING_SECONDS = 2.0
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)


class _Endpoint:
    """The figures of a method and endpoint: responses by status, and a histogram of durations."""

    __slots__ = ("buckets", "seconds", "statuses")

    def __init__(self) -> None:
        self.statuses: dict[int, int] = {}
        self.buckets = [0] * (len(_BUCKETS) + 1)
        self.seconds = 0.0

    def cumulative(self) -> list[tuple[str, float]]:
        """Buckets as in the text format: each counts everything below its bound."""
        bounds = [*map(str, _BUCKETS), "+Inf"]
        return list(zip(bounds, map(float, accumulate(self.buckets)), strict=True))


class RequestMetrics(Collector):
    """The HTTP metrics, kept as plain numbers and turned into families when they are read.

    The client library's counters lock and look up labels at each step, which costs more than the rest of
    serving a small request; these are written only by the event loop.
    """

    def __init__(self) -> None:
        self._endpoints: dict[tuple[str, str], _Endpoint] = {}
        self._in_progress: dict[str, int] = {}

    def started(self, method: str) -> None:
        """Count a request that arrived."""
        method = _method_label(method)
        self._in_progress[method] = self._in_progress.get(method, 0) + 1

    def finished(self, method: str, endpoint: str, status: int, seconds: float) -> None:
        """Count an answered request; `endpoint` is the route's template, which bounds the label's values."""
        method = _method_label(method)
        self._in_progress[method] -= 1
        counts = self._endpoints.get((method, endpoint))
        if counts is None:
            counts = self._endpoints[(method, endpoint)] = _Endpoint()
        counts.statuses[status] = counts.statuses.get(status, 0) + 1
        counts.buckets[bisect_left(_BUCKETS, seconds)] += 1
        counts.seconds += seconds

    def collect(self) -> Iterator[Metric]:
        """The three families of wire-facts 2.3."""
        total = CounterMetricFamily(
            "http_requests_total", "Requests served.", labels=("method", "endpoint", "status")
        )
        durations = HistogramMetricFamily(
            "http_request_duration_seconds", "Time to serve a request.", labels=("method", "endpoint")
        )
        running = GaugeMetricFamily("http_requests_in_progress", "Requests being served.", labels=("method",))
        for (method, endpoint), counts in self._endpoints.items():
            for status, count in counts.statuses.items():
                total.add_metric((method, endpoint, str(status)), count)
            durations.add_metric((method, endpoint), counts.cumulative(), counts.seconds)
        for method, count in self._in_progress.items():
            running.add_metric((method,), count)
        yield from (total, durations, running)


class _Reading:
    """A reading to take before metrics are shown; rate-limited, as anybody may ask at any rate."""

    def __init__(self, read: Callable[[], Awaitable[None]], every: float) -> None:
        self._read = read
        self._every = every
        self._due = float("-inf")
        self._turn = asyncio.Lock()

    async def take(self) -> None:
        """Take the reading, unless it is recent."""
        async with self._turn:
            if time.monotonic() < self._due:
                return
            try:
                async with asyncio.timeout(_READING_SECONDS):
                    await self._read()
            except ANY_ERROR as error:  # boundary: a plugin's metric may fail in any way, but only by itself
                log.warning("a metric can't be read: %s", mask(f"{type(error).__name__}: {error}"[:200]))
            self._due = time.monotonic() + self._every


class Metrics:
    """The kernel's HTTP metrics, and a factory for those of plugins."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.requests = RequestMetrics()
        self.registry.register(self.requests)
        self.gather: Callable[[], Awaitable[bytes]] | None = None  # set if siblings share the port
        self._readings: list[_Reading] = []

    def counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        """A counter of this registry."""
        return Counter(name, text, labels, registry=self.registry)

    def histogram(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Histogram:
        """A histogram of this registry."""
        return Histogram(name, text, labels, registry=self.registry)

    def gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        """A gauge of this registry. With several processes, the largest value is shown.

        If the name ends in ``_in_progress``, it is their sum.
        """
        return Gauge(name, text, labels, registry=self.registry)

    def on_scrape(self, read: Callable[[], Awaitable[None]], every: float = 5) -> None:
        """Call `read` to set gauges before metrics are shown, at most once in `every` seconds.

        It has two seconds; if it fails, its gauges keep their values, and the log says so.
        """
        self._readings.append(_Reading(read, every))

    async def refresh(self) -> None:
        """Take all due readings."""
        await asyncio.gather(*(reading.take() for reading in self._readings))

    def render(self) -> bytes:
        """This process's metrics as text."""
        return generate_latest(self.registry)

    async def scrape(self) -> bytes:
        """The response to a scrape: the figures of all API processes on this port."""
        await self.refresh()
        return self.render() if self.gather is None else await self.gather()


def _method_label(method: str) -> str:
    return method if method in METHODS else "other"
