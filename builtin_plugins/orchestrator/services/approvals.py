"""Calls that wait for their user's confirmation: once each, by nobody else, for some minutes."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import delete

from builtin_plugins.orchestrator.errors import NotWaiting
from builtin_plugins.orchestrator.events import Approval
from builtin_plugins.orchestrator.models import PendingCall
from builtin_plugins.orchestrator.settings import OrchestratorSettings
from builtin_plugins.tools.api import Tool
from kernel.sdk import Context, Unit


@dataclass(frozen=True)
class ResolvedCall:
    """A tool and the arguments that it will get."""

    tool: str
    arguments: dict[str, Any]


async def keep_waiting(ctx: Context, calls: Sequence[tuple[Tool, Mapping[str, Any]]]) -> list[Approval]:
    """Store these calls until the sender confirms them."""
    minutes = ctx.settings_of(OrchestratorSettings).confirm_minutes
    return await ctx.write(_keep, ctx.principal.subject, calls, timedelta(minutes=minutes))


def _keep(
    unit: Unit, subject: str, calls: Sequence[tuple[Tool, Mapping[str, Any]]], life: timedelta
) -> list[Approval]:
    now = unit.now()
    unit.session.execute(delete(PendingCall).where(PendingCall.expires_at < now))
    made = [
        Approval(f"apr_{secrets.token_urlsafe(24)}", tool.name, dict(arguments), now + life)
        for tool, arguments in calls
    ]
    for one in made:
        unit.session.add(
            PendingCall(
                id=_hash(one.id),
                subject=subject,
                tool=one.tool,
                arguments=one.arguments,
                expires_at=one.expires_at,
            )
        )
    return made


async def confirmed(ctx: Context, ids: Sequence[str]) -> list[ResolvedCall]:
    """The calls that the sender confirms. They no longer wait, whatever their result is.

    Raises NotWaiting.
    """
    if not ids:
        return []
    return await ctx.write(_take, ctx.principal.subject, list(dict.fromkeys(ids)))


def _take(unit: Unit, subject: str, ids: Sequence[str]) -> list[ResolvedCall]:
    found, now = [], unit.now()
    for one in ids:
        wanted = (PendingCall.id == _hash(one)) & (PendingCall.subject == subject)
        wanted &= PendingCall.expires_at >= now
        taken = delete(PendingCall).where(wanted).returning(PendingCall.tool, PendingCall.arguments)
        row = unit.session.execute(taken).first()
        if row is None:
            raise NotWaiting(f"No call is waiting for the approval '{one}': it was used or has expired")
        found.append(ResolvedCall(row.tool, row.arguments))
    return found


def _hash(given: str) -> str:
    return hashlib.sha256(given.encode()).hexdigest()
