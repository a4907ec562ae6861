"""Whether a caller may do something in an organization or in a team.

The route declares it as ``permission(KEY, within="org_id")``, with ``or_admin=True`` if the specification
also allows instance administrators, and ``or_self="user_id"`` if people may act on themselves. If the id is
in the body, a service calls `require`.

A key of an organization is held through built-in roles (`Permission.org_roles`) and custom roles, there and
in all organizations below. A key of a team is held by its admins, and by those who manage the members of the
team's organization. Platform Admins hold both kinds everywhere; that flag is read from the database, never
from a token.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.authority import is_platform_admin_now, remembered_authority
from builtin_plugins.tenancy.access.tree import find_team, read_lineage
from builtin_plugins.tenancy.permissions import ORG_VIEW
from kernel.sdk import Caller, Forbidden, Permission
from kernel.sdk.accounts import Decision
from kernel.sdk.http import Access


async def decide(caller: Caller, key: str | Permission, within: int, *, or_admin: bool = False) -> bool:
    """Whether the caller holds a key in an organization, or in a team, whichever the key's scope is.

    `or_admin` allows instance administrators, too. While the cache is warm, the database is only read as
    `remembered_authority` says, and to refuse those who may not see the organization: missing ones are never
    cached, and strangers must not be able to tell the two apart by the time taken.
    """
    if not caller.principal.is_user:
        return False
    if or_admin and caller.principal.is_admin:
        return True
    name = key.key if isinstance(key, Permission) else key
    if _is_of_teams(caller, name):
        return (await remembered_authority(caller, team_id=within)).holds(name)
    authority = await remembered_authority(caller, organization_id=within)
    is_held = authority.holds(name)
    if authority.lineage and not is_held and not authority.holds(ORG_VIEW.key):
        await caller.platform.database.read(read_lineage, within)
    return is_held


async def require(caller: Caller, key: str | Permission, within: int, *, or_admin: bool = False) -> None:
    """Raise Forbidden unless `decide` allows it; TeamNotFound for an unknown team, as teams aren't secret."""
    if await decide(caller, key, within, or_admin=or_admin):
        return
    name = key.key if isinstance(key, Permission) else key
    await _refuse_unknown_team(caller, name, within)
    raise Forbidden(f"This needs: permission {name}")


async def answer(caller: Caller, access: Access, params: Mapping[str, int | str]) -> Decision | None:
    """The answer to `decide_access` for a permission of an organization or a team."""
    name, within = access.permission or "", int(params[access.within or ""])
    if not caller.principal.is_user:
        return None
    if await decide(caller, name, within, or_admin=access.or_admin):
        return Decision.ALLOW
    await _refuse_unknown_team(caller, name, within)
    return None


async def answer_platform_admin(caller: Caller) -> Decision | None:
    """The same for a permission of the instance, which Platform Admins and its grantees hold."""
    return Decision.ALLOW if await is_platform_admin_now(caller) else None


def _is_of_teams(caller: Caller, name: str) -> bool:
    return caller.platform.permissions[name].scope == "team"


async def _refuse_unknown_team(caller: Caller, name: str, within: int) -> None:
    if _is_of_teams(caller, name):
        await caller.platform.database.read(_check_team, within)


def _check_team(session: Session, team_id: int) -> None:
    find_team(session, team_id)
