"""Opening a source, for a run or for its permissions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import ValidationError

from builtin_plugins.sources.kinds import SOURCE_KINDS
from builtin_plugins.sources.models import ItemRecord, SourceRecord
from builtin_plugins.sources.protocol import DocumentSource, SourceItem, SourceMisplaced, SourceSetup
from builtin_plugins.sources.services.credentials import read_credential
from kernel.sdk import Platform


@asynccontextmanager
async def open_source(platform: Platform, source: SourceRecord) -> AsyncIterator[DocumentSource]:
    """The source, open. Raises SourceFault, KindUnavailable, SecretUnreadable."""
    secret = await read_credential(platform, source)
    kind = platform.resource(SOURCE_KINDS).of(source.kind)
    try:
        settings = kind.settings.model_validate(source.settings)
    except ValidationError:
        raise SourceMisplaced("Its settings don't fit this version of its plugin; save them again") from None
    if kind.is_guarded(settings) != source.is_guarded:
        raise SourceMisplaced("Its plugin now has or lacks permissions of its own; save the settings again")
    async with kind.open(SourceSetup(platform, source.id, settings, secret)) as opened:
        yield opened


def item_of(row: ItemRecord) -> SourceItem:
    """An item as it was listed last."""
    return SourceItem(
        row.identity,
        row.listed_etag,
        row.path,
        row.size_bytes,
        row.modified_at,
        row.media_type,
        details=row.details,
    )
