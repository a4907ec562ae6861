"""Notifies plugins of what happens to accounts, inside the unit that does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builtin_plugins.accounts import hookspecs
from builtin_plugins.accounts.schemas import AccountChange
from kernel.sdk import Account, Unit
from kernel.sdk.accounts import Origin

if TYPE_CHECKING:
    from kernel.sdk import Platform


def tell_plugins(
    platform: Platform, unit: Unit, account: Account, change: AccountChange, origin: Origin | None = None
) -> None:
    """Let plugins react to a change of an account, or forbid it by raising an error."""
    platform.hooks.ask_now(
        hookspecs.on_account_event,
        platform=platform,
        unit=unit,
        account=account,
        change=change,
        origin=origin or {},
    )
