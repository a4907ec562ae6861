"""Memberships as the kernel asks for them: claims of a token, the list of users, the audit log."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, exists, select
from sqlalchemy.orm import Session

from builtin_plugins.accounts.api import AuditedTarget, OrganizationMembership
from builtin_plugins.tenancy.access.cache import standing_of
from builtin_plugins.tenancy.access.decisions import decide
from builtin_plugins.tenancy.access.standing import read_memberships
from builtin_plugins.tenancy.access.tree import descendants
from builtin_plugins.tenancy.models import Membership, Organization, Team, TeamMember
from builtin_plugins.tenancy.permissions import AUDIT_READ
from kernel.sdk import Caller, Scope

# A token must fit into a header; memberships left out of it still count, as decisions don't use the token.
_CLAIM_CHARS = 4000


def claims_of(session: Session, account_id: int, previous: Mapping[str, Any] | None) -> dict[str, Any]:
    """`teams`, `orgs`, `tenant_id` and a kept `active_tenant_id`, as of now (decisions.md, tokens)."""
    organizations, teams = read_memberships(session, account_id)
    claims: dict[str, Any] = {}
    active = (previous or {}).get("active_tenant_id")
    home = next(iter(organizations), None)
    if home is not None:
        claims["tenant_id"] = home
    if isinstance(active, int) and active in organizations:
        claims["active_tenant_id"] = active
    first = sorted(organizations, key=lambda organization_id: organization_id not in (active, home))
    orgs = [{"id": organization_id, "role": organizations[organization_id]} for organization_id in first]
    return {**claims, "orgs": _fitting(orgs), "teams": _fitting(list(teams))}


def _fitting(items: list[Any]) -> list[Any]:
    left = _CLAIM_CHARS // 2
    for place, item in enumerate(items):
        left -= len(json.dumps(item, separators=(",", ":"))) + 1
        if left < 0:
            return items[:place]
    return items


def memberships_of(session: Session, account_ids: Sequence[int]) -> dict[int, list[OrganizationMembership]]:
    """The organizations of each account, the earliest first."""
    query = (
        select(Membership.user_id, Organization.id, Organization.name, Organization.slug, Membership.org_role)
        .join(Organization, Organization.id == Membership.organization_id)
        .where(Membership.user_id.in_(account_ids))
        .order_by(Membership.joined_at, Organization.id)
    )
    memberships: dict[int, list[OrganizationMembership]] = defaultdict(list)
    for user_id, number, name, slug, role in session.execute(query):
        memberships[user_id].append(OrganizationMembership(id=number, name=name, slug=slug, role=role))
    return dict(memberships)


def places_of(
    session: Session, account_ids: Sequence[int]
) -> dict[int, tuple[frozenset[int], frozenset[int]]]:
    """Implements `find_places`: no membership counts in an organization where the account is suspended."""
    unique_ids = set(account_ids)
    homes = dict(session.execute(select(Team.id, Team.organization_id)).all())
    standing: dict[int, dict[int, bool]] = {user_id: {} for user_id in unique_ids}
    for row in session.scalars(select(Membership).where(Membership.user_id.in_(unique_ids))):
        standing[row.user_id][row.organization_id] = row.suspended_at is None
    teams: dict[int, set[int]] = {user_id: set() for user_id in unique_ids}
    for member in session.scalars(select(TeamMember).where(TeamMember.user_id.in_(unique_ids))):
        home = homes.get(member.team_id)
        if home is None or standing[member.user_id].get(home, True):
            teams[member.user_id].add(member.team_id)
    return {
        user_id: (
            frozenset(teams[user_id]),
            frozenset(place for place, counts in standing[user_id].items() if counts),
        )
        for user_id in unique_ids
    }


def name_targets(
    session: Session, scope: Scope, target_type: str, ids: Sequence[str]
) -> dict[str, AuditedTarget]:
    """The names of teams, and of organizations that the scope is in, that the audit log mentions."""
    target_ids = [int(one) for one in ids if one.isascii() and one.isdecimal()]
    if target_type == "team":
        query = select(Team.id, Team.name).where(Team.id.in_(target_ids), Team.unlisted.is_(False))
    elif target_type == "organization":
        query = select(Organization.id, Organization.name).where(Organization.id.in_(target_ids))
        if not scope.everything:
            query = query.where(Organization.id.in_(scope.organizations))
    else:
        return {}
    return {str(row[0]): AuditedTarget(row[1]) for row in session.execute(query)}


def members_query(organization_id: int) -> Select[int]:
    """The ids of the accounts of an organization, suspended ones included."""
    return select(Membership.user_id).where(Membership.organization_id == organization_id)


def team_members_query(team_id: int) -> Select[int]:
    """The ids of the accounts of a team, without those suspended in its organization."""
    suspended = exists().where(
        Membership.organization_id == Team.organization_id,
        Membership.user_id == TeamMember.user_id,
        Membership.suspended_at.is_not(None),
    )
    query = select(TeamMember.user_id).join(Team, Team.id == TeamMember.team_id)
    return query.where(TeamMember.team_id == team_id, ~suspended)


async def audited_organizations(caller: Caller, organization_id: int | None) -> list[int]:
    """Where the caller may read the audit log: in one organization and below it, or if None, everywhere."""
    if caller.id is None:
        return []
    if organization_id is not None:
        places = [organization_id] if await decide(caller, AUDIT_READ, organization_id) else []
    else:
        places = (await standing_of(caller.platform, caller.id)).places_of(AUDIT_READ.key)
    return await caller.platform.database.read(_with_those_below, places)


def _with_those_below(session: Session, places: Sequence[int]) -> list[int]:
    reachable = set(places)
    for place in places:
        reachable.update(descendants(session, place))
    return sorted(reachable)
