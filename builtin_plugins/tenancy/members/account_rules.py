"""Who may act on whose account through an organization (spec 5.7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.authority import Authority
from builtin_plugins.tenancy.access.standing import OWNER, keys_of_builtin, keys_of_roles, unexpired
from builtin_plugins.tenancy.errors import AboveYou, NotManaged, OwnerNotReset
from builtin_plugins.tenancy.models import Membership, OrganizationAncestor, RoleAssignment
from builtin_plugins.tenancy.permissions import ROLES_MANAGE
from kernel.sdk import PlatformError


@dataclass(frozen=True)
class TargetAccount:
    """What decides who may administer an account: its roles in organizations, and all keys from them.

    `is_administrator`: of the instance. `is_managed`: it is in the organization's tree and in no organization
    outside, and agreed to be managed by one in the tree.
    """

    is_administrator: bool
    roles: Set[str]
    is_managed: bool
    keys: Set[str]


def refusal_to_administer(
    authority: Authority, target: TargetAccount, *, reset: bool
) -> PlatformError | None:
    """Why the caller may not reset the account's password (or else activate and deactivate it); None if it
    may.

    The account must belong to the tree of the organization and to no other organization (spec 5.7), have
    agreed to be managed there, and hold no key that the caller does not hold: whoever resets a password can
    use the account.
    """
    if not target.is_managed:
        return NotManaged()
    if target.is_administrator and not authority.is_platform_admin:
        return AboveYou("Only Platform Admins may act on the accounts of instance administrators")
    if reset and OWNER in target.roles:
        return OwnerNotReset()
    if target.roles & {"admin", OWNER} and not authority.holds(ROLES_MANAGE.key):
        return AboveYou()
    loaded_keys = authority.permissions.keys()  # a role may contain a key of a plugin that isn't loaded
    if not all(authority.holds(key) for key in target.keys & loaded_keys):
        return AboveYou("This account holds permissions that you don't hold here")
    return None


def read_targets(
    session: Session, authority: Authority, organization_id: int, accounts: Mapping[int, bool]
) -> dict[int, TargetAccount]:
    """What decides whether the caller may administer accounts, by id.

    `accounts` tells for each whether it is an administrator of the instance.
    """
    roles: dict[int, set[str]] = defaultdict(set)
    outside: set[int] = set()
    agreed: set[int] = set()
    for user_id, role, is_inside, has_agreed in session.execute(_places(organization_id, list(accounts))):
        roles[user_id].add(role)
        if not is_inside:
            outside.add(user_id)
        elif has_agreed:
            agreed.add(user_id)
    managed = agreed - outside
    # Nothing more is read of the others, so that the time reveals nothing of what they hold elsewhere.
    custom = _custom_keys(session, managed) if managed else defaultdict(set)
    return {
        user_id: TargetAccount(
            is_administrator,
            roles[user_id],
            user_id in managed,
            custom[user_id] | _builtin_keys(authority, roles[user_id]),
        )
        for user_id, is_administrator in accounts.items()
    }


def _places(organization_id: int, user_ids: Collection[int]) -> Select[int, str, bool, bool]:
    """Memberships of accounts, including suspended ones: role, whether in the tree, whether managed."""
    inside = (OrganizationAncestor.organization_id == Membership.organization_id) & (
        OrganizationAncestor.ancestor_id == organization_id
    )
    return (
        select(
            Membership.user_id,
            Membership.org_role,
            OrganizationAncestor.ancestor_id.is_not(None),
            Membership.managed_since.is_not(None),
        )
        .outerjoin(OrganizationAncestor, inside)
        .where(Membership.user_id.in_(user_ids))
    )


def _builtin_keys(authority: Authority, roles: Set[str]) -> set[str]:
    """The keys that built-in roles give beyond plain membership."""
    return {key for role in roles - {"member"} for key in keys_of_builtin(authority.permissions, role)}


def _custom_keys(session: Session, user_ids: Collection[int]) -> dict[int, set[str]]:
    query = select(RoleAssignment.user_id, RoleAssignment.role_id).where(
        RoleAssignment.user_id.in_(user_ids), unexpired(session)
    )
    rows = session.execute(query).all()
    keys = keys_of_roles(session, {row.role_id for row in rows}) if rows else {}
    keys_by_user: dict[int, set[str]] = defaultdict(set)
    for user_id, role_id in rows:
        keys_by_user[user_id].update(key for key, _, _ in keys.get(role_id, ()))
    return keys_by_user
