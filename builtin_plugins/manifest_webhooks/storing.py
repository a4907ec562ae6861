"""Points of manifest plugins: embedded, stored once for each event, durable with it, gone with the plugin."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.orm import Session

from builtin_plugins.inference import api as inference
from builtin_plugins.vectors.api import EngineMismatch, Point, VectorStore
from kernel.sdk import Job, NoPayload, Platform, Unit, off_the_loop, utc_now

from .deliveries import Fate, Sent, forget_before, forget_of, keep
from .errors import CollectionEngineChanged, EmbeddingUnavailable, ManifestAway, UnknownWebhook
from .folder import LiveManifest
from .manifest import EmbedModel
from .models import LONGEST_NAME, EventRow, PluginRow
from .payload import Record
from .settings import WebhookSettings

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


def find_points(session: Session, plugin: str, records: Sequence[Record]) -> list[Stored | None]:
    """For each record its point, if it was stored before; None for a new one, and for one without an id."""
    ids = [record.event_id for record in records if record.event_id is not None]
    rows = session.scalars(select(EventRow).where(EventRow.plugin == plugin, EventRow.event_id.in_(ids)))
    points = {row.event_id: Stored(row.point_id, row.collection, row.dimension) for row in rows}
    return [points.get(record.event_id or "") for record in records]


class PointKeeper:
    """Writes and removes the points of manifest plugins."""

    def __init__(self, vectors: VectorStore) -> None:
        self._vectors = vectors

    def store(
        self,
        unit: Unit,
        live: LiveManifest,
        sent: Sent,
        records: Sequence[Record],
        vectors: npt.NDArray[np.float32],
        engine: str,
    ) -> list[Stored]:
        """Store a point for each record, unless it has one already; returns their points.

        Raises EngineChanged for vectors of another engine than the collection's, UnknownWebhook when the
        plugin was removed meanwhile, ManifestAway when its file went away.
        """
        plugin, collection = live.name, live.manifest.store.collection
        row = _hold(unit, plugin)
        existing = find_points(unit.session, plugin, records)
        if all(existing):
            return [stored for stored in existing if stored is not None]
        if row is None:
            raise UnknownWebhook()
        if not off_the_loop(live.path.is_file):
            raise ManifestAway()
        if collection not in row.collections:
            row.collections = [*row.collections, collection]
        dimension = int(vectors.shape[1])
        stored_points = [
            one or Stored(str(uuid.uuid4()), collection, dimension, is_new=True) for one in existing
        ]
        new = [index for index, stored in enumerate(stored_points) if stored.is_new]
        name = collection_name(collection, plugin)
        points = [_point(plugin, stored_points[index], records[index], vectors[index]) for index in new]
        try:
            self._vectors.ensure(unit, name, dimension, engine)
        except EngineMismatch:
            raise CollectionEngineChanged() from None
        self._vectors.stage(unit, name, points)
        self._vectors.publish(unit, name, *(point.group for point in points))
        for index in new:
            _remember(unit, plugin, stored_points[index], records[index].event_id)
        reason = f"{len(new)} of {len(records)} records are new" if len(records) > 1 else None
        keep(unit.session, plugin, sent, Fate("stored", reason=reason, point_id=points[0].id))
        return stored_points

    async def metadata_of(self, plugin: str, stored: Stored) -> tuple[int, dict[str, Any]]:
        """(characters of the text, metadata) of a stored point; zero and empty when it is gone."""
        name = collection_name(stored.collection, plugin)
        points, _ = await self._vectors.points(name, stored.point_id, 1, 0)
        return (len(points[0].text), dict(points[0].payload["metadata"])) if points else (0, {})

    def forget(self, unit: Unit, plugin: str) -> bool:
        """Remove all points and events of a plugin; False when it never stored any."""
        if len(plugin) > LONGEST_NAME:
            return False
        existing = unit.session.get(PluginRow, plugin)
        row = _hold(unit, plugin)
        for collection in row.collections if row else ():
            self._vectors.drop(unit, collection_name(collection, plugin))
        unit.session.execute(delete(EventRow).where(EventRow.plugin == plugin))
        forget_of(unit.session, plugin)
        unit.session.execute(delete(PluginRow).where(PluginRow.name == plugin))
        return existing is not None


async def _forget_old(platform: Platform, _: NoPayload) -> None:
    """Forget events and deliveries older than the retention. Their points stay."""
    await platform.database.write(_forget)


def _forget(unit: Unit) -> None:
    moment = unit.now() - EVENT_RETENTION
    unit.session.execute(delete(EventRow).where(EventRow.created_at < moment))
    forget_before(unit.session, moment)


FORGET_OLD = Job("manifest_webhooks.forget_old", NoPayload, _forget_old, lane="quick", schedule="@hourly")


def _hold(unit: Unit, plugin: str) -> PluginRow | None:
    """The plugin's row, created if missing and locked until the commit; None if it was just removed."""
    insert = sqlite_insert if unit.is_sqlite else postgresql_insert
    new = insert(PluginRow).values(name=plugin, collections=[]).on_conflict_do_nothing()
    unit.session.execute(new)
    query = select(PluginRow).where(PluginRow.name == plugin).with_for_update()
    row: PluginRow | None = unit.session.scalar(query.execution_options(populate_existing=True))
    return row


def _point(plugin: str, stored: Stored, record: Record, vector: npt.NDArray[np.float32]) -> Point:
    payload = {"plugin": plugin, "timestamp": utc_now().isoformat(), "metadata": record.metadata}
    return Point(stored.point_id, stored.point_id, 0, record.text, vector, payload)


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


async def embed(
    platform: Platform, model: EmbedModel, texts: list[str], purpose: inference.Purpose
) -> tuple[npt.NDArray[np.float32], str]:
    """A vector for each text (float32 [n, d], unit length), and their engine.

    Raises EmbeddingUnavailable (503).
    """
    platform_model = platform.settings_of(WebhookSettings).platform_model(model)
    embedded = await inference.embed(platform, platform_model, texts, purpose, EmbeddingUnavailable)
    return embedded.vectors, embedded.engine
