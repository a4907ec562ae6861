"""Jobs as spans in the traces that enqueued them, by OpenTelemetry's conventions for messaging."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from kernel.sdk import Span
from kernel.sdk.jobs import JobRecord
from kernel.sdk.telemetry import Attributes, Carried, Tracing, current_span, note_span_error


@contextmanager
def job_spans(
    tracing: Tracing, records: Sequence[JobRecord], expected: tuple[type[BaseException], ...]
) -> Iterator[None]:
    """The spans of jobs that are handled together, each in its own trace; `expected` errors are no failures.

    Nested spans belong to the first one; the others link to it.
    """
    spans: list[Span] = []
    with ExitStack() as stack:
        for record in records:
            attributes = _attributes(record, len(records))
            name, parent = f"job {record.name}", _stored(record)
            spans.append(tracing.begin(name, "consumer", attributes, parent=parent, links=spans[:1]))
            stack.callback(spans[-1].end)
        stack.enter_context(current_span(spans[0]))
        try:
            yield
        except BaseException as error:  # including cancellation: recorded and raised again
            if not isinstance(error, expected):
                note_span_error(spans[0], error)
            raise


def _attributes(record: JobRecord, together: int) -> Attributes:
    return {
        "messaging.system": "platform",
        "messaging.operation.type": "process",
        "messaging.destination.name": record.lane,
        "messaging.message.id": record.id,
        "messaging.batch.message_count": together,
        "platform.job.name": record.name,
        "platform.job.attempt": record.attempts,
    }


def _stored(record: JobRecord) -> Carried:
    return {} if record.trace is None else {"traceparent": record.trace}
