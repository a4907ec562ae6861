"""Jobs as spans in the traces that enqueued them (OpenTelemetry's conventions for messaging)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from kernel.db.tables import JobRecord
from kernel.jobs.declarations import JobMoved
from kernel.jobs.queue import TRACEPARENT
from kernel.jobs.stopping import Cancelled
from kernel.observe.tracing import Attributes, Carried, Tracing, current, note_error


@contextmanager
def attempt_span(tracing: Tracing, record: JobRecord) -> Iterator[None]:
    """The span of one attempt."""
    if tracing.tracer is None:
        yield
        return
    attributes = {**_attributes(record), "platform.job.attempt": record.attempts}
    expected = (JobMoved, Cancelled)
    with tracing.span(
        f"job {record.name}", "consumer", attributes, parent=_stored(record), expected=expected
    ):
        yield


@contextmanager
def together_span(tracing: Tracing, records: Sequence[JobRecord]) -> Iterator[None]:
    """The spans of jobs that are handled together, each in its own trace.

    Nested spans belong to the first one; the others link to it.
    """
    if tracing.tracer is None or not records:
        yield
        return
    with ExitStack() as stack:
        first, *others = records
        attributes = {"messaging.batch.message_count": len(records)}
        lead = tracing.begin(
            f"job {first.name}", "consumer", {**_attributes(first), **attributes}, parent=_stored(first)
        )
        stack.callback(lead.end)
        for record in others:
            span = tracing.begin(
                f"job {record.name}",
                "consumer",
                {**_attributes(record), **attributes},
                parent=_stored(record),
                links=[lead],
            )
            stack.callback(span.end)
        stack.enter_context(current(lead))
        try:
            yield
        except BaseException as error:  # including cancellation: recorded and raised again
            note_error(lead, error)
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
