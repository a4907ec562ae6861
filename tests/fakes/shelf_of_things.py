"""A third-party plugin that stores things for accounts, some of them shared, and removes them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from typing import Any

from builtin_plugins.accounts.api import SharedThing
from kernel.sdk import (
    AUTHENTICATED,
    Account,
    Conflict,
    Context,
    Platform,
    Plugin,
    RouteTable,
    Scope,
    Unit,
    hookimpl,
    send_events,
)


class ThingsPlugin(Plugin):
    """Its things are in memory, by the id of their owner. It fails `failures` times."""

    name = "things"

    def __init__(self) -> None:
        self.private: dict[int, list[str]] = {}
        self.shared: dict[int, list[str]] = {}
        self.failures = 0
        self.calls: list[int] = []
        self.names: list[str] = []
        self.heirs: list[Scope] = []
        self.keeper: int | None = None

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        table = RouteTable("Things")

        @table.get("/v1/things/events", access=AUTHENTICATED, media_type="text/event-stream", returns=str)
        async def events(ctx: Context) -> Any:
            """Stream one event, then nothing."""
            return await send_events(ctx.request, ticks())

        async def ticks() -> Any:
            yield "tick", {}
            await asyncio.Event().wait()

        return [table]

    @hookimpl
    def on_account_event(self, account: Account, change: str) -> None:
        if change == "deleted":
            if account.id == self.keeper:
                raise Conflict("This account keeps the key of the archive")
            self.names.append(account.username)

    @hookimpl
    def hand_over_shared(self, unit: Unit, account: Account, heir: Scope | None) -> Sequence[SharedThing]:
        del unit
        things = self.shared.get(account.id, [])
        if heir is None:
            return [SharedThing("thing", name, name, "shared") for name in things]
        self.heirs.append(heir)
        self.shared[int(heir.account_id or 0)] = self.shared.pop(account.id, [])
        return []

    @hookimpl
    async def on_account_deleted(self, account_id: int) -> None:
        self.calls.append(account_id)
        if self.failures > 0:
            self.failures -= 1
            raise RuntimeError("the shelf is stuck")
        self.private.pop(account_id, None)


class DyingPlugin(Plugin):
    """Dies while it removes something, if `DIES` is set; notes in the folder what it has removed."""

    name = "dying"

    @hookimpl
    def on_account_deleted(self, platform: Platform, account_id: int) -> None:
        if os.environ.get("DIES"):
            os.kill(os.getpid(), signal.SIGKILL)
        (platform.settings.home / f"removed-{account_id}").touch()
