"""Redeeming an invite: the membership and the use that it costs are one transaction."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

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
from builtin_plugins.tenancy.models import Invite, Membership
from builtin_plugins.tenancy.schemas_invites import InvitePreview, RedeemResult
from builtin_plugins.tenancy.services.invite_offers import Target, find_target, may_offer, offer_of
from builtin_plugins.tenancy.services.invite_uses import spend
from builtin_plugins.tenancy.services.invites import (
    ACCEPTED,
    EXPIRED,
    PENDING,
    REVOKED,
    record,
    status_of,
    token_hash,
)
from builtin_plugins.tenancy.services.memberships import LOCK
from builtin_plugins.tenancy.services.standing import changed
from builtin_plugins.tenancy.services.team_authority import find_team
from builtin_plugins.tenancy.services.team_members import admit
from kernel.sdk import Account, Conflict, Forbidden, Platform, Principal, Unauthorized, Unit, audit, utc_now

_CLOSED: dict[str, type[Conflict]] = {
    ACCEPTED: InviteSpent,
    REVOKED: InviteRevoked,
    EXPIRED: InviteExpired,
}


async def preview(platform: Platform, token: str) -> InvitePreview:
    """What an invite is for. One whose sender may no longer invite is `revoked`. Raises InviteNotFound."""
    async with platform.database.read() as session:
        invite = await _find(session, token)
        target = await find_target(session, offer_of(invite))
        status = status_of(invite, utc_now())
        if status == PENDING and not await may_offer(
            session, platform.permissions, invite.invited_by, offer_of(invite)
        ):
            status = REVOKED
    return InvitePreview.model_validate(
        {
            "email": invite.email,
            "status": status,
            "expires_at": invite.expires_at,
            **_place(invite, target),
        }
    )


async def redeem(
    platform: Platform, principal: Principal, token: str, origin: dict[str, Any]
) -> RedeemResult:
    """The caller joins what the invite is for.

    Raises InviteNotFound, InviteForAnother, InviteSpent, InviteRevoked, InviteExpired, InviteWithdrawn,
    InviteClosed, AlreadyMember, MembershipSuspended, NotAMember.
    """
    if principal.id is None:
        raise Forbidden("Only an account can redeem an invite")
    async with platform.database.read() as session:
        await _find(session, token)  # unknown tokens wait for no lock
    async with platform.database.unit() as unit:
        await unit.lock(LOCK)
        invite = await _find(unit.session, token)
        account = await unit.session.get_one(Account, principal.id)
        _check(invite, account)
        offer = offer_of(invite)
        if not await may_offer(unit.session, platform.permissions, invite.invited_by, offer):
            raise InviteWithdrawn()
        target = await find_target(unit.session, offer)
        await _join(unit, invite, account, target, origin)
        await spend(unit, invite, account.id)
        record(unit, "invite.redeemed", invite, target, origin)
    what = "team" if invite.team_id is not None else "organization"
    message = f"You joined the {what} '{target.name}'; refresh the session for its token to know"
    return RedeemResult.model_validate({"message": message, **_place(invite, target)})


async def _find(session: AsyncSession, token: str) -> Invite:
    found: Invite | None = await session.scalar(select(Invite).where(Invite.token_hash == token_hash(token)))
    if found is None:
        raise InviteNotFound()
    return found


def _check(invite: Invite, account: Account) -> None:
    """Whether this account may redeem this invite now."""
    if not account.is_active:
        raise Unauthorized("The account is disabled or gone")
    if invite.max_uses == 1 and account.email_key != invite.email_key:
        raise InviteForAnother()
    closed = _CLOSED.get(status_of(invite, utc_now()))
    if closed is not None:
        raise closed()


async def _join(unit: Unit, invite: Invite, account: Account, target: Target, origin: dict[str, Any]) -> None:
    """The membership, and its audit entry beside that of the invite."""
    if invite.team_id is not None:
        await _join_team(unit, invite, account.id)
        action, kind, where = "team.member_added", "team", invite.team_id
        after = {"user_id": account.id, "team_role": invite.role, "invite_id": invite.id}
    else:
        await _join_organization(unit, invite, account.id)
        action, kind, where = "organization.member_added", "account", account.id
        place = {"organization_id": invite.organization_id}
        after = {**place, "org_role": invite.role, "invite_id": invite.id}
    audit(unit, action, kind, where, after=after, origin=origin, scope_org_id=target.scope_org_id)


async def _join_team(unit: Unit, invite: Invite, user_id: int) -> None:
    team = await find_team(unit.session, invite.team_id or 0)
    try:
        await admit(unit, team, user_id, invite.role)
    except OutsideOrganization:
        raise NotAMember("The team belongs to an organization; become an active member there first") from None
    except AlreadyMember:
        raise AlreadyMember("You are a member of the team already") from None


async def _join_organization(unit: Unit, invite: Invite, user_id: int) -> None:
    """A membership that is there stays as it is: an invite neither lowers it nor ends a suspension."""
    known = await unit.session.get(Membership, (invite.organization_id, user_id))
    if known is not None and known.suspended_at is not None:
        raise MembershipSuspended()
    if known is not None:
        raise AlreadyMember("You are a member of the organization already")
    unit.session.add(
        Membership(organization_id=invite.organization_id, user_id=user_id, org_role=invite.role)
    )
    await changed(unit, [user_id])


def _place(invite: Invite, target: Target) -> dict[str, Any]:
    if invite.team_id is not None:
        return {"team_id": invite.team_id, "team_name": target.name, "team_role": invite.role}
    return {
        "organization_id": invite.organization_id,
        "organization_name": target.name,
        "org_role": invite.role,
    }
