"""Effective permissions: every key that a member holds in an organization, and from which role (spec 2.6)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.authority import Authority, read_callers_authority
from builtin_plugins.tenancy.access.standing import Grant, read_standing
from builtin_plugins.tenancy.errors import MemberNotFound
from builtin_plugins.tenancy.models import Membership
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, ROLES_MANAGE
from builtin_plugins.tenancy.roles.explaining import explain
from builtin_plugins.tenancy.roles.schemas import EffectivePermission, EffectivePermissionsResponse
from kernel.sdk import Caller, Forbidden, Unprocessable


def effective_permissions(
    session: Session, caller: Caller, organization_id: int, user_id: int, key: str | None
) -> EffectivePermissionsResponse:
    """All keys of a member, or one with its explanation. Raises Forbidden, MemberNotFound, Unprocessable."""
    authority = read_callers_authority(session, caller, organization_id)
    require_member(session, authority, user_id, authority.visible_places)
    if key is not None:
        _check_key(authority, key)
    standing = read_standing(session, user_id, authority.permissions)
    grants = [
        grant
        for grant in standing.grants_in(authority.lineage)
        if _counts(authority, grant) and key in (None, grant.key)
    ]
    return EffectivePermissionsResponse(
        organization_id=organization_id,
        user_id=user_id,
        permissions=[_entry(grant, organization_id) for grant in grants],
        explanation=None if key is None else explain(session, authority, user_id, key, grants),
    )


def require_member(session: Session, authority: Authority, user_id: int, places: Sequence[int]) -> None:
    """Raise Forbidden unless it is the caller or a member whom the caller manages.

    Raises MemberNotFound for an account in none of these organizations, whether it exists or not.
    """
    if user_id == authority.account_id:
        return
    if not (authority.holds(MEMBERS_MANAGE.key) or authority.holds(ROLES_MANAGE.key)):
        needed = f"{MEMBERS_MANAGE.key} or {ROLES_MANAGE.key}"
        raise Forbidden(f"To see other members' roles, you need {needed} in this organization")
    member = select(Membership.user_id).where(
        Membership.user_id == user_id, Membership.organization_id.in_(places)
    )
    if session.scalar(member.limit(1)) is None:
        raise MemberNotFound()


def _check_key(authority: Authority, key: str) -> None:
    permission = authority.permissions.get(key)
    if permission is None:
        problem = "is not a permission key; GET /v1/permissions lists all"
    elif permission.scope != "organization":
        problem = f"has the scope '{permission.scope}'; organizations grant keys of the scope 'organization'"
    else:
        return
    raise Unprocessable.field(("query", "key"), f"'{key}' {problem}", key)


def _counts(authority: Authority, grant: Grant) -> bool:
    """Whether the key exists now: a role may contain a key of a plugin that isn't loaded."""
    permission = authority.permissions.get(grant.key)
    return permission is not None and permission.scope == "organization"


def _entry(grant: Grant, organization_id: int) -> EffectivePermission:
    here = grant.organization_id == organization_id
    return EffectivePermission(
        permission_key=grant.key,
        role_id=grant.role_id,
        role_name=grant.role_name,
        permission_group_id=grant.group_id,
        permission_group_name=grant.group_name,
        via_ancestor_organization_id=None if here else grant.organization_id,
    )
