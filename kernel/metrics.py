"""Metrics in text exposition format, with the names of wire-facts 2.3; one registry for each platform."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """HTTP metrics of the kernel, and a factory for those of plugins."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self._requests = self.counter(
            "http_requests_total", "Requests served.", ("method", "endpoint", "status")
        )
        self._durations = self.histogram(
            "http_request_duration_seconds", "Time to serve a request.", ("method", "endpoint")
        )
        self._in_progress = self.gauge("http_requests_in_progress", "Requests being served.", ("method",))
        self._bound: dict[tuple[str, str, int], tuple[Any, Any, Any]] = {}

    def counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        """A counter of this registry."""
        return Counter(name, text, labels, registry=self.registry)

    def histogram(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Histogram:
        """A histogram of this registry."""
        return Histogram(name, text, labels, registry=self.registry)

    def gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        """A gauge of this registry."""
        return Gauge(name, text, labels, registry=self.registry)

    def started(self, method: str) -> None:
        """A request came in."""
        self._in_progress.labels(_known(method)).inc()

    def finished(self, method: str, endpoint: str, status: int, seconds: float) -> None:
        """A request was answered; `endpoint` is the route's template, which bounds the label's values."""
        key = (_known(method), endpoint, status)
        bound = self._bound.get(key)
        if bound is None:
            bound = self._bound[key] = self._bind(*key)
        bound[0].inc()
        bound[1].observe(seconds)
        bound[2].dec()

    def _bind(self, method: str, endpoint: str, status: int) -> tuple[Any, Any, Any]:
        return (
            self._requests.labels(method, endpoint, str(status)),
            self._durations.labels(method, endpoint),
            self._in_progress.labels(method),
        )

    def render(self) -> bytes:
        """Everything, as text."""
        return generate_latest(self.registry)


def _known(method: str) -> str:
    return method if method in _METHODS else "other"
