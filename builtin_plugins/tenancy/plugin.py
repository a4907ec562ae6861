"""Tenancy: organizations, teams, invites, roles and permissions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Select

from builtin_plugins.tenancy import hookspecs
from builtin_plugins.tenancy.handlers import (
    assignments,
    groups,
    invites,
    members,
    organizations,
    roles,
    teams,
    transfer,
)
from builtin_plugins.tenancy.models import Base
from builtin_plugins.tenancy.permissions import ORG_LIST, PERMISSIONS
from builtin_plugins.tenancy.services import access as decisions
from builtin_plugins.tenancy.services import memberships
from builtin_plugins.tenancy.services.standing import STANDINGS, Standings, open_standings, standing_of
from builtin_plugins.tenancy.services.tree import LINEAGES, open_lineages
from builtin_plugins.tenancy.settings import TenancySettings
from kernel.sdk import (
    Access,
    Account,
    Context,
    Decision,
    Permission,
    Platform,
    Plugin,
    Principal,
    Resource,
    RouteTable,
    Scope,
    Settings,
    Tables,
    Unit,
    hookimpl,
)


class TenancyPlugin(Plugin):
    """Who belongs together, and who may do what there."""

    name = "tenancy"
    version = "0.1.0"
    description = "Organizations, teams, invites, roles and permissions"
    author = "Platform"

    def __init__(self) -> None:
        self._platform: Platform | None = None

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [hookspecs]

    @hookimpl
    def register_settings(self) -> type[Settings]:
        return TenancySettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_permissions(self) -> Sequence[Permission]:
        return PERMISSIONS

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [
            organizations.routes,
            members.routes,
            teams.routes,
            invites.routes,
            transfer.routes,
            roles.routes,
            groups.routes,
            assignments.routes,
        ]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [Resource(LINEAGES, open_lineages), Resource(STANDINGS, self._open)]

    @asynccontextmanager
    async def _open(self, platform: Platform) -> AsyncIterator[Standings]:
        async with open_standings(platform) as standings:
            self._platform = platform
            yield standings
        self._platform = None

    @hookimpl
    def decide_access(
        self, ctx: Context, principal: Principal, access: Access, params: dict[str, Any]
    ) -> Awaitable[Decision | None] | None:
        """Keys of an organization or a team; anything else is not for tenancy to say."""
        if access.permission == ORG_LIST.key:
            return decisions.answer_platform_admin(ctx.platform, principal)
        if access.within is None:
            return None
        return decisions.answer(ctx.platform, principal, access, params)

    @hookimpl
    async def find_scope(self, principal: Principal) -> Scope | None:
        if self._platform is None or principal.id is None:
            return None
        standing = await standing_of(self._platform, principal.id)
        return Scope(principal.id, tuple(standing.teams), tuple(standing.organizations))

    @hookimpl
    async def token_claims(
        self, unit: Unit, account: Account, previous: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        return await memberships.claims_of(unit, account, previous)

    @hookimpl
    async def find_memberships(
        self, account_ids: Sequence[int]
    ) -> Mapping[int, Sequence[Mapping[str, Any]]] | None:
        if self._platform is None:
            return None
        async with self._platform.database.read() as session:
            return await memberships.memberships_of(session, account_ids)

    @hookimpl
    def select_members(self, organization_id: int) -> Select[int]:
        return memberships.members_query(organization_id)

    @hookimpl
    async def find_audited_organizations(
        self, principal: Principal, organization_id: int | None
    ) -> Sequence[int] | None:
        if self._platform is None:
            return None
        return await memberships.audited_organizations(self._platform, principal, organization_id)

    @hookimpl
    async def on_account_event(self, unit: Unit, account: Account, change: str) -> None:
        """An organization keeps an owner who can sign in."""
        if change == "deactivated":
            await memberships.keep_owners_of_all(unit, account)
