"""Which roles hold a key, and who may give them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Select, and_, case, exists, or_, select

from builtin_plugins.tenancy.models import (
    GroupPermission,
    Membership,
    Role,
    RoleAssignment,
    RoleGroup,
    RolePermission,
)
from builtin_plugins.tenancy.permissions import ROLES_MANAGE
from builtin_plugins.tenancy.schemas_roles import Assigner
from builtin_plugins.tenancy.services.nesting import reach
from builtin_plugins.tenancy.services.standing import Standing, read_standing
from builtin_plugins.tenancy.services.viewing import Viewer
from kernel.sdk import Account, utc_now

MAX_ASSIGNERS = 20


def roles_holding(key: str, lineage: Collection[int]) -> Select[int]:
    """The ids of the custom roles usable in a lineage that hold a key, themselves or by a group."""
    own = select(RolePermission.role_id).where(RolePermission.permission_key == key)
    holding = select(GroupPermission.group_id).where(GroupPermission.permission_key == key)
    grouped = select(RoleGroup.role_id).where(RoleGroup.group_id.in_(reach(holding, down=False)))
    return select(Role.id).where(
        Role.organization_id.in_(lineage), or_(Role.id.in_(own), Role.id.in_(grouped))
    )


@dataclass(frozen=True)
class Assigners:
    """Those whom the viewer may see that manage roles here, the nearest first."""

    viewer: Viewer
    found: Sequence[tuple[Assigner, Standing]]

    def who_hold(self, keys: Collection[str]) -> list[Assigner]:
        """Those who hold all these keys here."""
        here, above = self.viewer.organization_id, self.viewer.lineage[1:]
        return [one for one, standing in self.found if standing.holds_all(keys, here, above)]


async def find_assigners(viewer: Viewer) -> Assigners:
    """The active accounts that hold `org.roles.manage` in the places that the viewer sees."""
    found: dict[int, tuple[Assigner, Standing]] = {}
    for user_id, username, organization_id in (await viewer.session.execute(_managers(viewer))).all():
        if user_id not in found:
            standing = await read_standing(viewer.session, user_id, viewer.permissions)
            shown = Assigner(user_id=user_id, username=username, organization_id=organization_id)
            found[user_id] = (shown, standing)
    return Assigners(viewer, list(found.values()))


def _managers(viewer: Viewer) -> Select[int, str, int]:
    key = ROLES_MANAGE.key
    assigned = exists().where(
        RoleAssignment.organization_id == Membership.organization_id,
        RoleAssignment.user_id == Membership.user_id,
        RoleAssignment.role_id.in_(roles_holding(key, viewer.lineage)),
        or_(RoleAssignment.expires_at.is_(None), RoleAssignment.expires_at > utc_now()),
    )
    distance = {place: number for number, place in enumerate(viewer.lineage)}
    return (
        select(Account.id, Account.username, Membership.organization_id)
        .join(Membership, and_(Membership.user_id == Account.id, Membership.suspended_at.is_(None)))
        .where(
            Account.is_active,
            Membership.organization_id.in_(viewer.places),
            or_(Membership.org_role.in_(viewer.permissions[key].org_roles), assigned),
        )
        .order_by(case(distance, value=Membership.organization_id), Account.id)
        .limit(MAX_ASSIGNERS)
    )
