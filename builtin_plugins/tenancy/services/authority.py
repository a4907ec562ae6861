"""Who may act on whom in an organization. Action routes and the hint flags of lists ask the same rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import (
    AboveYou,
    KeyNotHeld,
    NotAMember,
    NotManaged,
    OrganizationNotFound,
    OwnerNotReset,
)
from builtin_plugins.tenancy.models import Membership, Organization, RoleAssignment
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, ROLES_MANAGE
from builtin_plugins.tenancy.services.memberships import OWNER
from builtin_plugins.tenancy.services.standing import Standing, keys_of_roles, read_standing
from builtin_plugins.tenancy.services.tree import ancestors, descendants
from kernel.sdk import Account, Forbidden, Permission, PlatformError, Principal, utc_now

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
        missing = [key for key in keys_of_builtin(self.permissions, org_role) if not self.holds(key)]
        return KeyNotHeld(f"You don't hold {', '.join(missing[:10])} here yourself") if missing else None


@dataclass(frozen=True)
class Target:
    """An account with all that decides who may administer it."""

    id: int
    is_admin: bool
    is_platform_admin: bool
    organizations: Mapping[int, str]
    keys: Set[str]


def refusal_to_administer(
    caller: Caller, target: Target, tree: Set[int], *, reset: bool
) -> PlatformError | None:
    """Why the caller may not reset (or else activate and deactivate) an account; None if it may.

    The account must belong to the tree of the organization and to no other organization (spec 5.7), and hold
    nothing that the caller does not hold: whoever resets a password could become that account.
    """
    if not target.organizations or not tree >= target.organizations.keys():
        return NotManaged()
    if (target.is_admin or target.is_platform_admin) and not caller.is_platform_admin:
        return AboveYou("The accounts of administrators of the instance are for Platform Admins")
    roles = set(target.organizations.values())
    if reset and OWNER in roles:
        return OwnerNotReset()
    if roles & {"admin", OWNER} and not caller.holds(ROLES_MANAGE.key):
        return AboveYou()
    known = caller.permissions.keys()  # a role may hold a key of a plugin that is not loaded
    if not all(caller.holds(key) for key in target.keys & known):
        return AboveYou("This account holds permissions that you don't hold here yourself")
    return None


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


async def read_tree(session: AsyncSession, organization_id: int) -> frozenset[int]:
    """An organization and all below it."""
    return frozenset((organization_id, *await descendants(session, organization_id)))


async def read_targets(
    session: AsyncSession, accounts: Sequence[Account], permissions: Mapping[str, Permission]
) -> list[Target]:
    """What decides who may administer these accounts."""
    ids = [account.id for account in accounts]
    organizations: dict[int, dict[int, str]] = defaultdict(dict)
    rows = await session.execute(
        select(Membership.user_id, Membership.organization_id, Membership.org_role).where(
            Membership.user_id.in_(ids)
        )
    )
    for user_id, organization_id, role in rows:
        organizations[user_id][organization_id] = role
    custom = await _custom_keys(session, ids)
    return [
        Target(
            account.id,
            account.role == "admin",
            account.platform_admin,
            organizations[account.id],
            custom[account.id] | _builtin_keys(permissions, organizations[account.id]),
        )
        for account in accounts
    ]


def _builtin_keys(permissions: Mapping[str, Permission], organizations: Mapping[int, str]) -> set[str]:
    """What the roles give beyond plain membership, suspended or not."""
    roles = {role for role in organizations.values() if role != "member"}
    return {key for role in roles for key in keys_of_builtin(permissions, role)}


async def _custom_keys(session: AsyncSession, user_ids: Sequence[int]) -> dict[int, set[str]]:
    query = select(RoleAssignment.user_id, RoleAssignment.role_id).where(
        RoleAssignment.user_id.in_(user_ids),
        or_(RoleAssignment.expires_at.is_(None), RoleAssignment.expires_at > utc_now()),
    )
    rows = (await session.execute(query)).all()
    keys = await keys_of_roles(session, {row.role_id for row in rows}) if rows else {}
    found: dict[int, set[str]] = defaultdict(set)
    for user_id, role_id in rows:
        found[user_id].update(key for key, _, _ in keys.get(role_id, ()))
    return found


def keys_of_builtin(permissions: Mapping[str, Permission], org_role: str) -> list[str]:
    """The keys that a built-in role holds."""
    return [
        one.key for one in permissions.values() if one.scope == "organization" and org_role in one.org_roles
    ]
