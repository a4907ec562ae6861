"""Jobs as spans, in the traces of what enqueued them (OpenTelemetry's conventions for messaging)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from kernel.db.tables import JobRecord
from kernel.jobs.declarations import JobMoved
from kernel.jobs.gathered import CARRIER
from kernel.jobs.stopping import Cancelled
from kernel.tracing import Attributes, Carried, Tracing, carried_by_current, current, note_error

TRACEPARENT = "traceparent"
_LONGEST = 64


def trace_to_store() -> str | None:
    """What a job that is enqueued now remembers of the trace that it belongs to."""
    found = carried_by_current().get(TRACEPARENT, "")
    return found if 0 < len(found) <= _LONGEST else None


@contextmanager
def attempt_span(tracing: Tracing, record: JobRecord) -> Iterator[None]:
    """One attempt. A carrier isn't work in itself: the jobs that it takes up have their spans."""
    if tracing.tracer is None or record.name == CARRIER:
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
    """Jobs that are handled at once: each has a span in its own trace.

    What happens meanwhile is below that of the first; the others link to it.
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
        except BaseException as error:  # also when cancelled: noted, and raised again
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
