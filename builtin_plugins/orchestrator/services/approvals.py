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
    approvals = [
        Approval(f"apr_{secrets.token_urlsafe(24)}", tool.name, dict(arguments), now + life)
        for tool, arguments in calls
    ]
    for approval in approvals:
        unit.session.add(
            PendingCall(
                id=_hash(approval.id),
                subject=subject,
                tool=approval.tool,
                arguments=approval.arguments,
                expires_at=approval.expires_at,
            )
        )
    return approvals


async def confirmed(ctx: Context, ids: Sequence[str]) -> list[ResolvedCall]:
    """The calls that the sender confirms. They no longer wait, whatever their result is.

    Raises NotWaiting.
    """
    if not ids:
        return []
    return await ctx.write(_take, ctx.principal.subject, list(dict.fromkeys(ids)))


def _take(unit: Unit, subject: str, ids: Sequence[str]) -> list[ResolvedCall]:
    resolved, now = [], unit.now()
    for approval_id in ids:
        pending = (PendingCall.id == _hash(approval_id)) & (PendingCall.subject == subject)
        pending &= PendingCall.expires_at >= now
        removal = delete(PendingCall).where(pending).returning(PendingCall.tool, PendingCall.arguments)
        row = unit.session.execute(removal).first()
        if row is None:
            raise NotWaiting(
                f"No call is waiting for the approval '{approval_id}': it was used or has expired"
            )
        resolved.append(ResolvedCall(row.tool, row.arguments))
    return resolved


def _hash(approval_id: str) -> str:
    return hashlib.sha256(approval_id.encode()).hexdigest()
