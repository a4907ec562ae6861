"""Which roles contain a key, and who may assign them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Select, and_, case, exists, or_, select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.authority import Authority
from builtin_plugins.tenancy.access.standing import OWNER, Standing, keys_of_builtin, read_standing, unexpired
from builtin_plugins.tenancy.models import (
    GroupPermission,
    Membership,
    Role,
    RoleAssignment,
    RoleGroup,
    RolePermission,
)
from builtin_plugins.tenancy.permissions import ROLES_MANAGE
from builtin_plugins.tenancy.roles.nesting import reach
from builtin_plugins.tenancy.roles.schemas import Assigner
from kernel.sdk import Account

MAX_ASSIGNERS = 20


def roles_holding(key: str, lineage: Collection[int]) -> Select[int]:
    """The ids of custom roles usable in a lineage that contain a key, directly or through a group."""
    own = select(RolePermission.role_id).where(RolePermission.permission_key == key)
    holding = select(GroupPermission.group_id).where(GroupPermission.permission_key == key)
    grouped = select(RoleGroup.role_id).where(RoleGroup.group_id.in_(reach(holding, down=False)))
    return select(Role.id).where(
        Role.organization_id.in_(lineage), or_(Role.id.in_(own), Role.id.in_(grouped))
    )


class Assigners:
    """The managers of roles here whom the caller may see, the nearest first."""

    def __init__(
        self, session: Session, authority: Authority, by_user: Mapping[int, tuple[Assigner, str]]
    ) -> None:
        self._session = session
        self._authority = authority
        self._by_user = by_user
        self._standings: dict[int, Standing] = {}

    def who_hold(self, keys: Collection[str]) -> list[Assigner]:
        """Those who hold all these keys here and below, and so may grant them."""
        return [
            assigner
            for assigner, org_role in self._by_user.values()
            if self._holds(assigner.user_id, org_role, keys)
        ]

    def _holds(self, user_id: int, org_role: str, keys: Collection[str]) -> bool:
        authority = self._authority
        # Most are owners, who hold everything, so roles are only read for others.
        if org_role == OWNER and set(keys) <= set(keys_of_builtin(authority.permissions, OWNER)):
            return True
        if user_id not in self._standings:
            self._standings[user_id] = read_standing(self._session, user_id, authority.permissions)
        return all(self._standings[user_id].holds_below(key, authority.lineage) for key in keys)


def find_assigners(session: Session, authority: Authority) -> Assigners:
    """The active accounts that hold `org.roles.manage` in organizations that the caller sees."""
    assigners: dict[int, tuple[Assigner, str]] = {}
    for user_id, username, organization_id, org_role in session.execute(_managers(session, authority)):
        assigner = Assigner(user_id=user_id, username=username, organization_id=organization_id)
        assigners.setdefault(user_id, (assigner, org_role))
    return Assigners(session, authority, assigners)


def _managers(session: Session, authority: Authority) -> Select[int, str, int, str]:
    key = ROLES_MANAGE.key
    assigned = exists().where(
        RoleAssignment.organization_id == Membership.organization_id,
        RoleAssignment.user_id == Membership.user_id,
        RoleAssignment.role_id.in_(roles_holding(key, authority.lineage)),
        unexpired(session),
    )
    distance = {place: number for number, place in enumerate(authority.lineage)}
    return (
        select(Account.id, Account.username, Membership.organization_id, Membership.org_role)
        .join(Membership, and_(Membership.user_id == Account.id, Membership.suspended_at.is_(None)))
        .where(
            Account.is_active,
            Membership.organization_id.in_(authority.visible_places),
            or_(Membership.org_role.in_(authority.permissions[key].org_roles), assigned),
        )
        .order_by(case(distance, value=Membership.organization_id), Account.id)
        .limit(MAX_ASSIGNERS)
    )
