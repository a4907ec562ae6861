"""Teams: make, find, change, delete. Rows shared with a deleted team are their owners' alone.

Nothing has to be told to whoever shared something with a team that is deleted: its id is never used again, so
`team` visibility with that id matches nobody but the owner, from the commit on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, func, select, true
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import NotAMember, TeamNameTaken
from builtin_plugins.tenancy.models import OrganizationAncestor, Team, TeamMember
from builtin_plugins.tenancy.schemas_teams import (
    TeamCreate,
    TeamDetails,
    TeamOut,
    TeamQuery,
    TeamUpdate,
    name_key,
)
from builtin_plugins.tenancy.services.access import TEAM_ADMIN, is_platform_admin
from builtin_plugins.tenancy.services.memberships import LOCK
from builtin_plugins.tenancy.services.standing import changed, standing_of
from builtin_plugins.tenancy.services.team_authority import find_team, team_change
from builtin_plugins.tenancy.services.team_members import admit, is_active_in, members_of
from kernel.sdk import Forbidden, Platform, Principal, Unit, audit


async def create(
    platform: Platform, principal: Principal, wanted: TeamCreate, origin: dict[str, Any]
) -> TeamOut:
    """A new team, with the caller as its team_admin. Raises TeamNameTaken, NotAMember."""
    if principal.id is None:
        raise Forbidden("Only an account can make a team, as it becomes the team's administrator")
    async with platform.database.unit() as unit:
        await unit.lock(LOCK)
        home = wanted.organization_id
        if home is not None and not await is_active_in(unit.session, home, principal.id):
            raise NotAMember()
        team = await insert(unit, wanted.name, wanted.description, home)
        await admit(unit, team, principal.id, TEAM_ADMIN)
        audit(
            unit,
            "team.created",
            "team",
            team.id,
            after=_state(team),
            origin=origin,
            scope_org_id=team.organization_id,
        )
    return _render(team, 1)


async def insert(unit: Unit, name: str, description: str, organization_id: int | None) -> Team:
    """A new row, without members; the caller holds the lock. Raises TeamNameTaken."""
    team = Team(name=name, name_key=name_key(name), description=description, organization_id=organization_id)
    unit.session.add(team)
    await _flush(unit)
    return team


async def is_taken(session: AsyncSession, name: str) -> bool:
    """Whether a team has this name, in whatever case."""
    return await session.scalar(select(Team.id).where(Team.name_key == name_key(name))) is not None


async def list_page(platform: Platform, principal: Principal, query: TeamQuery) -> tuple[list[TeamOut], int]:
    """The teams of the instance, oldest first, and how many there are."""
    wanted = _wanted(principal, query)
    counted = select(Team, _member_count()).where(wanted).order_by(Team.id)
    async with platform.database.read() as session:
        total = await session.scalar(select(func.count()).select_from(Team).where(wanted))
        rows = (await session.execute(counted.limit(query.limit).offset(query.offset))).all()
    known = await _known_homes(platform, principal, [team for team, _ in rows])
    return [_render(team, count, known) for team, count in rows], int(total or 0)


async def get(platform: Platform, principal: Principal, team_id: int) -> TeamDetails:
    """One team with its members. Raises TeamNotFound."""
    async with platform.database.read() as session:
        team = await find_team(session, team_id)
        members = await members_of(session, team_id)
    known = await _known_homes(platform, principal, [team])
    shown = _render(team, len(members), known)
    return TeamDetails(**shown.model_dump(), members=members)


async def update(
    platform: Platform, principal: Principal, team_id: int, change: TeamUpdate, origin: dict[str, Any]
) -> TeamOut:
    """Change name or description. Raises TeamNotFound, TeamNameTaken."""
    async with team_change(platform, principal, team_id) as (unit, team):
        before = _state(team)
        if change.name is not None:
            team.name, team.name_key = change.name, name_key(change.name)
        if change.description is not None:
            team.description = change.description
        await _flush(unit)
        count = await unit.session.scalar(select(_member_count()).where(Team.id == team_id))
        if _state(team) != before:
            audit(
                unit,
                "team.updated",
                "team",
                team_id,
                before=before,
                after=_state(team),
                origin=origin,
                scope_org_id=team.organization_id,
            )
    return _render(team, int(count or 0), await _known_homes(platform, principal, [team]))


async def remove(platform: Platform, principal: Principal, team_id: int, origin: dict[str, Any]) -> None:
    """Delete a team with its memberships and invites. Raises TeamNotFound."""
    async with team_change(platform, principal, team_id) as (unit, team):
        members = select(TeamMember.user_id).where(TeamMember.team_id == team_id).order_by(TeamMember.user_id)
        member_ids = list(await unit.session.scalars(members))
        await changed(unit, member_ids)
        await unit.session.delete(team)
        audit(
            unit,
            "team.deleted",
            "team",
            team_id,
            before={**_state(team), "member_ids": member_ids},
            origin=origin,
            scope_org_id=team.organization_id,
        )


async def _flush(unit: Unit) -> None:
    try:
        await unit.session.flush()
    except IntegrityError:
        raise TeamNameTaken() from None


def _wanted(principal: Principal, query: TeamQuery) -> ColumnElement[bool]:
    wanted: ColumnElement[bool] = true()
    if query.q:
        wanted &= Team.name_key.contains(name_key(query.q), autoescape=True)
    if query.mine:
        own = select(TeamMember.team_id).where(TeamMember.user_id == principal.id)
        wanted &= Team.id.in_(own)
    return wanted


def _member_count() -> ScalarSelect[int]:
    return (
        select(func.count())
        .select_from(TeamMember)
        .where(TeamMember.team_id == Team.id)
        .correlate(Team)
        .scalar_subquery()
    )


async def _known_homes(platform: Platform, principal: Principal, teams: Sequence[Team]) -> Collection[int]:
    """Those of the teams' organizations that the caller may know of: its own, and those below them."""
    homes = {team.organization_id for team in teams if team.organization_id is not None}
    if not homes or principal.is_admin or principal.is_service:
        return homes
    if principal.id is None or await is_platform_admin(platform, principal):
        return homes
    own = (await standing_of(platform, principal.id)).organizations
    below = select(OrganizationAncestor.organization_id).where(
        OrganizationAncestor.organization_id.in_(homes), OrganizationAncestor.ancestor_id.in_(own)
    )
    async with platform.database.read() as session:
        return set(await session.scalars(below))


def _state(team: Team) -> dict[str, Any]:
    return {"name": team.name, "description": team.description}


def _render(team: Team, member_count: int, known: Collection[int] | None = None) -> TeamOut:
    """The record; with `known` the organization is shown only if it is one of these."""
    home = team.organization_id
    return TeamOut(
        id=team.id,
        name=team.name,
        description=team.description,
        organization_id=home if known is None or home in known else None,
        created_at=team.created_at,
        member_count=member_count,
    )
