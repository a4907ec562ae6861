"""The plugin that keeps secrets of accounts, organizations and plugins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from builtin_plugins.owner_secrets import api
from builtin_plugins.owner_secrets.diagnostics import DIAGNOSTICS
from builtin_plugins.owner_secrets.keys import NAME, KeyRing
from builtin_plugins.owner_secrets.store import OWNER_SECRETS, OwnerSecrets, SecretOwner, secrets_of
from kernel.sdk import PLATFORM_VERSION, Account, Diagnostic, Platform, Plugin, Resource, Unit, hookimpl
from kernel.sdk.accounts import Origin

if TYPE_CHECKING:
    from typer import Typer


class OwnerSecretsPlugin(Plugin):
    """Encrypts them with a key of the home."""

    name = "owner_secrets"
    version = PLATFORM_VERSION
    description = "Encrypted secrets of accounts, organizations and plugins"
    author = "Platform"
    essential = True

    @hookimpl
    def register_commands(self) -> Sequence[tuple[str, Typer]]:
        from builtin_plugins.owner_secrets.commands import COMMANDS  # asked by the terminal alone

        return COMMANDS

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [api]

    @hookimpl
    def describe_secrets(self) -> Mapping[str, str]:
        """The key of this plugin, and that of the kernel's tokens."""
        return {
            "jwt-secret": "all sessions and service tokens will end at the next start",
            NAME: "every stored secret of accounts, organizations and plugins will be lost",
        }

    @hookimpl
    def register_diagnostics(self) -> Sequence[Diagnostic]:
        return DIAGNOSTICS

    @hookimpl
    def register_resources(self) -> Sequence[Resource[OwnerSecrets]]:
        return [Resource(OWNER_SECRETS, _open)]

    @hookimpl(optionalhook=True)
    def on_account_event(
        self, platform: Platform, unit: Unit, account: Account, change: str, origin: Origin
    ) -> None:
        """A deleted account's secrets go with it."""
        if change == "deleted":
            secrets_of(platform).remove_all(unit, SecretOwner("account", account.id), origin)

    @hookimpl(optionalhook=True)
    async def on_account_deleted(self, platform: Platform, account_id: int) -> None:
        """Remove secrets that a request stored after the deletion."""
        owner = SecretOwner("account", account_id)
        await platform.database.write(secrets_of(platform).remove_all, owner)


@asynccontextmanager
async def _open(platform: Platform) -> AsyncIterator[OwnerSecrets]:
    ring = KeyRing(platform.secrets)
    ring.newest()  # made now: the operator copies the secrets to other machines after the first start
    yield OwnerSecrets(ring)
