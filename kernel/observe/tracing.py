"""Traces: which work belongs together across processes and servers; recorded if a plugin brings a `Tracer`.

The kernel and plugins report when work begins and ends. Names and attributes follow OpenTelemetry's semantic
conventions. They never contain a path, query, body, text or prompt, and of headers only ``X-Request-ID``. The
host of a call may come from a client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Literal, Protocol, TypeAlias

from aiohttp import web
from aiohttp.typedefs import Handler

from kernel.db.tables import JobRecord
from kernel.errors import ANY_ERROR, PlatformError
from kernel.plugins.resource_keys import ResourceKey

SpanKind = Literal["server", "client", "consumer", "internal"]
Attribute: TypeAlias = str | int | float | bool | Sequence[str]
Attributes: TypeAlias = Mapping[str, Attribute]
Carried: TypeAlias = Mapping[str, str]
"""The headers ``traceparent`` and ``tracestate`` (W3C Trace Context), with which others continue a trace."""

_NOTHING: Mapping[str, str] = {}


class Span(Protocol):
    """A piece of work in a trace, from start to end."""

    def rename(self, name: str) -> None:
        """Change the name once more is known."""

    def set(self, name: str, value: Attribute | None) -> None:
        """Add an attribute; None adds nothing."""

    def fail(self, kind: str) -> None:
        """Mark the span as failed with the error's class or code, never its text."""

    def end(self) -> None:
        """End the span; a second call does nothing."""

    @property
    def carried(self) -> Carried:
        """The headers with which a receiver continues this trace below this span."""
        ...


class Tracer(Protocol):
    """Records spans."""

    def begin(
        self, name: str, kind: SpanKind, attributes: Attributes, parent: Span | Carried | None, links: Links
    ) -> Span:
        """A span below `parent`; without a readable one, it begins a new trace."""
        ...

    def work(
        self, records: Sequence[JobRecord], expected: tuple[type[BaseException], ...]
    ) -> AbstractContextManager[None]:
        """The block as the spans of these jobs' attempts; `expected` errors are no failures."""
        ...

    async def serve(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Call `handler(request)` within the span of the request, and return its response."""
        ...


Links: TypeAlias = Sequence[Span]


class NoSpan:
    """The span if nobody records."""

    carried: Carried = _NOTHING

    def rename(self, name: str) -> None:
        """Nothing."""

    def set(self, name: str, value: Attribute | None) -> None:
        """Nothing."""

    def fail(self, kind: str) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


NO_SPAN: Span = NoSpan()
_current: ContextVar[Span] = ContextVar("platform_span", default=NO_SPAN)


def carried_by_current() -> Carried:
    """The headers of the current span; empty if there is none."""
    return _current.get().carried


class Tracing:
    """Begins spans for a platform. Without a `tracer`, a call only reads an attribute."""

    def __init__(self) -> None:
        self.tracer: Tracer | None = None

    def begin(
        self,
        name: str,
        kind: SpanKind,
        attributes: Attributes = _NOTHING,
        *,
        parent: Span | Carried | None = None,
        links: Links = (),
    ) -> Span:
        """A span that the caller must end. Without `parent`, it is below the current one, if there is one."""
        if self.tracer is None:
            return NO_SPAN
        current = _current.get()
        above = parent if parent is not None else (None if current is NO_SPAN else current)
        return self.tracer.begin(name, kind, attributes, above, links)

    @contextmanager
    def span(
        self,
        name: str,
        kind: SpanKind = "internal",
        attributes: Attributes = _NOTHING,
        *,
        parent: Span | Carried | None = None,
        expected: tuple[type[BaseException], ...] = (),
    ) -> Iterator[Span]:
        """The block as a span, with inner spans below it. An error marks it as failed.

        Refusals (a PlatformError below 500), cancellations and `expected` errors aren't failures. Not for the
        body of an async generator, which would leak it to the reader: see `current`.
        """
        if self.tracer is None:
            yield NO_SPAN
            return
        span = self.begin(name, kind, attributes, parent=parent)
        token = _current.set(span)
        try:
            yield span
        except BaseException as error:  # including cancellation: recorded and raised again
            if not isinstance(error, expected):
                note_error(span, error)
            raise
        finally:
            _current.reset(token)
            span.end()

    def work(
        self, records: Sequence[JobRecord], *, expected: tuple[type[BaseException], ...] = ()
    ) -> AbstractContextManager[None]:
        """See `Tracer.work`."""
        return nullcontext() if self.tracer is None else self.tracer.work(records, expected)

    def part(self, name: str) -> AbstractContextManager[Span]:
        """The block as a child of the current span; without one, it makes no span."""
        return nullcontext(NO_SPAN) if _current.get() is NO_SPAN else self.span(name)


@contextmanager
def current(span: Span) -> Iterator[None]:
    """Make `span` the current one during the block; it isn't ended."""
    if span is NO_SPAN:
        yield
        return
    token = _current.set(span)
    try:
        yield
    finally:
        _current.reset(token)


def note_error(span: Span, error: BaseException) -> None:
    """Mark a span as failed if the error is a failure: by code or class, as its text may be private."""
    if isinstance(error, PlatformError):
        if error.status >= 500:
            span.fail(error.code)
    elif isinstance(error, ANY_ERROR) and not isinstance(error, asyncio.CancelledError):
        span.fail(type(error).__name__)


TRACING: ResourceKey[Tracing] = ResourceKey("tracing")
