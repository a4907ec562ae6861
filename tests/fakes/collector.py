"""An OpenTelemetry collector on a real socket, which takes traces over HTTP as protobuf."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

KINDS = {1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}


@dataclass(frozen=True)
class Received:
    """A span as it arrived; `resource` is what its process says about itself."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str
    failed: bool
    nanoseconds: int
    attributes: dict[str, Any]
    resource: dict[str, Any]
    links: tuple[str, ...]


class Collector:
    """What was received. It refuses everything while `refusing`."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Received] = []
        self.headers: list[dict[str, str]] = []
        self.refusing = False
        self.refused = 0
        self._arrived = asyncio.Condition()

    async def until(self, check: Callable[[list[Received]], Any], seconds: float = 30) -> Any:
        """What `check(spans)` says, once that is true."""
        try:
            async with asyncio.timeout(seconds), self._arrived:
                await self._arrived.wait_for(lambda: check(self.spans))
        except TimeoutError:
            told = sorted({f"{span.kind} {span.name}" for span in self.spans})
            raise AssertionError(f"the spans that are waited for do not come; there are {told}") from None
        return check(self.spans)

    async def span(self, name: str, **attributes: Any) -> Received:
        """The first span of this name, and with these attributes (``_`` for ``.``), once it is there."""

        def fits(span: Received) -> bool:
            return span.name == name and all(span.attributes.get(k) == v for k, v in attributes.items())

        found: Received = await self.until(lambda spans: next(filter(fits, spans), None))
        return found

    async def receive(self, request: web.Request) -> web.Response:
        """POST /v1/traces."""
        self.headers.append(dict(request.headers))
        body = await request.read()
        if self.refusing:
            self.refused += 1
            return web.Response(status=400)
        message = ExportTraceServiceRequest.FromString(body)
        async with self._arrived:
            for group in message.resource_spans:
                resource = _values(group.resource.attributes)
                for scope in group.scope_spans:
                    self.spans += [_received(span, resource) for span in scope.spans]
            self._arrived.notify_all()
        answer = ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=answer, content_type="application/x-protobuf")


def _received(span: Message, resource: dict[str, Any]) -> Received:
    return Received(
        name=span.name,
        kind=KINDS[span.kind],
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        failed=span.status.code == 2,
        nanoseconds=span.end_time_unix_nano - span.start_time_unix_nano,
        attributes=_values(span.attributes),
        resource=resource,
        links=tuple(link.span_id.hex() for link in span.links),
    )


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs if isinstance(pair, KeyValue)}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return None if kind is None else getattr(value, kind)


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """A collector on a free port."""
    collector = Collector()
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/v1/traces", collector.receive)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield collector
    finally:
        await runner.cleanup()
