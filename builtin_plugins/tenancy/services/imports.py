"""A bundle into a team or an organization: in one transaction, adding only, nothing above `member`.

A dry run does the same and rolls back at its end, so that its report can't differ. What the caller may is
asked once more in the transaction, past every cache.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builtin_plugins.tenancy.permissions import SETTINGS_MANAGE, TEAM_MANAGE
from builtin_plugins.tenancy.schemas_transfer import (
    ImportItem,
    ImportReport,
    OrganizationImport,
    TeamImport,
)
from builtin_plugins.tenancy.services.authority import read_caller
from builtin_plugins.tenancy.services.memberships import LOCK
from builtin_plugins.tenancy.services.roster import Joined, join_organization, join_team
from builtin_plugins.tenancy.services.team_authority import find_team, manages_team
from kernel.sdk import Forbidden, Platform, Principal, Unit, Unprocessable, audit

Outcomes = Mapping[str, Sequence[Mapping[str, Any]]]
Write = Callable[[Unit], Awaitable[Outcomes]]

_MOST_PROBLEMS = 50


@dataclass(frozen=True)
class _Target:
    """Where a bundle goes, and who brings it."""

    platform: Platform
    owner_id: int
    team_id: int | None = None
    organization_id: int | None = None


class _Rehearsed(Exception):
    """The end of a dry run: rolls its transaction back."""


async def import_team(
    platform: Platform,
    principal: Principal,
    team_id: int,
    wanted: TeamImport,
    origin: dict[str, Any],
    *,
    dry_run: bool,
) -> ImportReport:
    """Add what a team's bundle holds. Raises Unprocessable (nothing is written), TeamNotFound."""
    target = _Target(platform, _importer(principal), team_id=team_id)
    write = await _read(target, wanted.bundle.sections, wanted.policy)

    async def work(unit: Unit) -> ImportReport:
        team = await find_team(unit.session, team_id)
        if not await manages_team(unit.session, platform.permissions, principal.id, team):
            raise Forbidden(f"This needs: permission {TEAM_MANAGE.key}")
        joined = await join_team(unit, team, wanted.bundle.members)
        report = await _completed(unit, joined, write)
        _record(unit, "team", team_id, report, joined, wanted.policy, origin, team.organization_id)
        return report

    return await _carry_out(platform, work, dry_run=dry_run)


async def import_organization(
    platform: Platform,
    principal: Principal,
    organization_id: int,
    wanted: OrganizationImport,
    origin: dict[str, Any],
    *,
    dry_run: bool,
) -> ImportReport:
    """Add what an organization's bundle holds. Raises Unprocessable, OrganizationNotFound.

    Members join only where the caller may manage members.
    """
    target = _Target(platform, _importer(principal), organization_id=organization_id)
    write = await _read(target, wanted.bundle.sections, wanted.policy)

    async def work(unit: Unit) -> ImportReport:
        caller = await read_caller(unit.session, principal, organization_id, platform.permissions)
        if not (caller.is_admin or caller.holds(SETTINGS_MANAGE.key)):
            raise Forbidden(f"This needs: permission {SETTINGS_MANAGE.key}")
        members = wanted.bundle.members
        joined = await join_organization(unit, organization_id, members, allowed=caller.manages)
        report = await _completed(unit, joined, write)
        policy = wanted.policy
        _record(unit, "organization", organization_id, report, joined, policy, origin, organization_id)
        return report

    return await _carry_out(platform, work, dry_run=dry_run)


def _importer(principal: Principal) -> int:
    """The account that will own what comes in: a row without an owner would be open to everybody."""
    if principal.id is None:
        raise Forbidden("Only an account can import, as it becomes the owner of what is made")
    return principal.id


async def _read(target: _Target, sections: dict[str, Any], policy: str) -> list[Write]:
    """What plugins made of the sections that they know. Raises Unprocessable for one that nobody knows."""
    answers = await target.platform.hooks.ask_all(
        "import_rows",
        platform=target.platform,
        sections=sections,
        team_id=target.team_id,
        organization_id=target.organization_id,
        owner_id=target.owner_id,
        policy=policy,
    )
    taken = {section for answer in answers for section in answer["sections"]}
    unknown = [section for section in sections if section not in taken]
    if unknown:
        message = "no enabled plugin takes this part of a bundle; remove it, or enable the plugin"
        raise Unprocessable.field(("body", "bundle", unknown[0][:80]), message)
    return [answer["write"] for answer in answers]


async def _carry_out(
    platform: Platform, work: Callable[[Unit], Awaitable[ImportReport]], *, dry_run: bool
) -> ImportReport:
    report = ImportReport()
    try:
        async with platform.database.unit() as unit:
            await unit.lock(LOCK)
            report = await work(unit)
            if dry_run:
                raise _Rehearsed
    except _Rehearsed:
        pass
    return report


async def _completed(unit: Unit, joined: Joined, writes: Sequence[Write]) -> ImportReport:
    """The report over members and plugins' rows. Raises Unprocessable for collisions under `fail`."""
    report = joined.report
    collisions = []
    for write in writes:
        for section, outcomes in (await write(unit)).items():
            for at, outcome in enumerate(outcomes):
                if outcome["outcome"] == "collision":
                    collisions.append(_collision(section, at, outcome))
                else:
                    _enter(report, outcome)
    if collisions:
        raise Unprocessable(collisions[:_MOST_PROBLEMS])
    return report


def _enter(report: ImportReport, outcome: Mapping[str, Any]) -> None:
    item = ImportItem(kind=outcome["kind"], name=outcome["name"], reason=outcome.get("reason"))
    listed: list[ImportItem] = getattr(report, outcome["outcome"])
    listed.append(item)


def _collision(section: str, at: int, outcome: Mapping[str, Any]) -> dict[str, Any]:
    loc = ["body", "bundle", section, at, "name"]
    message = "this name is taken here; rename it in the bundle, or import with the policy skip or rename"
    return {"type": "collision", "loc": loc, "msg": message, "input": outcome["name"]}


def _record(
    unit: Unit,
    kind: str,
    target_id: int,
    report: ImportReport,
    joined: Joined,
    policy: str,
    origin: dict[str, Any],
    organization_id: int | None,
) -> None:
    """The audit entry names who joined, everybody: it stands for each of these changes of membership."""
    counts = {name: len(getattr(report, name)) for name in ImportReport.model_fields}
    after = {"policy": policy, **counts, "member_ids": joined.user_ids}
    audit(
        unit,
        f"{kind}.imported",
        kind,
        target_id,
        after=after,
        origin=origin,
        scope_org_id=organization_id,
    )
