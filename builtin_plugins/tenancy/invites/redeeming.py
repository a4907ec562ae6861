"""Redeeming an invite: the membership and the counted use are one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.cache import changed
from builtin_plugins.tenancy.access.changes import lock
from builtin_plugins.tenancy.access.tree import find_team
from builtin_plugins.tenancy.errors import (
    AlreadyMember,
    InviteExpired,
    InviteForAnother,
    InviteNotFound,
    InviteRevoked,
    InviteSpent,
    InviteWithdrawn,
    MembershipSuspended,
    NotAMember,
    OutsideOrganization,
)
from builtin_plugins.tenancy.invites.offers import OfferTarget, find_target, may_offer, offer_of
from builtin_plugins.tenancy.invites.records import (
    ACCEPTED,
    EXPIRED,
    PENDING,
    REVOKED,
    record,
    status_of,
)
from builtin_plugins.tenancy.invites.schemas import MANAGING, InvitePreview, RedeemResult
from builtin_plugins.tenancy.invites.tokens import token_hash
from builtin_plugins.tenancy.invites.uses import spend
from builtin_plugins.tenancy.models import Invite, Membership
from builtin_plugins.tenancy.teams.members import admit
from kernel.sdk import (
    Account,
    Caller,
    Conflict,
    Forbidden,
    Permission,
    Unauthorized,
    Unit,
    audit,
    shared_moment,
    utc_now,
)

_CLOSED: dict[str, type[Conflict]] = {
    ACCEPTED: InviteSpent,
    REVOKED: InviteRevoked,
    EXPIRED: InviteExpired,
}


def preview(
    session: Session, permissions: Mapping[str, Permission], token: str, user_id: int | None
) -> InvitePreview:
    """What an invite is for, to an account or to somebody without one.

    An invite whose sender may no longer invite is `revoked`. Raises InviteNotFound.
    """
    invite, now = _find(session, token)
    offer, status = offer_of(invite), status_of(invite, now)
    if status == PENDING and not may_offer(session, permissions, invite.invited_by, offer):
        status = REVOKED
    fields = {"email": invite.email, "status": status, "expires_at": invite.expires_at}
    if invite.organization_id is not None:
        account = session.get(Account, user_id) if user_id is not None else None
        fields |= {
            "management": MANAGING,
            "managed_by_default": account is None or _is_newer(account, invite),
        }
    return InvitePreview.model_validate({**fields, **_place(invite, find_target(session, offer))})


async def redeem(caller: Caller, token: str, accept_management: bool | None) -> RedeemResult:
    """Let the caller join what the invite is for, and an organization manage its account if it agrees.

    If it says nothing, only an account that was created after the invite is managed.

    Raises InviteNotFound, InviteForAnother, InviteSpent, InviteRevoked, InviteExpired, InviteWithdrawn,
    InviteClosed, AlreadyMember, MembershipSuspended, NotAMember.
    """
    if caller.id is None:
        raise Forbidden("Only an account can redeem an invite")
    await caller.platform.database.read(_check_token, token)  # refuse unknown tokens before the lock
    return await caller.platform.database.write(_redeem, caller, token, accept_management)


def _redeem(unit: Unit, caller: Caller, token: str, accept_management: bool | None) -> RedeemResult:
    lock(unit)
    invite, now = _find(unit.session, token)
    account = unit.session.get_one(Account, caller.id)
    _check(invite, account, now)
    offer = offer_of(invite)
    if not may_offer(unit.session, caller.platform.permissions, invite.invited_by, offer):
        raise InviteWithdrawn()
    target = find_target(unit.session, offer)
    managed = _is_newer(account, invite) if accept_management is None else accept_management
    _join(unit, caller, invite, account, target, managed=managed)
    spend(unit, invite, account.id)
    record(unit, caller, "invite.redeemed", invite, target)
    result = {"message": _message(invite, target, managed=managed), **_place(invite, target)}
    if invite.organization_id is not None:
        result["managed"] = managed
    return RedeemResult.model_validate(result)


def _is_newer(account: Account, invite: Invite) -> bool:
    """Whether the account was created after the invite."""
    return bool(account.created_at >= invite.created_at)


def _message(invite: Invite, target: OfferTarget, *, managed: bool) -> str:
    what = "team" if invite.team_id is not None else "organization"
    message = f"You joined the {what} '{target.name}'."
    if invite.team_id is not None:
        return message
    route = f"/v1/organizations/{invite.organization_id}/management"
    if managed:
        return f"{message} The organization manages your account. {MANAGING} DELETE {route} ends that."
    return f"{message} The organization does not manage your account; POST {route} allows it."


def _check_token(session: Session, token: str) -> None:
    _find(session, token)


def _find(session: Session, token: str) -> tuple[Invite, datetime]:
    """The invite, and the time by the database's clock. Raises InviteNotFound."""
    query = select(Invite, shared_moment(session)).where(Invite.token_hash == token_hash(token))
    row = session.execute(query).one_or_none()
    if row is None:
        raise InviteNotFound()
    return row[0], row[1]


def _check(invite: Invite, account: Account, now: datetime) -> None:
    """Check that this account may redeem this invite now."""
    if not account.is_active:
        raise Unauthorized("The account is disabled or was deleted")
    if invite.max_uses == 1 and account.email_key != invite.email_key:
        raise InviteForAnother()
    closed = _CLOSED.get(status_of(invite, now))
    if closed is not None:
        raise closed()


def _join(
    unit: Unit, caller: Caller, invite: Invite, account: Account, target: OfferTarget, *, managed: bool
) -> None:
    """Add the membership, with an audit entry in addition to the invite's."""
    if invite.team_id is not None:
        _join_team(unit, invite, account.id)
        action, kind, where = "team.member_added", "team", invite.team_id
        after = {"user_id": account.id, "team_role": invite.role, "invite_id": invite.id}
    else:
        _join_organization(unit, invite, account.id, managed=managed)
        action, kind, where = "organization.member_added", "account", account.id
        place = {"organization_id": invite.organization_id}
        after = {**place, "org_role": invite.role, "invite_id": invite.id, "managed": managed}
    scope = target.scope_org_id
    audit(unit, action, kind, where, after=after, origin=caller.origin, scope_org_id=scope)


def _join_team(unit: Unit, invite: Invite, user_id: int) -> None:
    team = find_team(unit.session, invite.team_id or 0)
    try:
        admit(unit, team, user_id, invite.role)
    except OutsideOrganization:
        raise NotAMember("The team belongs to an organization; become an active member there first") from None
    except AlreadyMember:
        raise AlreadyMember("You are already a member of the team") from None


def _join_organization(unit: Unit, invite: Invite, user_id: int, *, managed: bool) -> None:
    """An existing membership stays as it is: an invite neither lowers it nor ends a suspension."""
    membership = unit.session.get(Membership, (invite.organization_id, user_id))
    if membership is not None and membership.suspended_at is not None:
        raise MembershipSuspended()
    if membership is not None:
        raise AlreadyMember("You are already a member of the organization")
    place = {"organization_id": invite.organization_id, "user_id": user_id}
    managed_since = utc_now() if managed else None
    unit.session.add(Membership(org_role=invite.role, managed_since=managed_since, **place))
    changed(unit, [user_id])


def _place(invite: Invite, target: OfferTarget) -> dict[str, Any]:
    if invite.team_id is not None:
        return {"team_id": invite.team_id, "team_name": target.name, "team_role": invite.role}
    return {
        "organization_id": invite.organization_id,
        "organization_name": target.name,
        "org_role": invite.role,
    }
