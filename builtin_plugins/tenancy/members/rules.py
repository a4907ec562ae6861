"""Who may act on memberships of an organization: the rules for routes and for the hints in lists."""

from __future__ import annotations

from builtin_plugins.tenancy.access.authority import Authority
from builtin_plugins.tenancy.access.standing import OWNER, keys_of_builtin
from builtin_plugins.tenancy.errors import AboveYou, KeyNotHeld
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, ROLES_MANAGE
from kernel.sdk import Forbidden, PlatformError

RANKS = {"member": 0, "admin": 1, "owner": 2}


def refusal_to_act_on(authority: Authority, org_role: str) -> PlatformError | None:
    """Why the caller may not change or end a membership with this role; None if it may."""
    if not authority.manages_members:
        return Forbidden(f"This needs: permission {MEMBERS_MANAGE.key}")
    if org_role == "member" or authority.is_admin or authority.holds(ROLES_MANAGE.key):
        return None
    return AboveYou()


def refusal_to_give(authority: Authority, org_role: str) -> PlatformError | None:
    """Why the caller may not give this role; None if it may. Nobody can grant a key that they don't hold."""
    if not authority.manages_members:
        return Forbidden(f"This needs: permission {MEMBERS_MANAGE.key}")
    if org_role == "member" or authority.is_admin:
        return None
    if org_role == OWNER and not authority.holds(ROLES_MANAGE.key):
        return AboveYou(f"Making an owner needs the permission {ROLES_MANAGE.key} here")
    keys = keys_of_builtin(authority.permissions, org_role)
    missing = [key for key in keys if not authority.may_grant(key)]
    return KeyNotHeld(f"You don't hold {', '.join(missing[:10])} here") if missing else None


def refuse(why: PlatformError | None) -> None:
    """Raise the refusal, if it is one."""
    if why is not None:
        raise why
