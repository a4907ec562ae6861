"""A dry run: what a run would change, without changing anything."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.sources.filters import SourceFilters
from builtin_plugins.sources.models import ItemRecord, SourceRecord
from builtin_plugins.sources.protocol import (
    DocumentSource,
    GoneItem,
    ListingEnd,
    ListingIncomplete,
    SourceItem,
)
from builtin_plugins.sources.services.texts import brief, digest_of
from kernel.sdk import Platform, utc_now

_MOST_NAMED: Final = 200


class Rehearsal:
    """The changes that a listing would lead to, each with the first paths."""

    def __init__(self, source: SourceRecord) -> None:
        self._source = source
        self._filters = SourceFilters.model_validate(source.filters)
        self._rows: dict[str, ItemRecord] = {}
        self._listed: dict[str, SourceItem] = {}
        self._named_gone: set[str] = set()

    async def run(self, platform: Platform, opened: DocumentSource) -> dict[str, Any]:
        """Counts and paths by what would happen. Raises SourceFault."""
        self._rows = await platform.database.read(self._load)
        end = None
        async with aclosing(opened.documents(self._source.cursor)) as listing:
            async for entry in listing:
                if isinstance(entry, ListingEnd):
                    end = entry
                    break
                if isinstance(entry, GoneItem):
                    self._named_gone.add(digest_of(entry.identity))
                else:
                    self._listed[digest_of(entry.identity)] = entry
        if end is None:
            raise ListingIncomplete("The listing was cut off before its end")
        return self._plan(end)

    def _load(self, session: Session) -> dict[str, ItemRecord]:
        rows = session.scalars(select(ItemRecord).where(ItemRecord.source_id == self._source.id))
        return {row.digest: row for row in rows}

    def _plan(self, end: ListingEnd) -> dict[str, Any]:
        now = utc_now()
        paths: dict[str, list[str]] = {name: [] for name in ("added", "changed", "moved", "gone", "skipped")}
        missing = self._named_gone if end.only_changes else self._rows.keys() - self._listed.keys()
        gone = {key: self._rows[key] for key in missing if key in self._rows}
        gone = {key: row for key, row in gone.items() if row.document_id is not None}
        moved_from = {row.fingerprint: key for key, row in gone.items() if row.fingerprint is not None}
        for digest, item in self._listed.items():
            row = self._rows.get(digest)
            if self._filters.refusal(item, now) or item.unavailable:
                paths["skipped"].append(item.path)
                if row is not None and row.document_id is not None:
                    gone[digest] = row
            elif row is not None and row.etag == brief(item.etag):
                if row.state == "skipped":
                    paths["skipped"].append(item.path)
                elif row.document_id is not None and row.path != item.path:
                    paths["moved"].append(item.path)
            elif row is not None and row.document_id is not None:
                paths["changed"].append(item.path)
            elif (origin := moved_from.pop(brief(item.fingerprint) or "", None)) is not None:
                gone.pop(origin, None)
                paths["moved"].append(item.path)
            else:
                paths["added"].append(item.path)
        paths["gone"] = [row.path for row in gone.values()]
        return {
            "found": len(self._listed),
            **{name: len(some) for name, some in paths.items()},
            "paths": {name: self._named_paths(some) for name, some in paths.items()},
        }

    def _named_paths(self, paths: list[str]) -> list[str]:
        """None of a source with permissions of its own: not everybody who sees the run may read them."""
        return [] if self._source.is_guarded else sorted(paths)[:_MOST_NAMED]
