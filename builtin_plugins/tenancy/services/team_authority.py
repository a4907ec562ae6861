"""Who manages a team, as one state of the database has it: for checks inside a unit, past every cache.

Routes ask `access` first, which remembers; whoever lost the right a moment ago is refused here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import TeamNotFound
from builtin_plugins.tenancy.models import Team
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, TEAM_MANAGE
from builtin_plugins.tenancy.services.access import TEAM_ADMIN
from builtin_plugins.tenancy.services.memberships import LOCK
from builtin_plugins.tenancy.services.standing import read_standing
from builtin_plugins.tenancy.services.tree import ancestors
from kernel.sdk import Account, Forbidden, Permission, Platform, Principal, Unit


async def find_team(session: AsyncSession, team_id: int) -> Team:
    """One team. Raises TeamNotFound."""
    found = await session.get(Team, team_id)
    if found is None:
        raise TeamNotFound()
    return found


async def manages_team(
    session: AsyncSession, permissions: Mapping[str, Permission], account_id: int | None, team: Team
) -> bool:
    """Whether an account is the team's administrator, or stands above it."""
    account = await session.get(Account, account_id or 0)
    if account is None or not account.is_active:
        return False
    if account.role == "admin" or account.platform_admin:
        return True
    standing = await read_standing(session, account.id, permissions)
    if standing.teams.get(team.id) == TEAM_ADMIN:
        return True
    home = team.organization_id
    return home is not None and standing.holds(MEMBERS_MANAGE.key, home, await ancestors(session, home))


@asynccontextmanager
async def team_change(
    platform: Platform, principal: Principal, team_id: int, *, is_own: bool = False
) -> AsyncIterator[tuple[Unit, Team]]:
    """A unit in which nobody else changes teams, for whoever manages this one; `is_own` asks for no right.

    Raises TeamNotFound, Forbidden.
    """
    async with platform.database.unit() as unit:
        await unit.lock(LOCK)
        team = await find_team(unit.session, team_id)
        if not is_own and not await manages_team(unit.session, platform.permissions, principal.id, team):
            raise Forbidden(f"This needs: permission {TEAM_MANAGE.key}")
        yield unit, team
