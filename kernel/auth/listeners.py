"""Notifies plugins of what happens to accounts, inside the unit that does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookspecs
from kernel.auth.models import Account, AccountChange
from kernel.db.engine import Unit

if TYPE_CHECKING:
    from kernel.platform import Platform


def tell_plugins(platform: Platform, unit: Unit, account: Account, change: AccountChange) -> None:
    """Let plugins react to a change of an account, or forbid it by raising an error."""
    platform.hooks.ask_now(
        hookspecs.on_account_event, platform=platform, unit=unit, account=account, change=change
    )
