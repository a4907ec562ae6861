"""Every organization keeps an owner who can act: unsuspended, with an active account."""

from __future__ import annotations

from sqlalchemy import Select, exists, func, select
from sqlalchemy.orm import Session, aliased

from builtin_plugins.tenancy.access.standing import OWNER
from builtin_plugins.tenancy.errors import LastOwner
from builtin_plugins.tenancy.models import Membership, Organization
from kernel.sdk import Account, Unit


def keep_an_owner(unit: Unit, organization_id: int, leaving: int) -> None:
    """Raise LastOwner unless an active owner other than `leaving` remains. The caller holds the lock."""
    others = _active_owners(organization_id).where(Membership.user_id != leaving)
    if not unit.session.scalar(others):
        raise LastOwner()


def keep_owners_of_all(session: Session, user_id: int) -> None:
    """Raise LastOwner if an account that was just deactivated leaves an organization without an owner.

    The caller holds the lock.
    """
    other = aliased(Membership)
    somebody_else = exists().where(
        other.organization_id == Membership.organization_id,
        other.user_id != user_id,
        other.org_role == OWNER,
        other.suspended_at.is_(None),
        other.user_id == Account.id,
        Account.is_active,
    )
    query = (
        select(Organization.slug)
        .join(Membership, Membership.organization_id == Organization.id)
        .where(Membership.user_id == user_id, Membership.org_role == OWNER)
        .where(Membership.suspended_at.is_(None), ~somebody_else)
        .order_by(Organization.id)
        .limit(1)
    )
    slug = session.scalar(query)
    if slug is not None:
        raise LastOwner(
            f"This account is the last active owner of '{slug}'; make another member an owner first"
        )


def _active_owners(organization_id: int) -> Select[int]:
    return (
        select(func.count())
        .select_from(Membership)
        .join(Account, Account.id == Membership.user_id)
        .where(Membership.organization_id == organization_id, Membership.org_role == OWNER)
        .where(Membership.suspended_at.is_(None), Account.is_active)
    )
