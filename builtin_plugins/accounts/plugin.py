"""The plugin that carries accounts from their registration to their deletion."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builtin_plugins.accounts import handlers, hookspecs
from builtin_plugins.accounts.erasure import FINISH_REMOVALS, REMOVE_ACCOUNT
from builtin_plugins.accounts.models import Base
from builtin_plugins.accounts.password_resets import SEND_RESET
from builtin_plugins.accounts.resources import RESOURCES
from kernel.sdk import PLATFORM_VERSION, JobRef, Plugin, Resource, RouteTable, Tables, hookimpl

if TYPE_CHECKING:
    from typer import Typer


class AccountsPlugin(Plugin):
    """The kernel only identifies who sends a request; all that happens to an account is here."""

    name = "accounts"
    version = PLATFORM_VERSION
    description = "Accounts: sign-in, administration, deletion; Platform Admins; the audit log"
    author = "Platform"
    essential = True

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [hookspecs]

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return RESOURCES

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return handlers.TABLES

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        """Their names begin with `kernel.`, as those of jobs that earlier versions have stored."""
        return [SEND_RESET, REMOVE_ACCOUNT, FINISH_REMOVALS]

    @hookimpl
    def register_commands(self) -> Sequence[tuple[str, Typer]]:
        from builtin_plugins.accounts.commands import COMMANDS  # asked by the terminal alone

        return COMMANDS
