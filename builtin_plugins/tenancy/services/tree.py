"""The tree of organizations: what is above one and what below it, and which teams belong to it.

A place in the tree never changes, and ids are never used again: what was read once is remembered for good.
What is unknown is not.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from sqlalchemy import literal, select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import OrganizationNotFound
from builtin_plugins.tenancy.models import Organization, OrganizationAncestor, Team
from kernel.sdk import LiveCache, Platform, ResourceKey, Unit


async def find_organization(session: AsyncSession, organization_id: int) -> Organization:
    """One organization. Raises OrganizationNotFound."""
    found = await session.get(Organization, organization_id)
    if found is None:
        raise OrganizationNotFound()
    return found


async def ancestors(session: AsyncSession, organization_id: int) -> tuple[int, ...]:
    """The organizations above one, nearest first; without itself."""
    return (await _lineage(session, organization_id))[1:]


async def descendants(session: AsyncSession, organization_id: int) -> tuple[int, ...]:
    """The organizations below one, nearest first; without itself."""
    query = (
        select(OrganizationAncestor.organization_id)
        .where(OrganizationAncestor.ancestor_id == organization_id, OrganizationAncestor.distance > 0)
        .order_by(OrganizationAncestor.distance, OrganizationAncestor.organization_id)
    )
    return tuple(await session.scalars(query))


async def place(unit: Unit, organization: Organization) -> None:
    """Enter a new organization, flushed already, into the tree below its parent."""
    itself = OrganizationAncestor(organization_id=organization.id, ancestor_id=organization.id, distance=0)
    unit.session.add(itself)
    if organization.parent_id is not None:
        above = select(
            literal(organization.id), OrganizationAncestor.ancestor_id, OrganizationAncestor.distance + 1
        ).where(OrganizationAncestor.organization_id == organization.parent_id)
        columns = ["organization_id", "ancestor_id", "distance"]
        table = OrganizationAncestor.__table__
        await unit.session.execute(table.insert().from_select(columns, above))


async def _lineage(session: AsyncSession, organization_id: int) -> tuple[int, ...]:
    query = (
        select(OrganizationAncestor.ancestor_id)
        .where(OrganizationAncestor.organization_id == organization_id)
        .order_by(OrganizationAncestor.distance)
    )
    return tuple(await session.scalars(query))


class Lineages:
    """Lineages of organizations, remembered."""

    def __init__(self, platform: Platform) -> None:
        self._database = platform.database
        self._lineages: LiveCache[Sequence[int]] = LiveCache(self._read, math.inf)

    async def of(self, organization_id: int) -> Sequence[int]:
        """An organization, then those above it; empty for an unknown one."""
        try:
            return await self._lineages.get(organization_id)
        except OrganizationNotFound:
            return ()

    async def _read(self, organization_id: int) -> Sequence[int]:
        async with self._database.read() as session:
            found = await _lineage(session, organization_id)
        if not found:
            raise OrganizationNotFound()
        return found


LINEAGES: ResourceKey[Lineages] = ResourceKey("tenancy.lineages")


@asynccontextmanager
async def open_lineages(platform: Platform) -> AsyncIterator[Lineages]:
    """The resource `LINEAGES`."""
    yield Lineages(platform)


async def lineage_of(platform: Platform, organization_id: int) -> Sequence[int]:
    """An organization, then those above it, remembered; empty for an unknown one."""
    return await platform.resource(LINEAGES).of(organization_id)


async def home_of(platform: Platform, team_id: int) -> Sequence[int]:
    """The organization of a team, then those above it; empty where it has none, or is not there.

    Read in one statement: nobody can tell the three by the time it takes.
    """
    above = OrganizationAncestor.organization_id == Team.organization_id
    query = (
        select(OrganizationAncestor.ancestor_id)
        .join(Team, above)
        .where(Team.id == team_id)
        .order_by(OrganizationAncestor.distance)
    )
    async with platform.database.read() as session:
        return (await session.scalars(query)).all()


async def look_up(platform: Platform, organization_id: int) -> None:
    """Read a place that is remembered once more.

    An organization that is not there is never remembered: a stranger must not tell the two by their time.
    """
    async with platform.database.read() as session:
        await _lineage(session, organization_id)
