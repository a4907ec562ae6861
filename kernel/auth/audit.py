"""The audit log: written in the transaction of the change that it records (spec 2.7)."""

from __future__ import annotations

from typing import Any, TypeAlias

from kernel.auth.models import AuditEntry
from kernel.db.engine import Unit

Origin: TypeAlias = dict[str, Any]
"""What an audit entry says about who acted: `actor_id`, `ip_address`, `user_agent` (`Caller.origin`)."""


def audit(
    unit: Unit,
    action: str,
    target_type: str,
    target_id: int | str | None,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    origin: Origin | None = None,
    scope_org_id: int | None = None,
) -> None:
    """Record that `action` was performed on a target.

    `before` and `after` must not contain secrets. `origin` is `Caller.origin`; without it, the entry says
    that the operator acted on the server itself.
    """
    unit.session.add(
        AuditEntry(
            action=action,
            target_type=target_type,
            target_id=None if target_id is None else str(target_id),
            before_state=before,
            after_state=after,
            scope_org_id=scope_org_id,
            scope_type="organization" if scope_org_id is not None else "platform",
            **(origin or {}),
        )
    )
