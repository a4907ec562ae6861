"""Who a row is shared with: one rule for knowledge bases and pipelines (spec 4.11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from builtin_plugins.rag.errors import NotInTeam
from builtin_plugins.rag.schemas import Sharing, SharingUpdate
from kernel.sdk import (
    ACCOUNT_STATES,
    RATE_LIMITS,
    Caller,
    Owned,
    Platform,
    Scope,
    Unit,
    Unprocessable,
    audit,
    scope_of,
)

_NAMINGS: Final = 10
"""Requests per minute of an account that name people: more than anybody shares by hand."""


async def owner_and_scope(caller: Caller, owner_id: int | None, field: str) -> tuple[int | None, Scope]:
    """Who will own a new row, and what that account sees: the caller, or the account that a service names.

    Raises Unprocessable for the field that names the owner.
    """
    if caller.principal.is_service and owner_id is not None:
        account = await caller.platform.resource(ACCOUNT_STATES).get(owner_id)
        if account is None or not account.is_active:
            raise Unprocessable.field(("body", field), "there is no active account with this id", owner_id)
        return owner_id, await scope_of(caller.platform, account.principal)
    if owner_id not in (None, caller.id):
        raise Unprocessable.field(("body", field), "only a service can name another account", owner_id)
    return caller.id, await scope_of(caller.platform, caller.principal)


async def limit_naming(caller: Caller, sharing: Sharing | SharingUpdate) -> None:
    """Count a request that names people: its answer says whether a name or an address has an account.

    Raises TooManyRequests.
    """
    if sharing.people is not None:
        key = f"ratelimit:people:{caller.principal.subject}"
        await caller.platform.resource(RATE_LIMITS).count(key, _NAMINGS)


def share(unit: Unit, platform: Platform, row: Owned, scope: Scope, sharing: Sharing) -> None:
    """Set the visibility of a new row. Raises Unprocessable, NotInTeam."""
    if sharing.people is not None:
        _share_with_people(unit, platform, row, sharing.visibility, sharing.people)
    else:
        _set(row, scope, sharing.visibility, sharing.team_id, sharing.organization_id)


def share_anew(unit: Unit, platform: Platform, row: Owned, scope: Scope, change: SharingUpdate) -> None:
    """Change the visibility if the request has one. Raises Unprocessable, NotInTeam.

    A team or organization that is set already need not be sent again.
    """
    sent = change.model_fields_set
    if change.people is not None:
        _share_with_people(unit, platform, row, change.visibility or row.visibility, change.people)
        return
    if not sent & {"visibility", "team_id", "organization_id"}:
        return
    team_id = change.team_id if "team_id" in sent else row.team_id
    organization_id = change.organization_id if "organization_id" in sent else row.organization_id
    _set(row, scope, change.visibility or row.visibility, team_id, organization_id)


def sharing_of(row: Owned) -> dict[str, Any]:
    """Who sees a row, as the audit log keeps it."""
    return {
        "visibility": row.visibility,
        "team_id": row.team_id,
        "organization_id": row.organization_id,
    }


def note_sharing(unit: Unit, caller: Caller, kind: str, row: Any, before: dict[str, Any]) -> None:
    """Enter into the audit log that other people than before see a row, if so."""
    after = sharing_of(row)
    if after != before:
        audit(unit, f"rag.{kind}.shared", kind, row.id, before=before, after=after, origin=caller.origin)


def _share_with_people(
    unit: Unit, platform: Platform, row: Owned, visibility: str, people: Sequence[str]
) -> None:
    if visibility != "team":
        raise Unprocessable.field(("body", "people"), "people need the visibility 'team'")
    if row.owner_id is None:
        raise Unprocessable.field(("body", "people"), "only what an account owns is shared with people")
    try:
        from builtin_plugins.tenancy.api import settle_people  # not every server has it
    except ImportError:
        team_id = None
    else:
        team_id = platform.hooks.ask_now(
            settle_people, platform=platform, unit=unit, owner_id=row.owner_id, people=people
        )
    if team_id is None:
        raise Unprocessable.field(("body", "people"), "no plugin of this server shares with people")
    row.visibility, row.team_id, row.organization_id = "team", team_id, None


def _set(row: Owned, scope: Scope, visibility: str, team_id: int | None, organization_id: int | None) -> None:
    """Share only with a team or organization that the caller belongs to; unused ids are cleared."""
    if visibility == "private" and row.owner_id is None:
        raise Unprocessable.field(
            ("body", "visibility"), "'private' needs an owner: a service names one, or chooses 'shared'"
        )
    if visibility == "team":
        if team_id is None:
            raise Unprocessable.field(("body", "team_id"), "visibility 'team' needs a team_id")
        if team_id not in scope.teams:
            raise NotInTeam()
    if visibility == "organization":
        if organization_id is None:
            raise Unprocessable.field(
                ("body", "organization_id"), "visibility 'organization' needs an organization_id"
            )
        if organization_id not in scope.organizations:
            raise NotInTeam("You are not a member of this organization")
    row.visibility = visibility
    row.team_id = team_id if visibility == "team" else None
    row.organization_id = organization_id if visibility == "organization" else None
