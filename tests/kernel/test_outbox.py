"""Durable events: found again under their names, whatever became of the file that holds their class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import insert, select

from kernel.db.tables import JobRecord
from kernel.sdk import PLUGIN_STATES, Event, Plugin, hookimpl
from kernel.testing import Running, Start


class Paid(Event):
    """A bill was paid; in the release before, it was called otherwise."""

    event_name = "bills.paid"
    former_names = ("somewhere.else:BillPaid",)
    durable = True

    amount: int


class Bills(Plugin):
    """Declares events, and hears all."""

    name = "bills"

    def __init__(self, *events: type[Event]) -> None:
        self.events = events
        self.heard: list[Event] = []
        self.refused: list[int] = []  # amounts, once each

    @hookimpl
    def register_events(self) -> Sequence[type[Event]]:
        return self.events

    @hookimpl
    def on_event(self, event: Event) -> None:
        if isinstance(event, Paid) and event.amount in self.refused:
            self.refused.remove(event.amount)
            raise RuntimeError("not now")
        self.heard.append(event)


async def queue_as_before(running: Running, event: str, fields: dict[str, Any]) -> None:
    """Write the row that a worker finds for an event which an earlier release emitted."""
    async with running.platform.database.connection() as connection:
        payload = {"event": event, "fields": fields}
        row = {"id": event[-40:], "name": "kernel.deliver_event", "payload": payload}
        await connection.execute(insert(JobRecord).values(row))


async def ended(running: Running) -> list[tuple[str, str | None]]:
    query = select(JobRecord.status, JobRecord.error)
    return await running.platform.database.read(
        lambda session: [(status, error) for status, error in session.execute(query)]
    )


async def test_what_the_released_version_queued_is_delivered(
    start_platform: Start, database_url: str | None
) -> None:
    """Its rows name events by module and class: each reaches the listeners as the event of today."""
    listener = Bills()
    running = await start_platform("rag", listener, env={"DATABASE_URL": database_url})
    gone = {"document_id": "d", "knowledge_base_id": "k", "owner_id": 1}
    made = {**gone, "filename": "a.txt", "chunk_count": 3}
    await queue_as_before(running, "builtin_plugins.rag.events:DocumentIngested", made)
    await queue_as_before(running, "builtin_plugins.rag.events:DocumentDeleted", gone)
    assert await running.run_jobs() == 2
    heard = {event.event_name: event.model_dump() for event in listener.heard}
    assert heard == {"rag.document_ingested": made, "rag.document_deleted": gone}
    assert await ended(running) == [("done", None)] * 2


async def test_it_is_stored_under_its_name(start_platform: Start, database_url: str | None) -> None:
    """No module is named in the row, so that its file may move."""
    bills = Bills(Paid)
    running = await start_platform(bills, env={"DATABASE_URL": database_url})
    await running.platform.database.write(lambda unit: unit.emit(Paid(amount=7)))
    payload = await running.platform.database.read(lambda session: session.scalar(select(JobRecord.payload)))
    assert payload == {"event": "bills.paid", "fields": {"amount": 7}}
    await queue_as_before(running, "somewhere.else:BillPaid", {"amount": 8})
    await running.run_jobs()
    assert sorted(event.amount for event in bills.heard if isinstance(event, Paid)) == [7, 8]


async def test_what_a_listener_could_not_take_comes_again(
    start_platform: Start, database_url: str | None
) -> None:
    """Of several events delivered together, one that fails isn't done with the others."""
    bills = Bills(Paid)
    bills.refused = [8]
    running = await start_platform(bills, env={"DATABASE_URL": database_url})
    for amount in (7, 8, 9):
        await running.platform.database.write(lambda unit, amount=amount: unit.emit(Paid(amount=amount)))
    await running.run_jobs()
    assert sorted(event.amount for event in bills.heard if isinstance(event, Paid)) == [7, 8, 9]
    assert (bills.refused, await ended(running)) == ([], [("done", None)] * 3)


async def test_an_event_that_nobody_declares_any_longer(start_platform: Start) -> None:
    running = await start_platform(Bills())
    await queue_as_before(running, "old_plugin.happened", {})
    await running.run_jobs()
    [(status, error)] = await ended(running)
    assert (status, "'old_plugin.happened'" in error) == ("failed", True)


async def test_emitting_what_is_not_declared(start_platform: Start) -> None:
    """A durable event that could not be found again is refused where it is emitted, and nothing is kept."""
    running = await start_platform(Bills())
    with pytest.raises(RuntimeError, match=r"Paid .*register_events"):
        await running.platform.database.write(lambda unit: unit.emit(Paid(amount=7)))
    assert await ended(running) == []


def named(event_name: str, *former_names: str) -> type[Event]:
    return type("Named", (Event,), {"event_name": event_name, "former_names": former_names})


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([named("bills.sent"), named("bills.sent")], "'bills.sent'"),
        ([named("bills.sent"), named("bills.out", "bills.sent")], "'bills.sent'"),
        ([named("rag.document_ingested")], "'bills.…'"),
        (
            [named("bills.stolen", "builtin_plugins.rag.events:DocumentIngested")],
            "'builtin_plugins.rag.events:DocumentIngested'",
        ),
    ],
)
async def test_two_events_of_one_name(start_platform: Start, events: list[type[Event]], reason: str) -> None:
    """A stored event must be found again: the plugin that came later is refused."""
    running = await start_platform("rag", Bills(*events))
    record = running.platform.resource(PLUGIN_STATES).records["bills"]
    assert record.reason is not None and reason in record.reason


@pytest.mark.parametrize(
    "attributes", [{}, {"event_name": ""}, {"event_name": "Paid"}, {"event_name": "paid"}]
)
def test_an_event_without_a_name(attributes: dict[str, str]) -> None:
    with pytest.raises(TypeError, match=r"Nameless .*event_name"):
        type("Nameless", (Event,), attributes)


def test_a_name_is_not_inherited() -> None:
    with pytest.raises(TypeError, match=r"PaidLate .*event_name"):
        type("PaidLate", (Paid,), {})
