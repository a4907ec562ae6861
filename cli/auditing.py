"""Audit log entries for changes that the operator makes outside the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel.db.engine import Unit

# Nobody is signed in: it is the operator on the server itself.
ORIGIN = {"user_agent": "platformctl"}


async def audited(
    action: str,
    target_type: str,
    target_id: str,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    change: Callable[[], object] | None = None,
) -> None:
    """Make `change` and write its entry; if the entry can't be written, the change is not made.

    The change is made between the entry and its commit: a failed one leaves no entry.
    """
    from cli import running
    from kernel.auth.audit import audit

    def make(unit: Unit) -> None:
        audit(unit, action, target_type, target_id, before=before, after=after, origin=ORIGIN)
        unit.session.flush()
        if change is not None:
            change()

    async with running.stored_platform(kernel_only=True) as platform:
        running.refuse_behind(platform)
        await platform.database.write(make)
