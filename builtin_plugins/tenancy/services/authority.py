"""Who may act on memberships of an organization. Action routes and the hints of lists ask the same rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import (
    AboveYou,
    KeyNotHeld,
    NotAMember,
    OrganizationNotFound,
)
from builtin_plugins.tenancy.models import Organization
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, ROLES_MANAGE
from builtin_plugins.tenancy.services.access import is_platform_admin
from builtin_plugins.tenancy.services.memberships import OWNER
from builtin_plugins.tenancy.services.standing import Standing, read_standing, standing_of
from builtin_plugins.tenancy.services.tree import ancestors, lineage_of
from kernel.sdk import Account, Forbidden, Permission, Platform, PlatformError, Principal

RANKS = {"member": 0, "admin": 1, "owner": 2}


@dataclass(frozen=True)
class Caller:
    """Who acts in an organization, with what is held there in this state of the database."""

    id: int | None
    standing: Standing
    lineage: Sequence[int]
    is_admin: bool
    is_platform_admin: bool
    permissions: Mapping[str, Permission]

    def holds(self, key: str) -> bool:
        """Whether the caller holds a key in the organization; a Platform Admin holds all."""
        return self.is_platform_admin or self.standing.holds(key, self.lineage[0], self.lineage[1:])

    def hands_on(self, key: str) -> bool:
        """Whether a key is held here and in all organizations below, as an `admin` or `owner` holds it."""
        return self.is_platform_admin or self.standing.commands(key, self.lineage)

    @property
    def administers(self) -> bool:
        """Whether the caller may reset and deactivate accounts: being an instance administrator won't do."""
        return self.holds(MEMBERS_MANAGE.key)

    @property
    def manages(self) -> bool:
        """Whether the caller manages members, as instance administrators do as well."""
        return self.is_admin or self.administers

    def refusal_to_act_on(self, org_role: str) -> PlatformError | None:
        """Why the caller may not change or end a membership with this role; None if it may."""
        if not self.manages:
            return Forbidden(f"This needs: permission {MEMBERS_MANAGE.key}")
        if org_role == "member" or self.is_admin or self.holds(ROLES_MANAGE.key):
            return None
        return AboveYou()

    def refusal_to_give(self, org_role: str) -> PlatformError | None:
        """Why the caller may not make somebody this; nobody hands on a key that it does not hold."""
        if not self.manages:
            return Forbidden(f"This needs: permission {MEMBERS_MANAGE.key}")
        if org_role == "member" or self.is_admin:
            return None
        if org_role == OWNER and not self.holds(ROLES_MANAGE.key):
            return AboveYou(f"Making an owner needs the permission {ROLES_MANAGE.key} here")
        missing = [key for key in keys_of_builtin(self.permissions, org_role) if not self.hands_on(key)]
        return KeyNotHeld(f"You don't hold {', '.join(missing[:10])} here yourself") if missing else None


async def remembered_caller(platform: Platform, principal: Principal, organization_id: int) -> Caller:
    """The caller as it is remembered, for what changes nothing. Raises OrganizationNotFound."""
    lineage = await lineage_of(platform, organization_id)
    if not lineage:
        raise OrganizationNotFound()
    return Caller(
        principal.id,
        await standing_of(platform, principal.id or 0),
        lineage,
        principal.is_admin,
        await is_platform_admin(platform, principal),
        platform.permissions,
    )


async def read_caller(
    session: AsyncSession, principal: Principal, organization_id: int, permissions: Mapping[str, Permission]
) -> Caller:
    """The caller as this session sees it, past every cache.

    Raises OrganizationNotFound, but NotAMember to those who may not know which organizations there are: after
    the same work as for one that is there, so that nobody can tell by the time it takes.
    """
    is_platform_admin = await _is_platform_admin(session, principal)
    caller = Caller(
        principal.id,
        await read_standing(session, principal.id or 0, permissions),
        (organization_id, *await ancestors(session, organization_id)),
        principal.is_admin,
        is_platform_admin,
        permissions,
    )
    if await session.get(Organization, organization_id) is None:
        raise OrganizationNotFound() if principal.is_admin or is_platform_admin else NotAMember()
    return caller


async def _is_platform_admin(session: AsyncSession, principal: Principal) -> bool:
    """In the session at hand: who waits for a second connection under a lock could wait for ever."""
    if not principal.platform_admin:
        return False
    query = select(Account.platform_admin).where(Account.id == principal.id, Account.is_active)
    return bool(await session.scalar(query))


def keys_of_builtin(permissions: Mapping[str, Permission], org_role: str) -> list[str]:
    """The keys that a built-in role holds."""
    return [
        one.key for one in permissions.values() if one.scope == "organization" and org_role in one.org_roles
    ]
