"""The kernel's spans as those of OpenTelemetry's library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from aiohttp import web
from aiohttp.typedefs import Handler
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace import Span as LibrarySpan
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from builtin_plugins.tracing.jobs import job_spans
from builtin_plugins.tracing.requests import traced
from kernel.sdk import Span
from kernel.sdk.jobs import JobRecord
from kernel.sdk.telemetry import Attribute, Attributes, Carried, Links, Tracing
from kernel.sdk.telemetry import SpanKind as Kind

_KINDS: Mapping[Kind, SpanKind] = {
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "consumer": SpanKind.CONSUMER,
    "internal": SpanKind.INTERNAL,
}
_NOWHERE = Context()


class RecordedSpan:
    """A span of the library. The kernel tracks the current span, not the library's context."""

    def __init__(self, span: LibrarySpan, propagator: TraceContextTextMapPropagator) -> None:
        self.span = span
        self.context = set_span_in_context(span, _NOWHERE)
        self._propagator = propagator
        self._ended = False

    def rename(self, name: str) -> None:
        """See `kernel.observe.tracing.Span`."""
        self.span.update_name(name)

    def set(self, name: str, value: Attribute | None) -> None:
        """See `kernel.observe.tracing.Span`."""
        if value is not None:
            self.span.set_attribute(name, value)

    def fail(self, kind: str) -> None:
        """See `kernel.observe.tracing.Span`."""
        self.span.set_attribute("error.type", kind)
        self.span.set_status(Status(StatusCode.ERROR))

    def end(self) -> None:
        """See `kernel.observe.tracing.Span`."""
        if not self._ended:
            self._ended = True
            self.span.end()

    @property
    def carried(self) -> Carried:
        """The headers of this span's context."""
        headers: dict[str, str] = {}
        self._propagator.inject(headers, self.context)
        return headers


class Recorder:
    """Begins spans with the library."""

    def __init__(self, provider: TracerProvider, tracing: Tracing) -> None:
        self._tracing = tracing
        self._tracer = provider.get_tracer("platform")
        self._propagator = TraceContextTextMapPropagator()

    def begin(
        self, name: str, kind: Kind, attributes: Attributes, parent: Span | Carried | None, links: Links
    ) -> RecordedSpan:
        """See `kernel.observe.tracing.Tracer`."""
        span = self._tracer.start_span(
            name,
            context=self._context(parent),
            kind=_KINDS[kind],
            attributes=dict(attributes),
            links=[Link(link.span.get_span_context()) for link in links if isinstance(link, RecordedSpan)],
        )
        return RecordedSpan(span, self._propagator)

    def work(
        self, records: Sequence[JobRecord], expected: tuple[type[BaseException], ...]
    ) -> AbstractContextManager[None]:
        """See `kernel.observe.tracing.Tracer`."""
        return job_spans(self._tracing, records, expected)

    async def serve(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """See `kernel.observe.tracing.Tracer`."""
        return await traced(self._tracing, request, handler)

    def _context(self, parent: Span | Carried | None) -> Context:
        if isinstance(parent, RecordedSpan):
            return parent.context
        if isinstance(parent, Mapping) and parent:
            return self._propagator.extract(parent, _NOWHERE)
        return _NOWHERE
