"""Audit log entries for changes that the operator makes outside the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
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


def note_packages(action: str, states: Mapping[str, dict[str, Any] | None]) -> None:
    """Write an entry for each plugin that was installed or uninstalled here, with its state afterwards.

    The packages have changed already: if the database can't take it, there is a warning. Without a database,
    there is no log yet.
    """
    from sqlalchemy import make_url
    from sqlalchemy.exc import SQLAlchemyError

    from cli import console, running
    from cli.failures import CommandFailed

    url = make_url(running.kernel_settings().sqlalchemy_url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        return
    try:
        for name, after in states.items():
            running.run(audited(action, "plugin", name, after=after))
    except (CommandFailed, SQLAlchemyError, OSError) as error:
        console.warn(f"The audit log could not be written: {error}.")
