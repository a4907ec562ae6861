"""Adds members of a bundle by e-mail address: active accounts only, once each, as plain `member`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.cache import changed
from builtin_plugins.tenancy.models import Membership, Team, TeamMember
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE
from builtin_plugins.tenancy.transfer.schemas import (
    ImportItem,
    ImportReport,
    OrganizationMemberRow,
    TeamMemberRow,
)
from kernel.sdk import Account, Unit

MEMBER = "member"
_BATCH = 500

_UNKNOWN = "there is no active account with this e-mail address"
_ALREADY_MEMBER = "is already a member; the role stays"
_OUTSIDE = "is not an active member of the organization that the team belongs to"
_SUSPENDED = "is suspended in the bundle"
_NOT_ALLOWED = f"adding members needs the permission {MEMBERS_MANAGE.key}"


@dataclass
class Joined:
    """Who joined, and the part of the report about members."""

    report: ImportReport = field(default_factory=ImportReport)
    user_ids: list[int] = field(default_factory=list)

    def enter(self, user_id: int, email: str) -> None:
        """Record that an account joined."""
        self.user_ids.append(user_id)
        self.report.created.append(ImportItem(kind=MEMBER, name=email))

    def skip(self, email: str, reason: str) -> None:
        """Record that there was nothing to do."""
        self.report.skipped.append(ImportItem(kind=MEMBER, name=email, reason=reason))

    def fail(self, email: str, reason: str) -> None:
        """Record that nothing could be done."""
        self.report.failed.append(ImportItem(kind=MEMBER, name=email, reason=reason))


def join_team(unit: Unit, team: Team, rows: Sequence[TeamMemberRow]) -> Joined:
    """Add the bundle's members to the team; only members of its organization, if it has one."""
    joined = Joined()
    accounts = _accounts(unit.session, [row.email for row in rows])
    there = _among(unit.session, select(TeamMember.user_id).where(TeamMember.team_id == team.id))
    insiders = _insiders(unit.session, team.organization_id)
    for row in rows:
        user_id = accounts.get(row.email.casefold())
        if user_id is None:
            joined.fail(row.email, _UNKNOWN)
        elif user_id in there:
            joined.skip(row.email, _ALREADY_MEMBER)
        elif insiders is not None and user_id not in insiders:
            joined.fail(row.email, _OUTSIDE)
        else:
            unit.session.add(TeamMember(team_id=team.id, user_id=user_id, team_role=MEMBER))
            joined.enter(user_id, row.email)
    unit.session.flush()
    changed(unit, joined.user_ids)
    return joined


def join_organization(
    unit: Unit, organization_id: int, rows: Sequence[OrganizationMemberRow], *, allowed: bool
) -> Joined:
    """Add the bundle's members to the organization, if the importer is `allowed` to add members."""
    joined = Joined()
    accounts = _accounts(unit.session, [row.email for row in rows] if allowed else [])
    members = select(Membership.user_id).where(Membership.organization_id == organization_id)
    there = _among(unit.session, members)
    for row in rows:
        user_id = accounts.get(row.email.casefold())
        if not allowed:
            joined.fail(row.email, _NOT_ALLOWED)
        elif row.suspended:
            joined.skip(row.email, _SUSPENDED)
        elif user_id is None:
            joined.fail(row.email, _UNKNOWN)
        elif user_id in there:
            joined.skip(row.email, _ALREADY_MEMBER)
        else:
            new = Membership(organization_id=organization_id, user_id=user_id, org_role=MEMBER)
            unit.session.add(new)
            joined.enter(user_id, row.email)
    unit.session.flush()
    changed(unit, joined.user_ids)
    return joined


def _accounts(session: Session, emails: Sequence[str]) -> Mapping[str, int]:
    """Ids of the active accounts with these addresses, by address key."""
    ids: dict[str, int] = {}
    for keys in _batches([email.casefold() for email in emails]):
        query = select(Account.email_key, Account.id).where(Account.email_key.in_(keys), Account.is_active)
        ids.update((row.email_key, row.id) for row in session.execute(query))
    return ids


def _insiders(session: Session, organization_id: int | None) -> Collection[int] | None:
    """The active members of the team's organization; None for a team without one."""
    if organization_id is None:
        return None
    active: ColumnElement[bool] = Membership.suspended_at.is_(None)
    query = select(Membership.user_id).where(Membership.organization_id == organization_id, active)
    return _among(session, query)


def _among(session: Session, query: Select[int]) -> Collection[int]:
    return set(session.scalars(query))


def _batches(items: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
