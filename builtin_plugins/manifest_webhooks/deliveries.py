"""Which deliveries a manifest plugin wants, and what happened to the last ones. Payloads are never stored."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import delete, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from kernel.sdk import Database, PlatformError, TooManyRequests

from .manifest import Webhook
from .models import DeliveryRow
from .problems import shorten

GITHUB_EVENT = "X-GitHub-Event"
EVENT_HEADERS = (GITHUB_EVENT, "X-Gitlab-Event", "X-Event-Key")
_PING = "GitHub's ping: the webhook is set up"
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")


def why_unwanted(webhook: Webhook, headers: Mapping[str, str]) -> str | None:
    """Why a delivery is acknowledged and not stored; None for one that the manifest wants.

    Names of headers are read in any case, values exactly. GitHub's ping is wanted only if an item asks for
    it. `headers` must be case-insensitive.
    """
    if webhook.events is None:
        return _PING if headers.get(GITHUB_EVENT) == "ping" else None
    if any(_fits(item, headers) for item in webhook.events):
        return None
    if headers.get(GITHUB_EVENT) == "ping":
        return _PING
    return f"not one of the manifest's events: {_sent(webhook.events, headers)}"


def printable(value: str | None, limit: int = 80) -> str | None:
    """A sender's text, made safe for a message or a terminal."""
    return None if value is None else shorten(_UNPRINTABLE.sub("?", value), limit)


def _fits(item: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    return all(headers.get(name) == value for name, value in item.items())


def _sent(events: Sequence[Mapping[str, str]], headers: Mapping[str, str]) -> str:
    names = dict.fromkeys(name for item in events for name in item)
    values = (f"{name}: {printable(headers.get(name)) or '(not sent)'}" for name in list(names)[:5])
    return ", ".join(values)


log = logging.getLogger("platform.manifests")

Outcome = Literal["stored", "repeated", "skipped", "refused"]

# Per plugin, this many with a valid proof and as many without, so that strangers can't push out the others.
MAX_RECORDS = 100
_REASON_LIMIT = 300
_ID_HEADERS = ("webhook-id", "X-GitHub-Delivery")
_ID_LIMIT = 256


@dataclass(frozen=True, slots=True)
class Sent:
    """A delivery as its headers describe it. `proven`: its sender knows the secret."""

    event_id: str | None
    event: str | None
    proven: bool


def sent_of(headers: Mapping[str, str], *, proven: bool, proven_id: str | None = None) -> Sent:
    """A delivery by its headers, sanitized for display; `proven_id` is its id as the proof gave it."""
    ids = (proven_id, *(printable(headers.get(name), _ID_LIMIT) for name in _ID_HEADERS))
    event_id = next((value for value in ids if value), None)
    events = (printable(headers.get(name)) for name in EVENT_HEADERS)
    return Sent(event_id, next((value for value in events if value), None), proven)


@dataclass(frozen=True, slots=True)
class Fate:
    """What happened to a delivery: the outcome, the response status, the reason, and its point."""

    outcome: Outcome
    status: int = 200
    reason: str | None = None
    point_id: str | None = None


def keep(session: Session, plugin: str, sent: Sent, fate: Fate) -> None:
    """Store a delivery, and delete the oldest beyond the limit."""
    row = DeliveryRow(
        plugin=plugin,
        proven=sent.proven,
        event_id=sent.event_id,
        event=sent.event,
        outcome=fate.outcome,
        status=fate.status,
        reason=fate.reason[:_REASON_LIMIT] if fate.reason else None,
        point_id=fate.point_id,
    )
    session.add(row)
    session.flush()
    kind = (DeliveryRow.plugin == plugin) & (DeliveryRow.proven == sent.proven)
    newest_to_go = (
        select(DeliveryRow.id).where(kind).order_by(DeliveryRow.id.desc()).offset(MAX_RECORDS).limit(1)
    )
    session.execute(delete(DeliveryRow).where(kind, DeliveryRow.id <= newest_to_go.scalar_subquery()))


def last(session: Session, plugin: str, limit: int, outcome: Outcome | None = None) -> Sequence[DeliveryRow]:
    """The newest deliveries first; all, or those with one outcome."""
    query = select(DeliveryRow).where(DeliveryRow.plugin == plugin).order_by(DeliveryRow.id.desc())
    if outcome is not None:
        query = query.where(DeliveryRow.outcome == outcome)
    return session.scalars(query.limit(limit)).all()


def forget_of(session: Session, plugin: str) -> None:
    """Forget every delivery of a plugin."""
    session.execute(delete(DeliveryRow).where(DeliveryRow.plugin == plugin))


def forget_before(session: Session, moment: datetime) -> None:
    """Forget what was received before `moment`."""
    session.execute(delete(DeliveryRow).where(DeliveryRow.received_at < moment))


class DeliveryLog:
    """Records deliveries that stored nothing; one that stores a point is recorded in its own transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._overflowed: dict[str, int] = {}  # the minute of the last recorded one, by plugin

    async def add(self, plugin: str, sent: Sent, fate: Fate) -> None:
        """Record a delivery. A failure is logged and doesn't affect the response."""
        try:
            await self._database.write(lambda unit: keep(unit.session, plugin, sent, fate))
        except (SQLAlchemyError, OSError) as error:
            log.warning("could not record a delivery to %s: %s", plugin, type(error).__name__)

    async def add_refused(self, plugin: str, sent: Sent, error: PlatformError) -> None:
        """Record a refusal; for strangers over the limit, only one a minute, as each costs a write."""
        if isinstance(error, TooManyRequests) and not sent.proven and self._is_noted_this_minute(plugin):
            return
        await self.add(plugin, sent, Fate("refused", error.status, _reason(error.detail)))

    def _is_noted_this_minute(self, plugin: str) -> bool:
        minute = int(time.monotonic() // 60)
        is_noted = self._overflowed.get(plugin) == minute
        self._overflowed[plugin] = minute
        return is_noted


def _reason(detail: Any) -> str:
    """The text of an error; the array of a 422 as its messages, which name paths and no values."""
    return "; ".join(item["msg"] for item in detail) if isinstance(detail, list) else str(detail)
