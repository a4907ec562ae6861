"""Whether an organization manages the account of a member: only with the account's consent (spec 4.4).

An account that is created after an invite to the organization is managed once it redeems it, unless it
declines. Others consent when they redeem one, or later by accepting here. The consent ends with the
membership.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.changes import lock
from builtin_plugins.tenancy.errors import NotAMember, OnlyWayIn
from builtin_plugins.tenancy.members.schemas import Management
from builtin_plugins.tenancy.models import Membership
from kernel.sdk import Account, Caller, Unit, audit, utc_now


def accept(unit: Unit, caller: Caller, organization_id: int) -> Management:
    """Let an organization manage the caller's account. Raises NotAMember, also while suspended."""
    row = _membership(unit, caller, organization_id)
    if row.suspended_at is not None:
        raise NotAMember()
    if row.managed_since is None:
        row.managed_since = utc_now()
        _audit(unit, caller, row, "management_accepted", managed=True)
    since: datetime = row.managed_since
    return Management(organization_id=organization_id, managed_since=since)


def withdraw(unit: Unit, caller: Caller, organization_id: int) -> None:
    """Withdraw that consent, even while suspended. Raises NotAMember, OnlyWayIn.

    A member of another organization may do so at any time; others need a way to sign in that this
    organization did not give them.
    """
    row = _membership(unit, caller, organization_id)
    if row.managed_since is None:
        return
    if not (_is_member_elsewhere(unit.session, row) or _has_own_sign_in(unit.session, row.user_id)):
        raise OnlyWayIn()
    row.managed_since = None
    _audit(unit, caller, row, "management_withdrawn", managed=False)


def _membership(unit: Unit, caller: Caller, organization_id: int) -> Membership:
    lock(unit)
    row: Membership | None = unit.session.get(Membership, (organization_id, caller.id or 0))
    if row is None:
        raise NotAMember()
    return row


def _is_member_elsewhere(session: Session, row: Membership) -> bool:
    other = select(Membership.organization_id).where(
        Membership.user_id == row.user_id,
        Membership.organization_id != row.organization_id,
        Membership.suspended_at.is_(None),
    )
    return session.scalar(other.limit(1)) is not None


def _has_own_sign_in(session: Session, user_id: int) -> bool:
    """Whether the account has a password of its own choice, or signs in through an identity provider."""
    account = session.get_one(Account, user_id)
    has_own_password = account.password_hash is not None and not account.must_change_password
    return has_own_password or account.sso_subject is not None


def _audit(unit: Unit, caller: Caller, row: Membership, action: str, *, managed: bool) -> None:
    place = {"organization_id": row.organization_id}
    audit(
        unit,
        f"organization.{action}",
        "account",
        row.user_id,
        before={**place, "managed": not managed},
        after={**place, "managed": managed},
        origin=caller.origin,
        scope_org_id=row.organization_id,
    )
