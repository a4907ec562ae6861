"""Create, find, change and delete teams. Names are unique in the instance, regardless of case."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Integer, bindparam, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.authority import is_platform_admin_now
from builtin_plugins.tenancy.access.cache import changed, standing_of
from builtin_plugins.tenancy.access.changes import change_team, lock
from builtin_plugins.tenancy.access.standing import TEAM_ADMIN
from builtin_plugins.tenancy.errors import NotAMember, TeamNameTaken, TeamNotFound
from builtin_plugins.tenancy.models import OrganizationAncestor, Team, TeamMember
from builtin_plugins.tenancy.teams.members import admit, is_active_in, members_of, sees_addresses
from builtin_plugins.tenancy.teams.schemas import (
    TeamCreate,
    TeamDetails,
    TeamOut,
    TeamQuery,
    TeamUpdate,
    name_key,
)
from kernel.sdk import Caller, Forbidden, Prepared, Unit, audit
from kernel.sdk.storage import page_of, read_page

Own = Collection[int] | None


def create(unit: Unit, caller: Caller, body: TeamCreate) -> TeamOut:
    """Create a team, with the caller as its team_admin. Raises TeamNameTaken, NotAMember."""
    if caller.id is None:
        raise Forbidden("Only an account can create a team, because it becomes the team's administrator")
    lock(unit)
    home = body.organization_id
    if home is not None and not is_active_in(unit.session, home, caller.id):
        raise NotAMember()
    team = insert(unit, body.name, body.description, home)
    admit(unit, team, caller.id, TEAM_ADMIN)
    state = _state(team)
    audit(unit, "team.created", "team", team.id, after=state, origin=caller.origin, scope_org_id=home)
    return _read(unit.session, team.id, None)


def insert(unit: Unit, name: str, description: str, organization_id: int | None) -> Team:
    """Insert a team without members; the caller holds the lock. Raises TeamNameTaken."""
    team = Team(name=name, name_key=name_key(name), description=description, organization_id=organization_id)
    unit.session.add(team)
    _flush(unit)
    return team


def is_taken(session: Session, name: str) -> bool:
    """Whether a team has this name, regardless of case."""
    return session.scalar(select(Team.id).where(Team.name_key == name_key(name))) is not None


async def list_page(caller: Caller, query: TeamQuery) -> tuple[list[TeamOut], int]:
    """The teams of the instance, oldest first, and how many there are."""
    own = await own_organizations(caller)
    key = name_key(query.q) if query.q else ""
    member = (caller.id or _NOBODY) if query.mine else None
    values = {"pattern": f"%{_escaped(key)}%", "member": member, "limit": query.limit, "offset": query.offset}
    rows, total = await caller.platform.database.read(read_page, _PAGE, values)
    if own is None or all(row["organization_id"] is None for row in rows):
        return [TeamOut(**row) for row in rows], total
    return await caller.platform.database.read(_team_outs, rows, own), total


async def get(caller: Caller, team_id: int) -> TeamDetails:
    """One team with its members. Raises TeamNotFound, also for an unlisted one whose members the caller may
    not see.
    """
    own = await own_organizations(caller)
    with_addresses = await sees_addresses(caller, team_id)
    return await caller.platform.database.read(_details, team_id, own, with_addresses)


def _details(session: Session, team_id: int, own: Own, with_addresses: bool) -> TeamDetails:
    record = _read(session, team_id, own)
    unlisted = session.get_one(Team, team_id).unlisted
    if unlisted and not with_addresses:
        raise TeamNotFound()
    members = members_of(session, team_id, with_addresses=with_addresses)
    return TeamDetails(**record.model_dump(), members=members, unlisted=unlisted)


def update(unit: Unit, caller: Caller, team_id: int, body: TeamUpdate, own: Own) -> TeamOut:
    """Change name or description. Raises TeamNotFound, TeamNameTaken.

    `own` are the caller's organizations, as `own_organizations` returns them.
    """
    change, team = change_team(unit, caller, team_id)
    before = _state(team)
    if body.name is not None:
        team.name, team.name_key = body.name, name_key(body.name)
    if body.description is not None:
        team.description = body.description
    _flush(unit)
    if _state(team) != before:
        change.audit("team.updated", "team", team_id, before, _state(team))
    return _read(unit.session, team_id, own)


def remove(unit: Unit, caller: Caller, team_id: int) -> None:
    """Delete a team with its memberships and invites. Raises TeamNotFound."""
    change, team = change_team(unit, caller, team_id)
    members = select(TeamMember.user_id).where(TeamMember.team_id == team_id).order_by(TeamMember.user_id)
    member_ids = list(unit.session.scalars(members))
    changed(unit, member_ids)
    unit.session.delete(team)
    change.audit("team.deleted", "team", team_id, {**_state(team), "member_ids": member_ids})


async def own_organizations(caller: Caller) -> Own:
    """The organizations whose teams the caller may know; None if it may know those of all."""
    principal = caller.principal
    if principal.id is None or principal.is_admin or await is_platform_admin_now(caller):
        return None
    return list((await standing_of(caller.platform, principal.id)).organizations)


def _flush(unit: Unit) -> None:
    try:
        unit.session.flush()
    except IntegrityError:
        raise TeamNameTaken() from None


def _escaped(key: str) -> str:
    """Escaped for LIKE, so that it matches literally."""
    for special in (_ESCAPE, "%", "_"):
        key = key.replace(special, _ESCAPE + special)
    return key


def _read(session: Session, team_id: int, own: Own) -> TeamOut:
    """The record of one team. Raises TeamNotFound."""
    row = session.execute(_RECORDS.where(_TEAM.id == team_id)).mappings().first()
    if row is None:
        raise TeamNotFound()
    return _team_outs(session, [dict(row)], own)[0]


def _team_outs(session: Session, records: list[dict[str, Any]], own: Own) -> list[TeamOut]:
    """The records, naming only organizations that the caller may know of."""
    if own is not None:
        visible_homes = _known_homes(session, {record["organization_id"] for record in records} - {None}, own)
        for record in records:
            record["organization_id"] = (
                record["organization_id"] if record["organization_id"] in visible_homes else None
            )
    return [TeamOut(**record) for record in records]


def _known_homes(session: Session, homes: Iterable[int], own: Collection[int]) -> Collection[int]:
    """Those of these organizations that are the caller's own or below them."""
    if not homes:
        return ()
    below = select(OrganizationAncestor.organization_id).where(
        OrganizationAncestor.organization_id.in_(homes), OrganizationAncestor.ancestor_id.in_(own)
    )
    return set(session.scalars(below))


def _state(team: Team) -> dict[str, Any]:
    return {"name": team.name, "description": team.description}


_ESCAPE = "/"
_NOBODY = 0  # no account has this id

# Selects columns, which are cheaper to load than mapped objects.
_TEAM: Any = Team.__table__.c
_MEMBER: Any = TeamMember.__table__.c
_MEMBER_COUNT = select(func.count()).where(_MEMBER.team_id == _TEAM.id).scalar_subquery()
_RECORDS = select(
    _TEAM.id,
    _TEAM.name,
    _TEAM.description,
    _TEAM.organization_id,
    _TEAM.created_at,
    _MEMBER_COUNT.label("member_count"),
)


def _listed() -> Prepared:
    """The teams whose key matches `pattern`; only those of `member` if given."""
    member = bindparam("member", type_=Integer())
    own = select(_MEMBER.team_id).where(_MEMBER.user_id == member)
    named = _TEAM.name_key.like(bindparam("pattern"), escape=_ESCAPE) & _TEAM.unlisted.is_(False)
    return page_of(_RECORDS.where(named, or_(member.is_(None), _TEAM.id.in_(own))), "id")


_PAGE = _listed()
