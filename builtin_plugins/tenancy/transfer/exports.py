"""Exports a team or an organization as a bundle: its members, and plugins' data about it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy import api
from builtin_plugins.tenancy.access.tree import find_organization, find_team
from builtin_plugins.tenancy.models import Membership, TeamMember
from builtin_plugins.tenancy.transfer.schemas import (
    OrganizationAbout,
    OrganizationBundle,
    OrganizationMemberRow,
    TeamAbout,
    TeamBundle,
    TeamMemberRow,
)
from kernel.sdk import Account, Caller, Platform, Unit, audit, utc_now

Sections = dict[str, list[dict[str, Any]]]


async def export_team(caller: Caller, team_id: int) -> TeamBundle:
    """The bundle of a team; audited. Raises TeamNotFound."""
    database = caller.platform.database
    bundle, organization_id = await database.snapshot(_team, caller.platform, team_id)
    await database.write(_record, caller, "team", team_id, bundle, organization_id)
    return bundle


def _team(session: Session, platform: Platform, team_id: int) -> tuple[TeamBundle, int | None]:
    team = find_team(session, team_id)
    about = TeamAbout(name=team.name, description=team.description)
    head = {"format": "platform.team", "version": 1, "exported_at": utc_now(), "team": about}
    members, sections = _team_members(session, team_id), _sections(platform, session, team_id, None)
    return TeamBundle(**head, members=members, **sections), team.organization_id


async def export_organization(caller: Caller, organization_id: int) -> OrganizationBundle:
    """The bundle of an organization; audited. Raises OrganizationNotFound."""
    database = caller.platform.database
    bundle = await database.snapshot(_organization, caller.platform, organization_id)
    await database.write(_record, caller, "organization", organization_id, bundle, organization_id)
    return bundle


def _organization(session: Session, platform: Platform, organization_id: int) -> OrganizationBundle:
    organization = find_organization(session, organization_id)
    about = OrganizationAbout(name=organization.name, slug=organization.slug)
    head = {"format": "platform.organization", "version": 1, "exported_at": utc_now(), "organization": about}
    members = _organization_members(session, organization_id)
    return OrganizationBundle(**head, members=members, **_sections(platform, session, None, organization_id))


def _team_members(session: Session, team_id: int) -> list[TeamMemberRow]:
    query = (
        select(Account.email, TeamMember.team_role)
        .join(TeamMember, TeamMember.user_id == Account.id)
        .where(TeamMember.team_id == team_id)
        .order_by(Account.email_key)
    )
    return [
        TeamMemberRow(email=email, team_role=role)  # type: ignore[arg-type]  # the table holds no other
        for email, role in session.execute(query)
    ]


def _organization_members(session: Session, organization_id: int) -> list[OrganizationMemberRow]:
    query = (
        select(Account.email, Membership.org_role, Membership.suspended_at)
        .join(Membership, Membership.user_id == Account.id)
        .where(Membership.organization_id == organization_id)
        .order_by(Account.email_key)
    )
    return [
        OrganizationMemberRow(
            email=email,
            org_role=role,  # type: ignore[arg-type]  # the table holds no other
            suspended=suspended_at is not None,
        )
        for email, role, suspended_at in session.execute(query)
    ]


def _sections(
    platform: Platform, session: Session, team_id: int | None, organization_id: int | None
) -> Sections:
    """What plugins add, in the order of the sections' names."""
    answers = platform.hooks.ask_now(
        api.export_rows,
        platform=platform,
        session=session,
        team_id=team_id,
        organization_id=organization_id,
    )
    sections: Sections = {}
    for answer in answers:
        for section, rows in answer.items():
            sections.setdefault(section, []).extend(dict(row) for row in rows)
    return dict(sorted(sections.items()))


def _record(
    unit: Unit,
    caller: Caller,
    kind: str,
    target_id: int,
    bundle: TeamBundle | OrganizationBundle,
    scope_org_id: int | None,
) -> None:
    counts = {"members": len(bundle.members)}
    counts |= {section: len(rows) for section, rows in bundle.sections.items()}
    origin = caller.origin
    audit(unit, f"{kind}.exported", kind, target_id, after=counts, origin=origin, scope_org_id=scope_org_id)
