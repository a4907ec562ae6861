"""Shared by the commands: the platform with the parts of accounts open, and how an account is shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel.sdk import Account, Platform

_FIELDS = ("id", "username", "email", "role", "is_active", "platform_admin", "created_at")


@asynccontextmanager
async def opened_accounts(*, kernel_only: bool = False) -> AsyncIterator[Platform]:
    """The stored platform with this plugin's resources. With `kernel_only`, accounts can only be read."""
    from builtin_plugins.accounts.resources import open_parts
    from cli import accounts

    async with accounts.opened_accounts(kernel_only=kernel_only) as platform, AsyncExitStack() as stack:
        await open_parts(platform, stack)
        yield platform


async def find_account(platform: Platform, username: str) -> Account:
    """The account with this name. Raises NotFound."""
    from builtin_plugins.accounts.platform_admins import find_by_username

    return await platform.database.read(find_by_username, username)


def account_row(account: Account, **more: object) -> dict[str, Any]:
    """An account for a program."""
    return {name: getattr(account, name) for name in _FIELDS} | more


def state(account: Account) -> str:
    """One word that says whether an account can sign in."""
    return "active" if account.is_active else "deactivated"
