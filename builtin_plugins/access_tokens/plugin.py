"""Personal access tokens: keys for programs."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from builtin_plugins.access_tokens import handlers, service
from builtin_plugins.access_tokens.live import LIVE_TOKENS, LiveTokens, open_live_tokens
from builtin_plugins.access_tokens.models import Base
from builtin_plugins.access_tokens.secret_text import PREFIX
from kernel.sdk import (
    Account,
    Platform,
    Plugin,
    Principal,
    Resource,
    RouteTable,
    Tables,
    Unit,
    audit,
    hookimpl,
)

if TYPE_CHECKING:
    from typer import Typer


# A previous user of the account may still have tokens of it.
_ENDING = frozenset({"deactivated", "deleted", "password_reset", "linked"})


class AccessTokensPlugin(Plugin):
    """Long-lived bearer tokens of an account, each with fewer rights than the account."""

    name = "access_tokens"
    version = "0.1.0"
    description = "Personal access tokens: keys for programs, with fewer rights than the account"
    author = "Platform"
    requires = ("accounts",)

    @hookimpl
    def register_commands(self) -> Sequence[tuple[str, Typer]]:
        from builtin_plugins.access_tokens.commands import COMMANDS  # asked by the terminal alone

        return COMMANDS

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [handlers.routes]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[LiveTokens]]:
        return [Resource(LIVE_TOKENS, open_live_tokens, essential_in=frozenset({"api"}))]

    @hookimpl
    def recall_actor(self, platform: Platform, authorization: str) -> Principal | None:
        token = _token_in(authorization)
        return None if token is None else platform.resource(LIVE_TOKENS).recall(token)

    @hookimpl
    def identify_actor(self, platform: Platform, authorization: str | None) -> Awaitable[Principal] | None:
        """Authenticate bearer tokens with our prefix; others are the kernel's."""
        token = _token_in(authorization or "")
        return None if token is None else platform.resource(LIVE_TOKENS).principal_of(token)

    @hookimpl
    def on_account_event(self, unit: Unit, account: Account, change: str) -> None:
        """Deactivating an account, and every way of regaining it, revokes its tokens for good."""
        if change in _ENDING:
            _end_all(unit, account.id, change)

    @hookimpl
    async def on_account_deleted(self, platform: Platform, account_id: int) -> None:
        """Remove tokens that are left because this plugin was off when the account was deleted."""
        await platform.database.write(_end_all, account_id, "deleted")


def _token_in(authorization: str) -> str | None:
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    return token if token.startswith(PREFIX) and scheme.lower() == "bearer" else None


def _end_all(unit: Unit, account_id: int, change: str) -> None:
    for row in service.end_all(unit.session, account_id):
        before = service.audit_state(row)
        audit(unit, "access_token.ended", "access_token", row.id, before=before, after={"by": change})
        unit.notify(service.TOPIC, service.notice_of(row))
