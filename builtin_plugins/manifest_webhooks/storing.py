"""Points of manifest plugins: stored once for each event, durable with it, and gone with their plugin."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.orm import Session

from kernel.sdk import EngineMismatch, Job, Platform, Point, Unit, VectorStore, off_the_loop, utc_now

from .deliveries import Fate, Sent, forget_before, forget_of, keep
from .errors import EngineChanged, ManifestAway, UnknownWebhook
from .folder import LiveManifest
from .models import LONGEST_NAME, EventRow, PluginRow
from .reading import Delivery

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Longer than real senders repeat deliveries: GitHub offers it for 3 days.
EVENT_RETENTION = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a delivery's point is; `is_new`: this delivery made it, and no earlier one."""

    point_id: str
    collection: str
    dimension: int
    is_new: bool = False


def collection_name(collection: str, plugin: str) -> str:
    """The name of a manifest's collection in the vector store, one for each plugin.

    A search then finds only its plugin's points without a growing filter, and two manifests with the same
    collection may use different embedding models.
    """
    return f"manifest:{collection}:{plugin}"


def find_event(session: Session, plugin: str, event_id: str | None) -> Stored | None:
    """The point of an event that was stored before; None for a new one, and for one without an id."""
    if event_id is None:
        return None
    row = session.get(EventRow, (plugin, event_id))
    return None if row is None else Stored(row.point_id, row.collection, row.dimension)


class PointKeeper:
    """Writes and removes the points of manifest plugins."""

    def __init__(self, vectors: VectorStore) -> None:
        self._vectors = vectors

    def store(
        self,
        unit: Unit,
        live: LiveManifest,
        sent: Sent,
        delivery: Delivery,
        vector: npt.NDArray[np.float32],
        engine: str,
    ) -> Stored:
        """Store the delivery's point, or return the one that the same event already has.

        Raises EngineChanged for vectors of another engine than the collection's, UnknownWebhook when the
        plugin was removed meanwhile, ManifestAway when its file went away.
        """
        plugin, collection = live.name, live.manifest.store.collection
        row = _hold(unit, plugin)
        known = find_event(unit.session, plugin, delivery.event_id)
        if known is not None:
            return known
        if row is None:
            raise UnknownWebhook()
        if not off_the_loop(live.path.is_file):
            raise ManifestAway()
        if collection not in row.collections:
            row.collections = [*row.collections, collection]
        stored = Stored(str(uuid.uuid4()), collection, int(vector.shape[0]), is_new=True)
        self._write(unit, plugin, stored, delivery, vector, engine)
        _remember(unit, plugin, stored, delivery.event_id)
        keep(unit.session, plugin, sent, Fate("stored", point_id=stored.point_id))
        return stored

    def _write(
        self,
        unit: Unit,
        plugin: str,
        stored: Stored,
        delivery: Delivery,
        vector: npt.NDArray[np.float32],
        engine: str,
    ) -> None:
        name = collection_name(stored.collection, plugin)
        payload = {"plugin": plugin, "timestamp": utc_now().isoformat(), "metadata": delivery.metadata}
        point = Point(stored.point_id, stored.point_id, 0, delivery.text, vector, payload)
        try:
            self._vectors.ensure(unit, name, stored.dimension, engine)
        except EngineMismatch:
            raise EngineChanged() from None
        self._vectors.stage(unit, name, [point])
        self._vectors.publish(unit, name, point.group)

    async def metadata_of(self, plugin: str, stored: Stored) -> tuple[int, dict[str, Any]]:
        """(characters of the text, metadata) of a stored point; zero and empty when it is gone."""
        name = collection_name(stored.collection, plugin)
        points, _ = await self._vectors.points(name, stored.point_id, 1, 0)
        return (len(points[0].text), dict(points[0].payload["metadata"])) if points else (0, {})

    def forget(self, unit: Unit, plugin: str) -> bool:
        """Remove all points and events of a plugin; False when it never stored any."""
        if len(plugin) > LONGEST_NAME:
            return False
        known = unit.session.get(PluginRow, plugin)
        row = _hold(unit, plugin)
        for collection in row.collections if row else ():
            self._vectors.drop(unit, collection_name(collection, plugin))
        unit.session.execute(delete(EventRow).where(EventRow.plugin == plugin))
        forget_of(unit.session, plugin)
        unit.session.execute(delete(PluginRow).where(PluginRow.name == plugin))
        return known is not None


class Nothing(BaseModel):
    """An empty payload for scheduled runs."""


async def _forget_old(platform: Platform, _: Nothing) -> None:
    """Forget events and deliveries older than the retention. Their points stay."""
    await platform.database.write(_forget)


def _forget(unit: Unit) -> None:
    moment = unit.now() - EVENT_RETENTION
    unit.session.execute(delete(EventRow).where(EventRow.created_at < moment))
    forget_before(unit.session, moment)


FORGET_OLD = Job("manifest_webhooks.forget_old", Nothing, _forget_old, lane="quick", schedule="@hourly")


def _hold(unit: Unit, plugin: str) -> PluginRow | None:
    """The plugin's row, created if missing and locked until the commit; None if it was just removed."""
    insert = sqlite_insert if unit.is_sqlite else postgresql_insert
    new = insert(PluginRow).values(name=plugin, collections=[]).on_conflict_do_nothing()
    unit.session.execute(new)
    query = select(PluginRow).where(PluginRow.name == plugin).with_for_update()
    row: PluginRow | None = unit.session.scalar(query.execution_options(populate_existing=True))
    return row


def _remember(unit: Unit, plugin: str, stored: Stored, event_id: str | None) -> None:
    if event_id is not None:
        unit.session.add(
            EventRow(
                plugin=plugin,
                event_id=event_id,
                collection=stored.collection,
                point_id=stored.point_id,
                dimension=stored.dimension,
            )
        )
