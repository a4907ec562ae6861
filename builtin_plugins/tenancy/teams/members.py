"""The members of teams. Every change holds the lock of tenancy, so that a team keeps an administrator."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, func, null, select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.cache import changed, standing_of
from builtin_plugins.tenancy.access.changes import Change, change_team
from builtin_plugins.tenancy.access.decisions import decide, require
from builtin_plugins.tenancy.access.standing import TEAM_ADMIN
from builtin_plugins.tenancy.access.tree import find_team
from builtin_plugins.tenancy.errors import (
    AlreadyMember,
    LastTeamAdmin,
    MemberNotFound,
    OutsideOrganization,
    UserNotFound,
)
from builtin_plugins.tenancy.invites.offers import Offer
from builtin_plugins.tenancy.invites.uses import shut_out
from builtin_plugins.tenancy.models import Membership, Team, TeamMember
from builtin_plugins.tenancy.permissions import TEAM_MANAGE
from builtin_plugins.tenancy.teams.schemas import TeamMemberCreate, TeamMemberOut, TeamMemberUpdate
from kernel.sdk import Account, Caller, PageQuery, Unit


async def sees_addresses(caller: Caller, team_id: int) -> bool:
    """Whether the caller, as a member, manager or administrator, sees the members' e-mail addresses."""
    if caller.principal.is_service:
        return True
    if caller.id is not None and team_id in (await standing_of(caller.platform, caller.id)).teams:
        return True
    return await decide(caller, TEAM_MANAGE, team_id, or_admin=True)


def members_of(session: Session, team_id: int, *, with_addresses: bool) -> list[TeamMemberOut]:
    """The members of a team, the longest-serving first."""
    rows = session.execute(_members(team_id, with_addresses=with_addresses))
    return [TeamMemberOut(**row) for row in rows.mappings()]


async def list_page(caller: Caller, team_id: int, query: PageQuery) -> tuple[list[TeamMemberOut], int]:
    """A page of a team's members, and how many there are. Raises TeamNotFound."""
    with_addresses = await sees_addresses(caller, team_id)
    return await caller.platform.database.read(_list_page, team_id, query, with_addresses)


def _list_page(
    session: Session, team_id: int, query: PageQuery, with_addresses: bool
) -> tuple[list[TeamMemberOut], int]:
    find_team(session, team_id)
    members = _members(team_id, with_addresses=with_addresses)
    total = session.scalar(members.with_only_columns(func.count(), maintain_column_froms=True).order_by(None))
    rows = session.execute(members.limit(query.limit).offset(query.offset)).mappings()
    return [TeamMemberOut(**row) for row in rows], total or 0


def _members(team_id: int, *, with_addresses: bool) -> Select[Any]:
    roster = _ROSTER if with_addresses else _NAMES
    return roster.where(TeamMember.team_id == team_id).order_by(TeamMember.joined_at, TeamMember.user_id)


def active_in(organization_id: int) -> Select[int]:
    """The ids of the unsuspended members of an organization."""
    return select(Membership.user_id).where(
        Membership.organization_id == organization_id, Membership.suspended_at.is_(None)
    )


def is_active_in(session: Session, organization_id: int, user_id: int) -> bool:
    """Whether an account is an unsuspended member of an organization."""
    query = active_in(organization_id).where(Membership.user_id == user_id)
    return session.scalar(query) is not None


def admit(unit: Unit, team: Team, user_id: int, team_role: str) -> TeamMember:
    """Add an account to a team; the caller holds the lock and writes the audit entry.

    Raises UserNotFound (no active account), AlreadyMember, OutsideOrganization.
    """
    account = unit.session.get(Account, user_id)
    if account is None or not account.is_active:
        raise UserNotFound()
    if unit.session.get(TeamMember, (team.id, user_id)) is not None:
        raise AlreadyMember("This account is already a member of the team")
    home = team.organization_id
    if home is not None and not is_active_in(unit.session, home, user_id):
        raise OutsideOrganization()
    member = TeamMember(team_id=team.id, user_id=user_id, team_role=team_role)
    unit.session.add(member)
    unit.session.flush()
    changed(unit, [user_id])
    return member


def add(unit: Unit, caller: Caller, team_id: int, body: TeamMemberCreate) -> TeamMemberOut:
    """Add an account, as a manager."""
    change, team = change_team(unit, caller, team_id)
    admit(unit, team, body.user_id, body.team_role)
    _audit(change, "team.member_added", team, body.user_id, after={"team_role": body.team_role})
    return _record(unit.session, team_id, body.user_id)


def change_role(
    unit: Unit, caller: Caller, team_id: int, user_id: int, body: TeamMemberUpdate
) -> TeamMemberOut:
    """Make a member a team_admin or an ordinary member. Raises LastTeamAdmin."""
    change, team = change_team(unit, caller, team_id)
    member = _find(unit.session, team_id, user_id)
    before, after = member.team_role, body.team_role
    if after != before:
        if before == TEAM_ADMIN:
            _keep_an_admin(change, team, user_id)
        member.team_role = after
        states: list[dict[str, Any]] = [{"team_role": before}, {"team_role": after}]
        _audit(change, "team.member_role_changed", team, user_id, before=states[0], after=states[1])
        changed(unit, [user_id])
    return _record(unit.session, team_id, user_id)


async def remove(caller: Caller, team_id: int, user_id: int) -> None:
    """Remove a member, closing pending invites to them, or leave.

    Raises Forbidden, LastTeamAdmin.
    """
    if caller.id != user_id:
        await require(caller, TEAM_MANAGE, team_id, or_admin=True)
    await caller.platform.database.write(_remove, caller, team_id, user_id)


def _remove(unit: Unit, caller: Caller, team_id: int, user_id: int) -> None:
    is_own = caller.id == user_id
    change, team = change_team(unit, caller, team_id, is_own=is_own)
    member = _find(unit.session, team_id, user_id)
    if member.team_role == TEAM_ADMIN:
        _keep_an_admin(change, team, user_id)
    if not is_own:
        shut_out(unit, Offer("", team_id=team_id), user_id)
    unit.session.delete(member)
    _audit(change, "team.member_removed", team, user_id, before={"team_role": member.team_role})
    changed(unit, [user_id])


def _find(session: Session, team_id: int, user_id: int) -> TeamMember:
    member = session.get(TeamMember, (team_id, user_id))
    if member is None:
        raise MemberNotFound("This account is not a member of the team")
    return member


def _keep_an_admin(change: Change, team: Team, leaving: int) -> None:
    """Raise LastTeamAdmin unless another team_admin remains who is active, also in the team's organization.

    Not for instance administrators.
    """
    if change.authority.is_admin:
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
    if not change.session.scalar(others):
        raise LastTeamAdmin()


def _record(session: Session, team_id: int, user_id: int) -> TeamMemberOut:
    session.flush()
    row = session.execute(_ROSTER.where(TeamMember.team_id == team_id, TeamMember.user_id == user_id))
    return TeamMemberOut(**row.mappings().one())


def _audit(
    change: Change,
    action: str,
    team: Team,
    user_id: int,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    who = {"user_id": user_id}
    before, after = before and {**who, **before}, after and {**who, **after}
    change.audit(action, "team", team.id, before, after)


def _roster(email: ColumnElement[Any]) -> Select[Any]:
    columns = (TeamMember.user_id, Account.username, email, TeamMember.team_role, TeamMember.joined_at)
    return select(*columns).join(Account, Account.id == TeamMember.user_id)


_ROSTER = _roster(Account.__table__.c.email)
_NAMES = _roster(null().label("email"))
