"""Sets up OpenTelemetry's library for one process. Only imported if traces are recorded."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from kernel.sdk.telemetry import mask

log = logging.getLogger("platform.tracing")

_SAY_EVERY: Final = 60.0
_LIBRARY_LOG: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


def make_provider(address: str, service: str, role: str) -> TracerProvider:
    """A provider that sends to `address`; the environment sets the rest, such as sampling and headers."""
    named = Resource.create({"service.instance.id": str(uuid.uuid4()), "platform.role": role})
    if str(named.attributes.get(SERVICE_NAME, "")).startswith("unknown_service") or service != "platform":
        named = named.merge(Resource({SERVICE_NAME: service}))
    provider = TracerProvider(resource=named, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Patient(OTLPSpanExporter(endpoint=address))))
    return provider


class Patient(SpanExporter):
    """Reports only once a minute that a collector refuses spans; the library would flood the log."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._lost = 0
        self._last_report = float("-inf")
        logging.getLogger(_LIBRARY_LOG).setLevel(logging.CRITICAL)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send the spans; those that can't be sent are lost."""
        why = ""
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - boundary: the library's transport
            why, result = f": {type(error).__name__}", SpanExportResult.FAILURE
        if result is not SpanExportResult.SUCCESS:
            self._lost += len(spans)
            if time.monotonic() - self._last_report > _SAY_EVERY:
                log.warning("%s spans were lost: the collector did not accept them%s", self._lost, mask(why))
                self._last_report, self._lost = time.monotonic(), 0
        return result

    def shutdown(self) -> None:
        """Close the connections."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Nothing waits here."""
        return bool(self._exporter.force_flush(timeout_millis))
