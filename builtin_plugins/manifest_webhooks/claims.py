"""Which file holds a name or a webhook path, known to all processes and kept across restarts.

Each process reads the folder by itself. The files don't tell which came first, so each process would
otherwise remember it differently.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from kernel.sdk import Unit

from .catalog import Catalog, Holders
from .models import ClaimRow

TOPIC = "manifest_webhooks.claims"
"""The topic of the notice that a name or a path belongs to another file now."""


def read_claims(session: Session) -> Holders:
    """Who holds what."""
    return {(row.kind, row.value): row.file for row in session.scalars(select(ClaimRow))}


def settle_claims(unit: Unit, decide: Callable[[Holders], Catalog]) -> Catalog:
    """Call `decide`, one process at a time, and store the result."""
    unit.lock(TOPIC)
    holders = read_claims(unit.session)
    catalog = decide(holders)
    if catalog.holders != holders:
        _write(unit, holders, catalog.holders)
        unit.notify(TOPIC, "")
    return catalog


def forget_claims(unit: Unit, file: str) -> None:
    """Forget the claims of a removed file."""
    unit.lock(TOPIC)
    unit.session.execute(delete(ClaimRow).where(ClaimRow.file == file))


def holder_of(session: Session, plugin: str) -> str | None:
    """The file that holds a plugin's name."""
    query = select(ClaimRow.file).where(ClaimRow.kind == "name", ClaimRow.value == plugin)
    return session.scalar(query)


def _write(unit: Unit, before: Holders, now: Holders) -> None:
    for kind, value in before.keys() - now.keys():
        unit.session.delete(unit.session.get_one(ClaimRow, (kind, value)))
    for (kind, value), file in now.items():
        if before.get((kind, value)) != file:
            unit.session.merge(ClaimRow(kind=kind, value=value, file=file))
