"""A new organization: its row, its place in the tree, its owner and its default team, all or nothing."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.authority import is_platform_admin_now, read_callers_authority
from builtin_plugins.tenancy.access.cache import changed
from builtin_plugins.tenancy.access.changes import lock
from builtin_plugins.tenancy.access.decisions import decide
from builtin_plugins.tenancy.access.standing import OWNER, TEAM_ADMIN
from builtin_plugins.tenancy.access.tree import place, read_lineage
from builtin_plugins.tenancy.errors import SlugTaken, TooDeep
from builtin_plugins.tenancy.models import Membership, Organization, Team
from builtin_plugins.tenancy.organizations.schemas import OrganizationCreate, OrganizationCreated
from builtin_plugins.tenancy.organizations.service import flush, get, state_of
from builtin_plugins.tenancy.permissions import SETTINGS_MANAGE
from builtin_plugins.tenancy.settings import TenancySettings
from builtin_plugins.tenancy.teams import service as teams
from builtin_plugins.tenancy.teams.members import admit
from builtin_plugins.tenancy.teams.schemas import name_key
from kernel.sdk import Account, Caller, Forbidden, Unit, Unprocessable, audit

_TEAM_NAME_LIMIT = 255
_NEEDS = (
    "This needs: an instance administrator, or for a sub-organization the permission "
    f"{SETTINGS_MANAGE.key} in the organization above"
)


async def create(caller: Caller, body: OrganizationCreate) -> OrganizationCreated:
    """A new organization. Raises Forbidden, SlugTaken, TooDeep, Unprocessable (owner or parent unknown)."""
    await _require(caller, body.parent_id)
    return await caller.platform.database.write(_create, caller, body)


async def _require(caller: Caller, parent_id: int | None) -> None:
    """Allow instance administrators and Platform Admins, and below an organization also its managers."""
    if caller.principal.is_admin or await is_platform_admin_now(caller):
        return
    if parent_id is not None and await decide(caller, SETTINGS_MANAGE, parent_id):
        return
    raise Forbidden(_NEEDS)


def _create(unit: Unit, caller: Caller, body: OrganizationCreate) -> OrganizationCreated:
    owner_id = body.owner_user_id or caller.id
    assert owner_id is not None  # only accounts pass `_require`
    lock(unit)
    _check_owner(unit.session, owner_id)
    _check_parent(unit.session, body.parent_id, caller.platform.settings_of(TenancySettings))
    _require_still(unit.session, caller, body.parent_id)
    organization = _insert(unit, body)
    unit.session.add(Membership(organization_id=organization.id, user_id=owner_id, org_role=OWNER))
    unit.session.flush()
    team = _default_team(unit, organization, owner_id)
    changed(unit, [owner_id])
    _audit(unit, caller, organization, owner_id, team)
    record = get(unit.session, organization.id).model_dump()
    return OrganizationCreated(**record, owner_user_id=owner_id, default_team_id=team.id)


def _audit(unit: Unit, caller: Caller, organization: Organization, owner_id: int, team: Team) -> None:
    scope: dict[str, Any] = {"origin": caller.origin, "scope_org_id": organization.id}
    state = {**state_of(organization), "parent_id": organization.parent_id}
    audit(unit, "organization.created", "organization", organization.id, after=state, **scope)
    added = {"organization_id": organization.id, "org_role": OWNER}
    audit(unit, "organization.member_added", "account", owner_id, after=added, **scope)
    audit(unit, "team.created", "team", team.id, after={"name": team.name}, **scope)


def _require_still(session: Session, caller: Caller, parent_id: int | None) -> None:
    """The same as this session sees it, to refuse callers who lost the right a moment ago."""
    if caller.principal.is_admin or parent_id is None:
        return
    if not read_callers_authority(session, caller, parent_id).holds(SETTINGS_MANAGE.key):
        raise Forbidden(_NEEDS)


def _check_owner(session: Session, owner_id: int) -> None:
    query = select(Account.id).where(Account.id == owner_id, Account.is_active)
    if session.scalar(query) is None:
        text = "there is no active account with this id"
        raise Unprocessable.field(("body", "owner_user_id"), text, owner_id)


def _check_parent(session: Session, parent_id: int | None, settings: TenancySettings) -> None:
    if parent_id is None:
        return
    lineage, most = read_lineage(session, parent_id), settings.max_tree_depth
    if not lineage:
        raise Unprocessable.field(("body", "parent_id"), "there is no organization with this id", parent_id)
    if len(lineage) + 1 > most:
        raise TooDeep(
            f"Organizations may be nested at most {most} levels deep (PLATFORM_TENANCY_MAX_TREE_DEPTH)"
        )


def _insert(unit: Unit, body: OrganizationCreate) -> Organization:
    if unit.session.scalar(select(Organization.id).where(Organization.slug == body.slug)) is not None:
        raise SlugTaken()
    organization = Organization(name=body.name, slug=body.slug, parent_id=body.parent_id)
    unit.session.add(organization)
    flush(unit)
    place(unit, organization)
    return organization


def _default_team(unit: Unit, organization: Organization, owner_id: int) -> Team:
    """The default team, named like the organization, plus its slug if another team has that name."""
    name, number = _team_name(organization.name, ""), 1
    while teams.is_taken(unit.session, name):
        suffix = f" ({organization.slug})" if number == 1 else f" ({organization.slug} {number})"
        name, number = _team_name(organization.name, suffix), number + 1
    team = teams.insert(unit, name, "", organization.id)
    admit(unit, team, owner_id, TEAM_ADMIN)
    return team


def _team_name(name: str, suffix: str) -> str:
    """The name, cut so that its key, which may be longer than the name, fits a team's limit."""
    while len(name_key(name + suffix)) > _TEAM_NAME_LIMIT:
        name = name[:-1]
    return name + suffix
