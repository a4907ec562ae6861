"""Imports a bundle into a team or an organization: in one transaction, only adding, no role above `member`.

A dry run does the same and rolls back at its end, so that its report can't differ. The caller's rights are
checked again in the transaction, past every cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from builtin_plugins.tenancy import api
from builtin_plugins.tenancy.access.changes import Change, change_in, change_team
from builtin_plugins.tenancy.permissions import SETTINGS_MANAGE
from builtin_plugins.tenancy.transfer.member_import import Joined, join_organization, join_team
from builtin_plugins.tenancy.transfer.schemas import (
    ImportItem,
    ImportReport,
    OrganizationImport,
    TeamImport,
)
from kernel.sdk import Caller, Forbidden, Unit, Unprocessable

Write = Callable[[Unit], Mapping[str, Sequence[api.ImportedRow]]]

_MOST_PROBLEMS = 50


@dataclass(frozen=True)
class _Target:
    """The target of an import, and the importer."""

    caller: Caller
    owner_id: int
    team_id: int | None = None
    organization_id: int | None = None


class _Rehearsed(Exception):
    """The end of a dry run: rolls its transaction back."""

    def __init__(self, report: ImportReport) -> None:
        self.report = report


async def import_team(caller: Caller, team_id: int, body: TeamImport, *, dry_run: bool) -> ImportReport:
    """Add what a team's bundle contains. Raises Unprocessable (nothing is written), TeamNotFound."""
    target = _Target(caller, _importer(caller), team_id=team_id)
    writes = await _read(target, body.bundle.sections, body.policy)
    return await _carry_out(caller, partial(_into_team, target=target, body=body, writes=writes), dry_run)


def _into_team(unit: Unit, target: _Target, body: TeamImport, writes: Sequence[Write]) -> ImportReport:
    change, team = change_team(unit, target.caller, target.team_id or 0)
    joined = join_team(unit, team, body.bundle.members)
    report = _completed(unit, joined, writes)
    _record(change, "team", team.id, report, joined, body.policy)
    return report


async def import_organization(
    caller: Caller, organization_id: int, body: OrganizationImport, *, dry_run: bool
) -> ImportReport:
    """Add what an organization's bundle contains. Raises Unprocessable, OrganizationNotFound.

    Members are only added if the caller may manage members.
    """
    target = _Target(caller, _importer(caller), organization_id=organization_id)
    writes = await _read(target, body.bundle.sections, body.policy)
    work = partial(_into_organization, target=target, body=body, writes=writes)
    return await _carry_out(caller, work, dry_run)


def _into_organization(
    unit: Unit, target: _Target, body: OrganizationImport, writes: Sequence[Write]
) -> ImportReport:
    organization_id = target.organization_id or 0
    change = change_in(unit, target.caller, organization_id)
    change.authority.require(SETTINGS_MANAGE, or_admin=True)
    allowed = change.authority.manages_members
    joined = join_organization(unit, organization_id, body.bundle.members, allowed=allowed)
    report = _completed(unit, joined, writes)
    _record(change, "organization", organization_id, report, joined, body.policy)
    return report


def _importer(caller: Caller) -> int:
    """The account that will own imported rows, as everybody would see a row without an owner."""
    if caller.id is None:
        raise Forbidden("Only an account can import, because it becomes the owner of what is created")
    return caller.id


async def _read(target: _Target, sections: dict[str, Any], policy: api.ImportPolicy) -> list[Write]:
    """The plugins' plans for the sections that they know. Raises Unprocessable for an unknown one."""
    platform = target.caller.platform
    answers = await platform.hooks.ask(
        api.import_rows,
        platform=platform,
        sections=sections,
        team_id=target.team_id,
        organization_id=target.organization_id,
        owner_id=target.owner_id,
        policy=policy,
    )
    known_sections = {section for answer in answers for section in answer.sections}
    unknown = [section for section in sections if section not in known_sections]
    if unknown:
        message = "no enabled plugin imports this part of a bundle; remove it, or enable the plugin"
        raise Unprocessable.field(("body", "bundle", unknown[0][:80]), message)
    return [answer.write for answer in answers]


async def _carry_out(caller: Caller, work: Callable[[Unit], ImportReport], dry_run: bool) -> ImportReport:
    if not dry_run:
        return await caller.platform.database.write(work)
    try:
        await caller.platform.database.write(_rehearse, work)
    except _Rehearsed as end:
        return end.report
    raise AssertionError("a rehearsal ends with its rollback")


def _rehearse(unit: Unit, work: Callable[[Unit], ImportReport]) -> None:
    raise _Rehearsed(work(unit))


def _completed(unit: Unit, joined: Joined, writes: Sequence[Write]) -> ImportReport:
    """The report over members and plugins' rows. Raises Unprocessable for collisions under `fail`."""
    report = joined.report
    collisions = []
    for write in writes:
        for section, outcomes in write(unit).items():
            for at, outcome in enumerate(outcomes):
                if outcome.outcome == "collision":
                    collisions.append(_collision(section, at, outcome))
                else:
                    _enter(report, outcome)
    if collisions:
        raise Unprocessable(collisions[:_MOST_PROBLEMS])
    return report


def _enter(report: ImportReport, outcome: api.ImportedRow) -> None:
    item = ImportItem(kind=outcome.kind, name=outcome.name, reason=outcome.reason)
    listed: list[ImportItem] = getattr(report, outcome.outcome)
    listed.append(item)


def _collision(section: str, at: int, outcome: api.ImportedRow) -> dict[str, Any]:
    loc = ["body", "bundle", section, at, "name"]
    message = "this name is taken; rename it in the bundle, or import with the policy skip or rename"
    return {"type": "collision", "loc": loc, "msg": message, "input": outcome.name}


def _record(
    change: Change, kind: str, target_id: int, report: ImportReport, joined: Joined, policy: str
) -> None:
    """The audit entry names everybody who joined, as it is the only record of these memberships."""
    counts = {name: len(getattr(report, name)) for name in ImportReport.model_fields}
    after = {"policy": policy, **counts, "member_ids": joined.user_ids}
    change.audit(f"{kind}.imported", kind, target_id, after=after)
