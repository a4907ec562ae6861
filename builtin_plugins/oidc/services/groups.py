"""The groups that the provider names: what a sign-in says of them, and what of that counts here.

Groups that are unknown are none: nobody reads something because the provider did not answer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal

from sqlalchemy import Select, delete, select

from builtin_plugins.oidc.models import GroupMember, GroupStatement
from builtin_plugins.oidc.settings import OidcSettings
from kernel.sdk import Account, Unit, audit, utc_now
from kernel.sdk.accounts import Origin

log = logging.getLogger("platform.oidc")

_MOST: Final = 2_000
_LONGEST: Final = 255

GroupProblem = Literal["not_sent", "unreachable", "too_many"]


@dataclass(frozen=True)
class StatedGroups:
    """The names of somebody's groups, exactly as the provider writes them; `problem`: they are unknown."""

    names: frozenset[str] = frozenset()
    problem: GroupProblem | None = None


def groups_of(
    settings: OidcSettings, id_claims: Mapping[str, Any], userinfo: Mapping[str, Any] | None
) -> StatedGroups:
    """What the claims say: userinfo first, the ID token second. `userinfo` is None if it was unreachable."""
    claims = {**id_claims, **(userinfo or {})}
    value = _claim(claims, settings.groups_claim)
    if value is None and _is_elsewhere(claims, settings.groups_claim):
        log.warning(
            "the provider did not send the claim '%s', which is too long or kept elsewhere: the role stays, "
            "and no group of the sign-in counts; let the provider send only the groups that are assigned to "
            "this application",
            settings.groups_claim,
        )
        return StatedGroups(problem="not_sent")
    if value is None:
        return StatedGroups(problem="unreachable" if userinfo is None else None)
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return StatedGroups(frozenset(one for one in listed if isinstance(one, str)))


def _is_elsewhere(claims: Mapping[str, Any], path: str) -> bool:
    """Whether the provider says that the claim exists but does not send it: as a distributed claim (OpenID
    Connect Core, section 5.6.2), or by Entra's `hasgroups`.
    """
    names = claims.get("_claim_names")
    is_distributed = isinstance(names, Mapping) and bool({path, path.partition(".")[0]} & names.keys())
    return is_distributed or claims.get("hasgroups") in (True, "true")


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """The claim with exactly this name, else at this path: names may contain dots (a URL does)."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def replace_groups(
    unit: Unit, settings: OidcSettings, account: Account, stated: StatedGroups, origin: Origin
) -> bool:
    """Store what a sign-in says, in place of the one before. Returns whether other groups count now."""
    session, counting = unit.session, select_groups(settings).subquery()
    mine = select(counting.c.name).where(counting.c.account_id == account.id)
    before = set(session.scalars(mine))
    names, problem = _storable(stated)
    row = session.get(GroupStatement, account.id) or GroupStatement(account_id=account.id)
    was = row.problem
    row.made_at, row.problem = unit.now(), problem
    session.add(row)
    session.flush()
    session.execute(delete(GroupMember).where(GroupMember.account_id == account.id))
    session.add_all([GroupMember(account_id=account.id, name=one) for one in sorted(names)])
    session.flush()
    if before == names and was == problem:
        return False
    after = {"added": sorted(names - before), "removed": sorted(before - names), "problem": problem}
    audit(unit, "account.groups_changed", "account", account.id, after=after, origin=origin)
    return before != names


def _storable(stated: StatedGroups) -> tuple[frozenset[str], GroupProblem | None]:
    """The names that every database takes as they are; none if there are more than anybody is in."""
    names = frozenset(one for one in stated.names if 0 < len(one) <= _LONGEST and one.isprintable())
    if len(names) < len(stated.names):
        log.warning(
            "%d groups of a sign-in don't count: their names are empty, can't be printed, or have more than "
            "%d characters",
            len(stated.names) - len(names),
            _LONGEST,
        )
    if len(names) > _MOST:
        log.warning(
            "the provider named %d groups of one account, more than %d: none counts", len(names), _MOST
        )
        return frozenset(), "too_many"
    return names, stated.problem


def select_groups(settings: OidcSettings) -> Select[str, int]:
    """Implements `select_sign_in_groups`: what this provider said, as long as that counts."""
    oldest = utc_now() - timedelta(hours=settings.groups_hours)
    query = select(GroupMember.name, GroupMember.account_id)
    query = query.join(GroupStatement, GroupStatement.account_id == GroupMember.account_id)
    query = query.join(Account, Account.id == GroupMember.account_id)
    return query.where(
        GroupStatement.made_at > oldest,
        GroupStatement.problem.is_(None),
        Account.sso_issuer == settings.issuer,
        Account.is_active,
        Account.deleted_at.is_(None),
    )


def forget_groups(unit: Unit, account_id: int) -> None:
    """The account is deleted."""
    unit.session.execute(delete(GroupMember).where(GroupMember.account_id == account_id))
    unit.session.execute(delete(GroupStatement).where(GroupStatement.account_id == account_id))
