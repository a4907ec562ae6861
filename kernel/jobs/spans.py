"""Jobs as spans in the traces that enqueued them (OpenTelemetry's conventions for messaging)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager

from kernel.db.tables import JobRecord
from kernel.jobs.declarations import JobMoved
from kernel.jobs.queue import TRACEPARENT
from kernel.jobs.stopping import Cancelled
from kernel.observe.tracing import Attributes, Carried, Span, Tracing, current, note_error


def attempt_span(tracing: Tracing, record: JobRecord) -> AbstractContextManager[Span]:
    """The span of one attempt."""
    attributes = {**_attributes(record), "platform.job.attempt": record.attempts}
    expected = (JobMoved, Cancelled)
    return tracing.span(
        f"job {record.name}", "consumer", attributes, parent=_stored(record), expected=expected
    )


@contextmanager
def together_span(tracing: Tracing, records: Sequence[JobRecord]) -> Iterator[None]:
    """The spans of jobs that are handled together, each in its own trace.

    Nested spans belong to the first one; the others link to it.
    """
    spans: list[Span] = []
    with ExitStack() as stack:
        for record in records:
            attributes = {**_attributes(record), "messaging.batch.message_count": len(records)}
            name, parent = f"job {record.name}", _stored(record)
            spans.append(tracing.begin(name, "consumer", attributes, parent=parent, links=spans[:1]))
            stack.callback(spans[-1].end)
        stack.enter_context(current(spans[0]))
        try:
            yield
        except BaseException as error:  # including cancellation: recorded and raised again
            note_error(spans[0], error)
            raise


def _attributes(record: JobRecord) -> Attributes:
    return {
        "messaging.system": "platform",
        "messaging.operation.type": "process",
        "messaging.destination.name": record.lane,
        "messaging.message.id": record.id,
        "platform.job.name": record.name,
    }


def _stored(record: JobRecord) -> Carried:
    return {} if record.trace is None else {TRACEPARENT: record.trace}
