"""Effective permissions: every key that a member holds in an organization, and whence (spec 2.6)."""

from __future__ import annotations

from builtin_plugins.tenancy.schemas_roles import EffectivePermission, EffectivePermissionsResponse
from builtin_plugins.tenancy.services.explaining import explain
from builtin_plugins.tenancy.services.standing import Grant, read_standing
from builtin_plugins.tenancy.services.viewing import Viewer, viewing
from kernel.sdk import Platform, Principal, Unprocessable


async def effective_permissions(
    platform: Platform, principal: Principal, organization_id: int, user_id: int, key: str | None
) -> EffectivePermissionsResponse:
    """All keys of a member, or one with its explanation. Raises Forbidden, MemberNotFound, Unprocessable."""
    async with viewing(platform, principal, organization_id) as viewer:
        await viewer.insist_on_member(user_id, viewer.places)
        if key is not None:
            _check_key(viewer, key)
        standing = await read_standing(viewer.session, user_id, viewer.permissions)
        grants = [
            grant
            for grant in standing.grants_in(organization_id, viewer.lineage[1:])
            if _counts(viewer, grant) and key in (None, grant.key)
        ]
        explanation = None if key is None else await explain(viewer, user_id, key, grants)
    return EffectivePermissionsResponse(
        organization_id=organization_id,
        user_id=user_id,
        permissions=[_entry(grant, organization_id) for grant in grants],
        explanation=explanation,
    )


def _check_key(viewer: Viewer, key: str) -> None:
    permission = viewer.permissions.get(key)
    if permission is None:
        problem = "is no permission key; GET /v1/permissions lists all"
    elif permission.scope != "organization":
        problem = f"has the scope '{permission.scope}'; organizations grant keys of the scope 'organization'"
    else:
        return
    raise Unprocessable.field(("query", "key"), f"'{key}' {problem}", key)


def _counts(viewer: Viewer, grant: Grant) -> bool:
    """Whether the key is one now: a role may hold one of a plugin that is not loaded."""
    permission = viewer.permissions.get(grant.key)
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
