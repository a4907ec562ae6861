"""Whether somebody may do something in an organization or in a team.

The route says it, as ``permission(KEY, within="org_id")``, with ``or_admin=True`` where the specification
admits instance administrators as well and ``or_self="user_id"`` where people may act on themselves. Where the
id stands in the body, a service calls `insist`.

A key of an organization is held by its built-in roles (`Permission.org_roles`) and by custom roles, there and
in all organizations below. A key of a team is held by its admins, and by whoever manages the members of
the organization that the team belongs to. Platform Admins hold both kinds
everywhere; the flag is read from the database, never from a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from builtin_plugins.tenancy.errors import TeamNotFound
from builtin_plugins.tenancy.models import Team
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, ORG_VIEW
from builtin_plugins.tenancy.services.standing import Standing, standing_of
from builtin_plugins.tenancy.services.tree import home_of, lineage_of, look_up
from kernel.sdk import Access, Decision, Forbidden, Permission, Platform, Principal

TEAM_ADMIN = "team_admin"


async def decide(
    platform: Platform, principal: Principal, key: str | Permission, within: int, *, or_admin: bool = False
) -> bool:
    """Whether the caller holds a key in an organization, or in a team, whichever the key's scope is.

    `or_admin` admits instance administrators as well. Unknown organizations are held by none but those who
    hold all. Asks no database while warm, but for Platform Admins, for who manages a team from above, and to
    refuse those who may not even see the organization.
    """
    if not principal.is_user or principal.id is None:
        return False
    if or_admin and principal.is_admin:
        return True
    name = key.key if isinstance(key, Permission) else key
    standing = await standing_of(platform, principal.id)
    if platform.permissions[name].scope == "team":
        held = standing.teams.get(within) == TEAM_ADMIN or await _manages_home(platform, standing, within)
    else:
        lineage = await lineage_of(platform, within)
        held = standing.holds(name, within, lineage[1:])
        if lineage and not held and not standing.holds(ORG_VIEW.key, within, lineage[1:]):
            await look_up(platform, within)
    return held or await is_platform_admin(platform, principal)


async def insist(
    platform: Platform, principal: Principal, key: str | Permission, within: int, *, or_admin: bool = False
) -> None:
    """Raise Forbidden unless `decide` says yes; TeamNotFound for an unknown team, as teams are no secret."""
    if await decide(platform, principal, key, within, or_admin=or_admin):
        return
    name = key.key if isinstance(key, Permission) else key
    if platform.permissions[name].scope == "team":
        await _find_team(platform, within)
    raise Forbidden(f"This needs: permission {name}")


async def is_platform_admin(platform: Platform, principal: Principal) -> bool:
    """The flag as the database has it now; those without it, as remembered for a moment, aren't looked up."""
    if not principal.platform_admin or principal.id is None:
        return False
    return await platform.account_states.is_platform_admin(principal.id)


async def answer(
    platform: Platform, principal: Principal, access: Access, params: Mapping[str, Any]
) -> Decision | None:
    """The answer to `decide_access` for a permission of an organization or a team."""
    name, within = access.permission or "", params[access.within or ""]
    if not principal.is_user:
        return None
    if await decide(platform, principal, name, within, or_admin=access.or_admin):
        return Decision.ALLOW
    if platform.permissions[name].scope == "team":
        await _find_team(platform, within)
    return None


async def _manages_home(platform: Platform, standing: Standing, team_id: int) -> bool:
    """Whether the account manages the members of the team's organization, there or from above."""
    if not standing.places_of(MEMBERS_MANAGE.key):
        return False
    home = await home_of(platform, team_id)
    return bool(home) and standing.holds(MEMBERS_MANAGE.key, home[0], home[1:])


async def answer_platform_admin(platform: Platform, principal: Principal) -> Decision | None:
    """The same for a permission of the instance that Platform Admins hold beside those it is granted to."""
    return Decision.ALLOW if await is_platform_admin(platform, principal) else None


async def _find_team(platform: Platform, team_id: int) -> None:
    async with platform.database.read() as session:
        if await session.scalar(select(Team.id).where(Team.id == team_id)) is None:
            raise TeamNotFound()
