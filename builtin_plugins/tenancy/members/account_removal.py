"""What happens to an account's memberships when the account is deleted."""

from __future__ import annotations

from sqlalchemy import delete, exists, or_, select
from sqlalchemy.orm import Session, aliased

from builtin_plugins.tenancy.access.cache import changed
from builtin_plugins.tenancy.access.changes import lock
from builtin_plugins.tenancy.access.standing import TEAM_ADMIN
from builtin_plugins.tenancy.errors import LastTeamAdmin
from builtin_plugins.tenancy.models import Invite, InviteUse, Membership, RoleAssignment, Team, TeamMember
from kernel.sdk import Account, Unit


def keep_admins_of_all(session: Session, user_id: int) -> None:
    """Raise LastTeamAdmin, naming the teams, if deleting the account leaves teams without a team_admin.

    The caller holds the lock.
    """
    other = aliased(TeamMember)
    active_there = exists().where(
        Membership.organization_id == Team.organization_id,
        Membership.user_id == other.user_id,
        Membership.suspended_at.is_(None),
    )
    somebody_else = exists().where(
        other.team_id == Team.id,
        other.user_id != user_id,
        other.team_role == TEAM_ADMIN,
        other.user_id == Account.id,
        Account.is_active,
        or_(Team.organization_id.is_(None), active_there),
    )
    query = (
        select(Team.name)
        .join(TeamMember, TeamMember.team_id == Team.id)
        .where(TeamMember.user_id == user_id, TeamMember.team_role == TEAM_ADMIN, ~somebody_else)
        .order_by(Team.id)
    )
    names = ", ".join(f"'{name}'" for name in session.scalars(query))
    if names:
        raise LastTeamAdmin(
            f"This account is the last active team_admin of {names};"
            " make another member team_admin first, or delete the team"
        )


def forget_invites(unit: Unit, email_key: str) -> None:
    """Delete the invites to the address of a deleted account."""
    unit.session.execute(delete(Invite).where(Invite.email_key == email_key))


def end_all(unit: Unit, user_id: int) -> None:
    """End all memberships of a deleted account, with its roles."""
    lock(unit)
    for table in (RoleAssignment, TeamMember, Membership, InviteUse):
        unit.session.execute(delete(table).where(table.user_id == user_id))
    changed(unit, [user_id])
