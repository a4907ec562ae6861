"""Who looks at the roles of a member, and what of it that one may see."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import MemberNotFound
from builtin_plugins.tenancy.models import Membership
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, ORG_VIEW, ROLES_MANAGE
from builtin_plugins.tenancy.services.access import is_platform_admin
from builtin_plugins.tenancy.services.role_changes import read_lineage
from builtin_plugins.tenancy.services.standing import Standing, read_standing
from kernel.sdk import Forbidden, Permission, Platform, Principal


@dataclass(frozen=True)
class Viewer:
    """A caller at an organization, in one state of the database. `standing` None: a Platform Admin."""

    session: AsyncSession
    permissions: Mapping[str, Permission]
    user_id: int | None
    lineage: Sequence[int]
    standing: Standing | None

    @property
    def organization_id(self) -> int:
        """Where the caller looks."""
        return self.lineage[0]

    @property
    def places(self) -> Sequence[int]:
        """The organizations of the lineage into which the caller may look."""
        standing = self.standing
        if standing is None:
            return self.lineage
        return [
            place
            for number, place in enumerate(self.lineage, 1)
            if standing.holds(ORG_VIEW.key, place, self.lineage[number:])
        ]

    def holds(self, key: str) -> bool:
        """Whether the caller holds a key here."""
        return self.standing is None or self.standing.holds(key, self.lineage[0], self.lineage[1:])

    def hands_on(self, key: str) -> bool:
        """Whether the caller may put a key into a role here: it counts here and below."""
        return self.standing is None or self.standing.commands(key, self.lineage)

    async def insist_on_member(self, user_id: int, places: Sequence[int]) -> None:
        """Raise Forbidden unless it is the caller or one whom the caller manages.

        MemberNotFound for one who is in none of these organizations, known to the platform or not.
        """
        if user_id == self.user_id:
            return
        if not (self.holds(MEMBERS_MANAGE.key) or self.holds(ROLES_MANAGE.key)):
            raise Forbidden(
                f"The roles of others are for those who hold {MEMBERS_MANAGE.key} or {ROLES_MANAGE.key} here"
            )
        member = select(Membership.user_id).where(
            Membership.user_id == user_id, Membership.organization_id.in_(places)
        )
        if await self.session.scalar(member.limit(1)) is None:
            raise MemberNotFound()


@asynccontextmanager
async def viewing(platform: Platform, principal: Principal, organization_id: int) -> AsyncIterator[Viewer]:
    """The caller, looking at an organization. Raises OrganizationNotFound."""
    everything = await is_platform_admin(platform, principal)
    async with platform.database.snapshot() as session:
        lineage = await read_lineage(session, organization_id)
        permissions = platform.permissions
        standing = None if everything else await read_standing(session, principal.id or 0, permissions)
        yield Viewer(session, permissions, principal.id, lineage, standing)
