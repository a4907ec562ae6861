"""The cache between requests: accounts' roles, and organizations' positions in the tree.

A standing is cached until a notice reports a change: code that changes a membership, a role, a group or an
assignment calls `changed` (or `changed_for_all`) in the same unit. A position in the tree is cached for good;
unknown ids are never cached.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from builtin_plugins.tenancy.access.standing import Standing, read_standing
from builtin_plugins.tenancy.access.tree import require_lineage
from builtin_plugins.tenancy.errors import OrganizationNotFound
from kernel.sdk import LiveCache, Platform, ResourceKey, Unit

TOPIC = "tenancy"
EVERYBODY = "*"


class Remembered:
    """Cached standings of accounts, invalidated by notices, and lineages of organizations."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        seconds = platform.settings.account_cache_seconds
        self._standings: LiveCache[int, Standing] = LiveCache(self._read_standing, seconds)
        self._lineages: LiveCache[int, Sequence[int]] = LiveCache(self._read_lineage, math.inf)
        platform.notices.listen(TOPIC, self._heard)

    async def standing_of(self, user_id: int) -> Standing:
        """The standing of an account; an unknown account has an empty one."""
        return await self._standings.get(user_id)

    async def lineage_of(self, organization_id: int) -> Sequence[int]:
        """An organization, then those above it; empty for an unknown one."""
        try:
            return await self._lineages.get(organization_id)
        except OrganizationNotFound:
            return ()

    def _heard(self, key: str) -> None:
        if key == EVERYBODY:
            self._standings.clear()
        else:
            self._standings.invalidate(int(key))

    async def _read_standing(self, user_id: int) -> Standing:
        return await self._platform.database.read(read_standing, user_id, self._platform.permissions)

    async def _read_lineage(self, organization_id: int) -> Sequence[int]:
        return await self._platform.database.read(require_lineage, organization_id)


REMEMBERED: ResourceKey[Remembered] = ResourceKey("tenancy.remembered")


@asynccontextmanager
async def open_remembered(platform: Platform) -> AsyncIterator[Remembered]:
    """The resource `REMEMBERED`."""
    yield Remembered(platform)


async def standing_of(platform: Platform, user_id: int) -> Standing:
    """The cached standing of an account; an unknown account has an empty one."""
    return await platform.resource(REMEMBERED).standing_of(user_id)


async def lineage_of(platform: Platform, organization_id: int) -> Sequence[int]:
    """An organization, then those above it, from the cache; empty for an unknown one."""
    return await platform.resource(REMEMBERED).lineage_of(organization_id)


def changed(unit: Unit, user_ids: Iterable[int]) -> None:
    """Make every process read the standing of these accounts again after this unit's commit."""
    for user_id in sorted(set(user_ids)):
        unit.notify(TOPIC, str(user_id))


def changed_for_all(unit: Unit) -> None:
    """The same for all accounts, after a change of a role or permission group."""
    unit.notify(TOPIC, EVERYBODY)
