"""One change of roles, groups or assignments: its unit, who makes it, and what that one may hand on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import KeyNotHeld
from builtin_plugins.tenancy.permissions import ROLES_MANAGE
from builtin_plugins.tenancy.services.access import is_platform_admin
from builtin_plugins.tenancy.services.memberships import LOCK, OWNER
from builtin_plugins.tenancy.services.standing import Standing, read_standing
from builtin_plugins.tenancy.services.tree import ancestors, find_organization
from kernel.sdk import Permission, Platform, Principal, Unit, Unprocessable, audit


@dataclass(frozen=True)
class RoleChange:
    """A unit under the lock. `standing` is the editor's as this unit sees it; None: a Platform Admin."""

    unit: Unit
    organization_id: int
    lineage: Sequence[int]
    permissions: Mapping[str, Permission]
    editor_id: int | None
    standing: Standing | None
    origin: dict[str, Any]

    @property
    def session(self) -> AsyncSession:
        """The unit's session."""
        return self.unit.session

    def insist_on(self, keys: Iterable[str]) -> None:
        """Raise KeyNotHeld unless the editor holds each of these keys here and in all organizations below.

        For there a role counts as well; what the built-in role `member` gives is held here alone.
        """
        missing = sorted(key for key in set(keys) if not self._holds(key))
        if missing:
            raise KeyNotHeld(
                f"You don't hold {', '.join(missing[:10])} in this organization and those below yourself, "
                "so you can neither hand it on nor take it away; an owner can"
            )

    def _holds(self, key: str) -> bool:
        if self.standing is None or self.standing.commands(key, self.lineage):
            return True
        # Of a plugin that is not loaded now; it may come back, and the key with it.
        return key not in self.permissions and self._is_owner(self.standing)

    def _is_owner(self, standing: Standing) -> bool:
        return any(standing.organizations.get(place) == OWNER for place in self.lineage)

    def audit(
        self,
        action: str,
        target_type: str,
        target_id: int | str,
        before: dict[str, Any] | None = None,
        after: dict[str, Any] | None = None,
    ) -> None:
        """Record what is done here."""
        audit(
            self.unit,
            action,
            target_type,
            target_id,
            before=before,
            after=after,
            origin=self.origin,
            scope_org_id=self.organization_id,
        )


@asynccontextmanager
async def role_change(
    platform: Platform, principal: Principal, organization_id: int, origin: dict[str, Any]
) -> AsyncIterator[RoleChange]:
    """A change by somebody who manages roles in the organization. Raises OrganizationNotFound, KeyNotHeld."""
    # Before the unit: one that waited for a second connection while it holds the lock could wait for ever.
    everything = await is_platform_admin(platform, principal)
    async with platform.database.unit() as unit:
        await unit.lock(LOCK)
        lineage = await read_lineage(unit.session, organization_id)
        permissions = platform.permissions
        standing = None if everything else await read_standing(unit.session, principal.id or 0, permissions)
        change = RoleChange(unit, organization_id, lineage, permissions, principal.id, standing, origin)
        change.insist_on([ROLES_MANAGE.key])
        yield change


async def read_lineage(session: AsyncSession, organization_id: int) -> tuple[int, ...]:
    """An organization, then those above it. Raises OrganizationNotFound."""
    await find_organization(session, organization_id)
    return (organization_id, *await ancestors(session, organization_id))


def check_keys(
    permissions: Mapping[str, Permission], keys: Sequence[str], known: Collection[str] = ()
) -> None:
    """Raise Unprocessable for each key that a role can't hold; `known` are those that it holds already."""
    problems = []
    for place, key in enumerate(keys):
        why = None if key in known else _problem(permissions.get(key))
        if why is not None:
            loc = ["body", "permissions", place]
            problems.append({"type": "value_error", "loc": loc, "msg": f"'{key}' {why}", "input": key})
    if problems:
        raise Unprocessable(problems)


def _problem(permission: Permission | None) -> str | None:
    if permission is None:
        return "is no permission key; GET /v1/permissions lists all"
    if permission.scope != "organization":
        return (
            f"has the scope '{permission.scope}', and a role holds keys of the scope 'organization'; "
            "GET /v1/permissions lists all with their scopes"
        )
    return None
