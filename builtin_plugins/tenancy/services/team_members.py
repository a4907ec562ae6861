"""Who is in a team. Every change holds the lock of tenancy, so that a team keeps an administrator."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import (
    AlreadyMember,
    LastTeamAdmin,
    MemberNotFound,
    OutsideOrganization,
    UserNotFound,
)
from builtin_plugins.tenancy.models import Membership, Team, TeamMember
from builtin_plugins.tenancy.permissions import TEAM_MANAGE
from builtin_plugins.tenancy.schemas_teams import TeamMemberOut
from builtin_plugins.tenancy.services.access import TEAM_ADMIN, insist
from builtin_plugins.tenancy.services.invite_offers import Offer
from builtin_plugins.tenancy.services.invite_uses import shut_out
from builtin_plugins.tenancy.services.standing import changed
from builtin_plugins.tenancy.services.team_authority import team_change
from kernel.sdk import Account, Platform, Principal, Unit, audit


async def members_of(session: AsyncSession, team_id: int) -> list[TeamMemberOut]:
    """The members of a team, the longest-serving first."""
    rows = await session.execute(_roster(team_id).order_by(TeamMember.joined_at, TeamMember.user_id))
    return [TeamMemberOut(**row) for row in rows.mappings()]


def active_in(organization_id: int) -> Select[int]:
    """The ids of the unsuspended members of an organization."""
    return select(Membership.user_id).where(
        Membership.organization_id == organization_id, Membership.suspended_at.is_(None)
    )


async def is_active_in(session: AsyncSession, organization_id: int, user_id: int) -> bool:
    """Whether an account is an unsuspended member of an organization."""
    query = active_in(organization_id).where(Membership.user_id == user_id)
    return await session.scalar(query) is not None


async def admit(unit: Unit, team: Team, user_id: int, team_role: str) -> TeamMember:
    """An account joins a team; the caller holds the lock and writes the audit entry.

    Raises UserNotFound (no active account), AlreadyMember, OutsideOrganization.
    """
    account = await unit.session.get(Account, user_id)
    if account is None or not account.is_active:
        raise UserNotFound()
    if await unit.session.get(TeamMember, (team.id, user_id)) is not None:
        raise AlreadyMember("This account is a member of the team already")
    home = team.organization_id
    if home is not None and not await is_active_in(unit.session, home, user_id):
        raise OutsideOrganization()
    member = TeamMember(team_id=team.id, user_id=user_id, team_role=team_role)
    unit.session.add(member)
    await unit.session.flush()
    await changed(unit, [user_id])
    return member


async def add(
    platform: Platform,
    principal: Principal,
    team_id: int,
    user_id: int,
    team_role: str,
    origin: dict[str, Any],
) -> TeamMemberOut:
    """A manager adds an account."""
    async with team_change(platform, principal, team_id) as (unit, team):
        member = await admit(unit, team, user_id, team_role)
        _audit(unit, "team.member_added", team, member, origin, after={"team_role": team_role})
        return await _record(unit.session, team_id, user_id)


async def change_role(
    platform: Platform,
    principal: Principal,
    team_id: int,
    user_id: int,
    team_role: str,
    origin: dict[str, Any],
) -> TeamMemberOut:
    """Make a member a team_admin or an ordinary member. Raises LastTeamAdmin."""
    async with team_change(platform, principal, team_id) as (unit, team):
        member = await _find(unit.session, team_id, user_id)
        before = member.team_role
        if team_role != before:
            if before == TEAM_ADMIN:
                await _keep_an_admin(unit, principal, team, user_id)
            member.team_role = team_role
            states = {"before": {"team_role": before}, "after": {"team_role": team_role}}
            _audit(unit, "team.member_role_changed", team, member, origin, **states)
            await changed(unit, [user_id])
        return await _record(unit.session, team_id, user_id)


async def remove(
    platform: Platform, principal: Principal, team_id: int, user_id: int, origin: dict[str, Any]
) -> None:
    """A manager removes a member, whom no pending invite brings back, or a member leaves.

    Raises Forbidden, LastTeamAdmin.
    """
    is_own = principal.id == user_id
    if not is_own:
        await insist(platform, principal, TEAM_MANAGE, team_id, or_admin=True)
    async with team_change(platform, principal, team_id, is_own=is_own) as (unit, team):
        member = await _find(unit.session, team_id, user_id)
        if member.team_role == TEAM_ADMIN:
            await _keep_an_admin(unit, principal, team, user_id)
        if not is_own:
            await shut_out(unit, Offer("", team_id=team_id), user_id)
        await unit.session.delete(member)
        before = {"team_role": member.team_role}
        _audit(unit, "team.member_removed", team, member, origin, before=before)
        await changed(unit, [user_id])


async def _find(session: AsyncSession, team_id: int, user_id: int) -> TeamMember:
    found = await session.get(TeamMember, (team_id, user_id))
    if found is None:
        raise MemberNotFound("This account is not a member of the team")
    return found


async def _keep_an_admin(unit: Unit, principal: Principal, team: Team, leaving: int) -> None:
    """Raise LastTeamAdmin unless another team_admin remains who is active, in the team's organization too.

    Instance administrators may do it.
    """
    if principal.is_admin:
        return
    others = (
        select(func.count())
        .select_from(TeamMember)
        .join(Account, Account.id == TeamMember.user_id)
        .where(TeamMember.team_id == team.id, TeamMember.team_role == TEAM_ADMIN)
        .where(TeamMember.user_id != leaving, Account.is_active)
    )
    if team.organization_id is not None:
        others = others.where(TeamMember.user_id.in_(active_in(team.organization_id)))
    if not await unit.session.scalar(others):
        raise LastTeamAdmin()


async def _record(session: AsyncSession, team_id: int, user_id: int) -> TeamMemberOut:
    await session.flush()
    row = await session.execute(_roster(team_id).where(TeamMember.user_id == user_id))
    return TeamMemberOut(**row.mappings().one())


def _roster(team_id: int) -> Select[int, str, str, str, datetime]:
    """The records of a team's members as plain columns: large teams are read much faster so."""
    columns = (
        TeamMember.user_id,
        Account.username,
        Account.email,
        TeamMember.team_role,
        TeamMember.joined_at,
    )
    joined = select(*columns).join(Account, Account.id == TeamMember.user_id)
    return joined.where(TeamMember.team_id == team_id)


def _audit(
    unit: Unit,
    action: str,
    team: Team,
    member: TeamMember,
    origin: dict[str, Any],
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    who = {"user_id": member.user_id}
    audit(
        unit,
        action,
        "team",
        team.id,
        before=before and {**who, **before},
        after=after and {**who, **after},
        origin=origin,
        scope_org_id=team.organization_id,
    )
