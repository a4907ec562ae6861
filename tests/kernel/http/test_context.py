"""What a handler gets."""

from __future__ import annotations

from kernel.sdk import AUTHENTICATED, Context, Plugin, RouteTable, audit, hookimpl
from kernel.testing import Start
from tests.fakes.audit import audited

routes = RouteTable("Notes")


@routes.post("/v1/notes", access=AUTHENTICATED, status=204)
async def note(ctx: Context) -> None:
    """Write an audit entry for the caller."""
    caller = ctx.caller
    await caller.platform.database.write(
        lambda unit: audit(unit, "note.made", "account", caller.id, origin=caller.origin)
    )


class NotesPlugin(Plugin):
    """One route that audits its caller."""

    name = "notes"

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        return [routes]


async def test_the_caller_is_audited(start_platform: Start) -> None:
    """`ctx.caller` names the account, and for the audit log also from where it came."""
    running = await start_platform(NotesPlugin)
    mia = await running.user("mia")
    assert (await mia.post("/v1/notes", headers={"User-Agent": "notes/1"})).status == 204
    [entry] = await audited(running.platform, "note.made")
    assert (entry.actor_id, entry.target_id) == (mia.user["id"], str(mia.user["id"]))
    assert (entry.ip_address, entry.user_agent) == ("127.0.0.1", "notes/1")
