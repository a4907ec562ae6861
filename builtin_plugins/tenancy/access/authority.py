"""What an account may do in an organization or in a team; routes, changes and the hints in lists use it.

Routes use cached data; a change reads it again in its own transaction, past every cache, so that an account
that lost a right a moment ago is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.cache import lineage_of, standing_of
from builtin_plugins.tenancy.access.standing import NOBODY, OWNER, TEAM_ADMIN, Standing, read_standing
from builtin_plugins.tenancy.access.tree import read_home, read_lineage
from builtin_plugins.tenancy.errors import KeyNotHeld, NotAMember, OrganizationNotFound
from builtin_plugins.tenancy.models import Team
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, ORG_VIEW
from kernel.sdk import ACCOUNT_STATES, Account, Caller, Forbidden, Permission


@dataclass(frozen=True)
class Authority:
    """What an account may do in one organization, or in one team, in one state of the database.

    `lineage` is the organization, then those above it; for a team, the organization that it belongs to, if
    any. It is empty if there is no such organization. An inactive account has no authority at all.
    """

    standing: Standing
    lineage: Sequence[int]
    permissions: Mapping[str, Permission]
    is_admin: bool = False
    is_platform_admin: bool = False
    team_id: int | None = None

    @property
    def account_id(self) -> int | None:
        """The account that has it; None without an active account."""
        return self.standing.user_id or None

    def holds(self, key: str) -> bool:
        """Whether a key is held here or from above; a Platform Admin holds all."""
        if self.is_platform_admin:
            return True
        if key in self.permissions and self.permissions[key].scope == "team":
            return self._manages_team
        return bool(self.lineage) and self.standing.holds(key, self.lineage)

    def may_grant(self, key: str) -> bool:
        """Whether the caller has a permission here and in every organization below, as roles extend to those.

        Only owners may grant a key of a plugin that isn't loaded, since it may come back.
        """
        if self.is_platform_admin or self.standing.holds_below(key, self.lineage):
            return True
        return key not in self.permissions and self._is_owner

    @property
    def manages_members(self) -> bool:
        """Whether the account may add, change and remove members; instance administrators may, too."""
        return self.is_admin or self.holds(MEMBERS_MANAGE.key)

    @property
    def visible_places(self) -> Sequence[int]:
        """The organizations of the lineage that the account may view."""
        if self.is_platform_admin:
            return self.lineage
        return [
            place
            for number, place in enumerate(self.lineage)
            if self.standing.holds(ORG_VIEW.key, self.lineage[number:])
        ]

    def require(self, permission: Permission, *, or_admin: bool = False) -> None:
        """Raise Forbidden unless the key is held here; `or_admin` also allows instance administrators."""
        if not (self.holds(permission.key) or (or_admin and self.is_admin)):
            raise Forbidden(f"This needs: permission {permission.key}")

    def require_to_grant(self, keys: Iterable[str]) -> None:
        """Raise KeyNotHeld unless each of these keys may be granted here."""
        missing = sorted(key for key in set(keys) if not self.may_grant(key))
        if missing:
            raise KeyNotHeld(
                f"You don't hold {', '.join(missing[:10])} in this organization and those below it, "
                "so you can neither grant nor revoke them; an owner can"
            )

    @property
    def _manages_team(self) -> bool:
        if self.team_id is not None and self.standing.teams.get(self.team_id) == TEAM_ADMIN:
            return True
        return bool(self.lineage) and self.standing.holds(MEMBERS_MANAGE.key, self.lineage)

    @property
    def _is_owner(self) -> bool:
        return any(self.standing.organizations.get(place) == OWNER for place in self.lineage)


async def remembered_authority(
    caller: Caller, *, organization_id: int | None = None, team_id: int | None = None
) -> Authority:
    """The caller's authority in an organization or in a team, from the cache.

    While the cache is warm, the database is only read for the flag of a Platform Admin, and for a team's
    organization if the caller manages members somewhere and isn't an administrator of the team.
    """
    platform, principal = caller.platform, caller.principal
    standing = await standing_of(platform, principal.id) if principal.id is not None else NOBODY
    if organization_id is not None:
        lineage = await lineage_of(platform, organization_id)
    else:
        lineage = await _home(caller, standing, team_id or 0)
    is_platform_admin = await is_platform_admin_now(caller)
    return Authority(standing, lineage, platform.permissions, principal.is_admin, is_platform_admin, team_id)


async def is_platform_admin_now(caller: Caller) -> bool:
    """The flag as the database has it now; accounts recently seen without it aren't looked up."""
    principal = caller.principal
    if not principal.platform_admin or principal.id is None:
        return False
    return await caller.platform.resource(ACCOUNT_STATES).is_platform_admin(principal.id)


async def _home(caller: Caller, standing: Standing, team_id: int) -> Sequence[int]:
    if standing.teams.get(team_id) == TEAM_ADMIN or not standing.places_of(MEMBERS_MANAGE.key):
        return ()
    return await caller.platform.database.read(read_home, team_id)


def read_authority(
    session: Session, permissions: Mapping[str, Permission], account_id: int | None, organization_id: int
) -> Authority:
    """The authority of an account in an organization as this session sees it, past every cache."""
    lineage = read_lineage(session, organization_id)
    return _read(session, permissions, account_id, lineage)


def read_team_authority(
    session: Session, permissions: Mapping[str, Permission], account_id: int | None, team: Team
) -> Authority:
    """The same in a team."""
    home = team.organization_id
    lineage = () if home is None else read_lineage(session, home)
    return _read(session, permissions, account_id, lineage, team.id)


def read_callers_authority(session: Session, caller: Caller, organization_id: int) -> Authority:
    """The same of a caller. Raises OrganizationNotFound.

    Raises NotAMember for callers who may not know which organizations exist, after the same work as for an
    existing one, so that the time taken reveals nothing.
    """
    authority = read_authority(session, caller.platform.permissions, caller.id, organization_id)
    if not authority.lineage:
        knows_all = authority.is_admin or authority.is_platform_admin
        raise OrganizationNotFound() if knows_all else NotAMember()
    return authority


def _read(
    session: Session,
    permissions: Mapping[str, Permission],
    account_id: int | None,
    lineage: Sequence[int],
    team_id: int | None = None,
) -> Authority:
    account = session.get(Account, account_id or 0)
    if account is None or not account.is_active:
        return Authority(NOBODY, lineage, permissions, team_id=team_id)
    standing = read_standing(session, account.id, permissions)
    is_admin = account.role == "admin"
    return Authority(standing, lineage, permissions, is_admin, bool(account.platform_admin), team_id)
