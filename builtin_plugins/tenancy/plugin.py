"""Tenancy: organizations, teams, invites, roles and permissions."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Select
from sqlalchemy.orm import Session

from builtin_plugins.accounts.api import AuditedTarget, OrganizationMembership
from builtin_plugins.tenancy import api
from builtin_plugins.tenancy.access import decisions, memberships
from builtin_plugins.tenancy.access.cache import REMEMBERED, open_remembered, standing_of
from builtin_plugins.tenancy.access.changes import LOCK
from builtin_plugins.tenancy.invites import handlers as invites
from builtin_plugins.tenancy.invites.tokens import INVITE_SECRET, open_secret
from builtin_plugins.tenancy.members import account_removal
from builtin_plugins.tenancy.members import handlers as members
from builtin_plugins.tenancy.members.owners import keep_owners_of_all
from builtin_plugins.tenancy.models import Base
from builtin_plugins.tenancy.organizations import handlers as organizations
from builtin_plugins.tenancy.permissions import ORG_LIST, PERMISSIONS
from builtin_plugins.tenancy.roles.handlers import assignments, groups, roles
from builtin_plugins.tenancy.settings import TenancySettings
from builtin_plugins.tenancy.teams import handlers as teams
from builtin_plugins.tenancy.teams import people as shared_with
from builtin_plugins.tenancy.transfer import handlers as transfer
from kernel.sdk import (
    Account,
    Caller,
    Context,
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
from kernel.sdk.accounts import Decision
from kernel.sdk.http import Access


class TenancyPlugin(Plugin):
    """Who belongs together, and who may do what there."""

    name = "tenancy"
    version = "0.1.0"
    description = "Organizations, teams, invites, roles and permissions"
    author = "Platform"
    requires = ("accounts",)

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [api]

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
        return [Resource(REMEMBERED, open_remembered), Resource(INVITE_SECRET, open_secret)]

    @hookimpl
    def decide_access(
        self, ctx: Context, principal: Principal, access: Access, params: Mapping[str, int | str]
    ) -> Awaitable[Decision | None] | None:
        """Decide keys of an organization or a team; other keys are not tenancy's."""
        if access.permission == ORG_LIST.key:
            return decisions.answer_platform_admin(Caller(ctx.platform, principal))
        if access.within is None:
            return None
        return decisions.answer(Caller(ctx.platform, principal), access, params)

    @hookimpl
    async def find_scope(self, platform: Platform, principal: Principal) -> Scope | None:
        if principal.id is None:
            return None
        standing = await standing_of(platform, principal.id)
        return Scope(principal.id, tuple(standing.teams), tuple(standing.organizations))

    @hookimpl
    def token_claims(
        self, unit: Unit, account: Account, previous: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        return memberships.claims_of(unit.session, account.id, previous)

    @hookimpl
    async def find_memberships(
        self, platform: Platform, account_ids: Sequence[int]
    ) -> Mapping[int, Sequence[OrganizationMembership]]:
        return await platform.database.read(memberships.memberships_of, account_ids)

    @hookimpl
    def select_members(self, organization_id: int) -> Select[int]:
        return memberships.members_query(organization_id)

    @hookimpl
    def select_team_members(self, team_id: int) -> Select[int]:
        return memberships.team_members_query(team_id)

    @hookimpl
    def find_places(
        self, session: Session, account_ids: Sequence[int]
    ) -> Mapping[int, tuple[frozenset[int], frozenset[int]]]:
        return memberships.places_of(session, account_ids)

    @hookimpl
    def settle_people(self, unit: Unit, owner_id: int, people: Sequence[str]) -> int:
        return shared_with.settle_people(unit, owner_id, people)

    @hookimpl
    def name_audited_targets(
        self, session: Session, scope: Scope, target_type: str, target_ids: Sequence[str]
    ) -> Mapping[str, AuditedTarget]:
        return memberships.name_targets(session, scope, target_type, target_ids)

    @hookimpl
    async def find_audited_organizations(
        self, platform: Platform, principal: Principal, organization_id: int | None
    ) -> Sequence[int]:
        return await memberships.audited_organizations(Caller(platform, principal), organization_id)

    @hookimpl
    def on_account_event(self, unit: Unit, account: Account, change: str) -> None:
        """Make sure that every organization keeps an owner who can sign in and, after a deletion, that every
        team keeps a team_admin.
        """
        if change in ("deactivated", "deleted"):
            unit.lock(LOCK)
            keep_owners_of_all(unit.session, account.id)
        if change == "deleted":
            account_removal.keep_admins_of_all(unit.session, account.id)
            account_removal.forget_invites(unit, account.email_key)

    @hookimpl
    async def on_account_deleted(self, platform: Platform, account_id: int) -> None:
        await platform.database.write(account_removal.end_all, account_id)
