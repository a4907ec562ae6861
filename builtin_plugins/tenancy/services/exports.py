"""A team or an organization as a bundle: who belongs to it, and what plugins keep for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.models import Membership, TeamMember
from builtin_plugins.tenancy.schemas_transfer import (
    OrganizationAbout,
    OrganizationBundle,
    OrganizationMemberRow,
    TeamAbout,
    TeamBundle,
    TeamMemberRow,
)
from builtin_plugins.tenancy.services.team_authority import find_team
from builtin_plugins.tenancy.services.tree import find_organization
from kernel.sdk import Account, Platform, audit, utc_now

Sections = dict[str, list[dict[str, Any]]]


async def export_team(platform: Platform, team_id: int, origin: dict[str, Any]) -> TeamBundle:
    """The bundle of a team; audited. Raises TeamNotFound."""
    async with platform.database.snapshot() as session:
        team = await find_team(session, team_id)
        members = await _team_members(session, team_id)
        sections = await _sections(platform, session, team_id, None)
    counts = _counts(members, sections)
    await _record(platform, "team", team_id, counts, origin, scope_org_id=team.organization_id)
    about = TeamAbout(name=team.name, description=team.description)
    head = {"format": "platform.team", "version": 1, "exported_at": utc_now(), "team": about}
    return TeamBundle(**head, members=members, **sections)


async def export_organization(
    platform: Platform, organization_id: int, origin: dict[str, Any]
) -> OrganizationBundle:
    """The bundle of an organization; audited. Raises OrganizationNotFound."""
    async with platform.database.snapshot() as session:
        found = await find_organization(session, organization_id)
        members = await _organization_members(session, organization_id)
        sections = await _sections(platform, session, None, organization_id)
    counts = _counts(members, sections)
    await _record(platform, "organization", organization_id, counts, origin, scope_org_id=organization_id)
    about = OrganizationAbout(name=found.name, slug=found.slug)
    head = {"format": "platform.organization", "version": 1, "exported_at": utc_now(), "organization": about}
    return OrganizationBundle(**head, members=members, **sections)


async def _team_members(session: AsyncSession, team_id: int) -> list[TeamMemberRow]:
    query = (
        select(Account.email, TeamMember.team_role)
        .join(TeamMember, TeamMember.user_id == Account.id)
        .where(TeamMember.team_id == team_id)
        .order_by(Account.email_key)
    )
    return [
        TeamMemberRow(email=email, team_role=role)  # type: ignore[arg-type]  # the table holds no other
        for email, role in await session.execute(query)
    ]


async def _organization_members(session: AsyncSession, organization_id: int) -> list[OrganizationMemberRow]:
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
        for email, role, suspended_at in await session.execute(query)
    ]


async def _sections(
    platform: Platform, session: AsyncSession, team_id: int | None, organization_id: int | None
) -> Sections:
    """What plugins add, in the order of the sections' names."""
    answers = await platform.hooks.ask_all(
        "export_rows",
        platform=platform,
        session=session,
        team_id=team_id,
        organization_id=organization_id,
    )
    found: Sections = {}
    for answer in answers:
        for section, rows in answer.items():
            found.setdefault(section, []).extend(dict(row) for row in rows)
    return dict(sorted(found.items()))


def _counts(members: Sequence[object], sections: Sections) -> dict[str, int]:
    return {"members": len(members), **{section: len(rows) for section, rows in sections.items()}}


async def _record(
    platform: Platform,
    kind: str,
    target_id: int,
    counts: dict[str, int],
    origin: dict[str, Any],
    *,
    scope_org_id: int | None,
) -> None:
    async with platform.database.unit() as unit:
        audit(
            unit,
            f"{kind}.exported",
            kind,
            target_id,
            after=counts,
            origin=origin,
            scope_org_id=scope_org_id,
        )
