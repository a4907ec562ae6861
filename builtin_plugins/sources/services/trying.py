"""Trying a source: can it be listed, and what of its first items would be taken?"""

from __future__ import annotations

import uuid
from contextlib import aclosing
from typing import Any, Final

from sqlalchemy.orm import Session

from builtin_plugins.sources.access import SourceSight, source_sight_of
from builtin_plugins.sources.errors import SourceNotFound
from builtin_plugins.sources.filters import SourceFilters
from builtin_plugins.sources.kinds import SOURCE_KINDS
from builtin_plugins.sources.models import SourceRecord
from builtin_plugins.sources.protocol import ListingEnd, SourceFault, SourceItem, SourceKind, SourceSetup
from builtin_plugins.sources.schemas import SampleItem, SourceTest, SourceTested
from builtin_plugins.sources.services.credentials import read_credential
from builtin_plugins.sources.services.sources import check_own_secret, checked_settings
from kernel.sdk import Caller, utc_now

_SAMPLE: Final = 10


async def try_settings(caller: Caller, test: SourceTest, base: str) -> SourceTested:
    """List the first items with settings that are not saved.

    Raises SourcedBaseNotFound, NotSourceOwner, SourceNotFound, Unprocessable.
    """
    platform, sight = caller.platform, await source_sight_of(caller)
    await platform.database.read(sight.require_owner, base)
    kind = platform.resource(SOURCE_KINDS).named(test.kind)
    settings, secret = checked_settings(kind, test.settings), test.secret
    if test.source_id is not None:
        row = await platform.database.read(_changed_source, caller, sight, test, base, settings)
        secret = secret or await read_credential(platform, row)
    setup = SourceSetup(platform, f"test-{uuid.uuid4()}", kind.settings.model_validate(settings), secret)
    return await _try(kind, setup, test.filters)


def _changed_source(
    session: Session,
    caller: Caller,
    sight: SourceSight,
    test: SourceTest,
    base: str,
    settings: dict[str, Any],
) -> SourceRecord:
    """The source that is to have the settings; the credential of another account goes to no other place."""
    row = sight.source(session, str(test.source_id))
    if (row.knowledge_base_id, row.kind) != (base, test.kind):
        raise SourceNotFound()
    if test.secret is None and settings != row.settings:
        check_own_secret(caller, session, row)
    return row


async def try_source(caller: Caller, source_id: str) -> SourceTested:
    """List the first items of a source. Raises SourceNotFound, NotSourceOwner, KindUnavailable."""
    platform, sight = caller.platform, await source_sight_of(caller)
    row = await platform.database.read(sight.source, source_id)
    kind = platform.resource(SOURCE_KINDS).of(row.kind)
    settings = kind.settings.model_validate(checked_settings(kind, row.settings))
    secret = await read_credential(platform, row)
    setup = SourceSetup(platform, row.id, settings, secret)
    return await _try(kind, setup, SourceFilters.model_validate(row.filters))


async def _try(kind: SourceKind, setup: SourceSetup, filters: SourceFilters) -> SourceTested:
    items, now, is_guarded = list[SampleItem](), utc_now(), kind.is_guarded(setup.settings)
    count = 0
    try:
        async with kind.open(setup) as opened, aclosing(opened.documents(None)) as listing:
            async for entry in listing:
                if isinstance(entry, ListingEnd) or count == _SAMPLE:
                    break
                count += isinstance(entry, SourceItem)
                if isinstance(entry, SourceItem) and not is_guarded:  # whose names not everybody may see
                    skipped = filters.refusal(entry, now) or entry.unavailable
                    items.append(SampleItem(path=entry.path, size_bytes=entry.size, skipped=skipped))
    except SourceFault as fault:
        return SourceTested(ok=False, problem=str(fault), items=items, found=count)
    return SourceTested(ok=True, problem=None, items=items, found=count)
