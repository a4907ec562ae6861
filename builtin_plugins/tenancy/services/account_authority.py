"""Who may act on the account of whom through an organization (spec 5.7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass

from sqlalchemy import Select, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import AboveYou, NotManaged, OwnerNotReset
from builtin_plugins.tenancy.models import Membership, OrganizationAncestor, RoleAssignment
from builtin_plugins.tenancy.permissions import ROLES_MANAGE
from builtin_plugins.tenancy.services.authority import Caller, keys_of_builtin
from builtin_plugins.tenancy.services.memberships import OWNER
from builtin_plugins.tenancy.services.standing import keys_of_roles
from kernel.sdk import Account, PlatformError, utc_now


@dataclass(frozen=True)
class Target:
    """What decides who may administer an account: its roles in organizations, and all keys that they give.

    `is_inside`: it is in the organization's tree, and in no organization outside.
    """

    is_admin: bool
    is_platform_admin: bool
    roles: Set[str]
    is_inside: bool
    keys: Set[str]


def refusal_to_administer(caller: Caller, target: Target, *, reset: bool) -> PlatformError | None:
    """Why the caller may not reset (or else activate and deactivate) an account; None if it may.

    The account must belong to the tree of the organization and to no other organization (spec 5.7), and hold
    nothing that the caller does not hold: whoever resets a password could become that account.
    """
    if not target.is_inside:
        return NotManaged()
    if (target.is_admin or target.is_platform_admin) and not caller.is_platform_admin:
        return AboveYou("The accounts of administrators of the instance are for Platform Admins")
    if reset and OWNER in target.roles:
        return OwnerNotReset()
    if target.roles & {"admin", OWNER} and not caller.holds(ROLES_MANAGE.key):
        return AboveYou()
    known = caller.permissions.keys()  # a role may hold a key of a plugin that is not loaded
    if not all(caller.holds(key) for key in target.keys & known):
        return AboveYou("This account holds permissions that you don't hold here yourself")
    return None


async def read_targets(session: AsyncSession, caller: Caller, accounts: Sequence[Account]) -> list[Target]:
    """What decides whether the caller may administer these accounts."""
    ids = [account.id for account in accounts]
    roles: dict[int, set[str]] = defaultdict(set)
    outside: set[int] = set()
    for user_id, role, is_inside in await session.execute(_places(caller.lineage[0], ids)):
        roles[user_id].add(role)
        if not is_inside:
            outside.add(user_id)
    inside = roles.keys() - outside
    # Of the others nothing more is read: what they hold elsewhere takes no time here.
    custom = await _custom_keys(session, inside) if inside else defaultdict(set)
    return [
        Target(
            account.role == "admin",
            account.platform_admin,
            roles[account.id],
            account.id in inside,
            custom[account.id] | _builtin_keys(caller, roles[account.id]),
        )
        for account in accounts
    ]


def _places(organization_id: int, user_ids: Sequence[int]) -> Select[int, str, bool]:
    """Memberships of accounts, suspended ones included: the role, and whether it is in the tree."""
    inside = (OrganizationAncestor.organization_id == Membership.organization_id) & (
        OrganizationAncestor.ancestor_id == organization_id
    )
    return (
        select(Membership.user_id, Membership.org_role, OrganizationAncestor.ancestor_id.is_not(None))
        .outerjoin(OrganizationAncestor, inside)
        .where(Membership.user_id.in_(user_ids))
    )


def _builtin_keys(caller: Caller, roles: Set[str]) -> set[str]:
    """What the roles give beyond plain membership."""
    return {key for role in roles - {"member"} for key in keys_of_builtin(caller.permissions, role)}


async def _custom_keys(session: AsyncSession, user_ids: Collection[int]) -> dict[int, set[str]]:
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
