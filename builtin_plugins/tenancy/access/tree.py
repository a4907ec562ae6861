"""The tree of organizations: what is above and below one, and which teams belong to it.

A position in the tree never changes, and ids are never reused.
"""

from __future__ import annotations

from sqlalchemy import Integer, bindparam, literal, select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.errors import OrganizationNotFound, TeamNotFound
from builtin_plugins.tenancy.models import Organization, OrganizationAncestor, Team
from kernel.sdk import Unit

_ID = bindparam("id", type_=Integer)


def find_organization(session: Session, organization_id: int) -> Organization:
    """One organization. Raises OrganizationNotFound."""
    organization = session.get(Organization, organization_id)
    if organization is None:
        raise OrganizationNotFound()
    return organization


def find_team(session: Session, team_id: int) -> Team:
    """One team. Raises TeamNotFound, also for one that is unlisted: nobody manages it."""
    team = session.get(Team, team_id)
    if team is None or team.unlisted:
        raise TeamNotFound()
    return team


def read_lineage(session: Session, organization_id: int) -> tuple[int, ...]:
    """An organization, then those above it, nearest first; empty for an unknown one."""
    return tuple(session.scalars(_LINEAGE, {"id": organization_id}))


def require_lineage(session: Session, organization_id: int) -> tuple[int, ...]:
    """The same. Raises OrganizationNotFound."""
    lineage = read_lineage(session, organization_id)
    if not lineage:
        raise OrganizationNotFound()
    return lineage


def read_home(session: Session, team_id: int) -> tuple[int, ...]:
    """The organization of a team, then those above it; empty if it has none or there is no such team.

    One statement, so that the time taken doesn't tell the three cases apart.
    """
    return tuple(session.scalars(_HOME, {"id": team_id}))


def descendants(session: Session, organization_id: int) -> tuple[int, ...]:
    """The organizations below one, nearest first; without itself."""
    return tuple(session.scalars(_BELOW, {"id": organization_id}))


def place(unit: Unit, organization: Organization) -> None:
    """Add a new, already flushed organization to the tree, below its parent."""
    itself = OrganizationAncestor(organization_id=organization.id, ancestor_id=organization.id, distance=0)
    unit.session.add(itself)
    if organization.parent_id is not None:
        above = select(
            literal(organization.id), OrganizationAncestor.ancestor_id, OrganizationAncestor.distance + 1
        ).where(OrganizationAncestor.organization_id == organization.parent_id)
        columns = ["organization_id", "ancestor_id", "distance"]
        unit.session.execute(OrganizationAncestor.__table__.insert().from_select(columns, above))


_LINEAGE = (
    select(OrganizationAncestor.ancestor_id)
    .where(OrganizationAncestor.organization_id == _ID)
    .order_by(OrganizationAncestor.distance)
)

_HOME = (
    select(OrganizationAncestor.ancestor_id)
    .join(Team, OrganizationAncestor.organization_id == Team.organization_id)
    .where(Team.id == _ID)
    .order_by(OrganizationAncestor.distance)
)

_BELOW = (
    select(OrganizationAncestor.organization_id)
    .where(OrganizationAncestor.ancestor_id == _ID, OrganizationAncestor.distance > 0)
    .order_by(OrganizationAncestor.distance, OrganizationAncestor.organization_id)
)
