"""Calls that wait for their user: shown resolved, made once, by nobody else, and forgotten in time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import select, update

from builtin_plugins.orchestrator.models import PendingCall
from kernel.sdk import utc_now
from kernel.testing import postgres_database
from tests.builtin_plugins.orchestrator.chat_support import CHAT, Stage, stage_with, tool_call
from tests.fakes.deleting import delete_account
from tests.fakes.model_server import Turn
from tests.fakes.own_clock import OwnClock

pytestmark = pytest.mark.asyncio(loop_scope="module")

OLD = tool_call("office_delete", name="old")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgresql"])
async def careful(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    """A platform whose operator wants destructive calls confirmed."""
    env = {"PLATFORM_ORCHESTRATOR_CONFIRM": "destructive"}
    folder = tmp_path_factory.mktemp("careful")
    if request.param == "sqlite":
        async with stage_with(folder, "openai", env) as stage:
            yield stage
        return
    with postgres_database() as url:
        async with stage_with(folder, "openai", {**env, "DATABASE_URL": url}) as stage:
            yield stage


async def waiting(stage: Stage) -> dict[str, Any]:
    """The call that a chat leaves waiting."""
    stage.play(OLD)
    answer = await stage.answer("Delete the old one.", platform_tools=True)
    assert stage.office.deleted == [] and len(stage.prompts) == 1
    return dict(answer["platform_approvals"][0])


async def test_shown(careful: Stage) -> None:
    """The answer names the resolved call, in fields and in words; nothing is done."""
    found = await waiting(careful)
    assert found["tool"] == "office_delete" and found["arguments"] == {"name": "old"}
    careful.play(OLD)
    streamed = await careful.stream("Delete it.", platform_tools=True)
    last = next(chunk for chunk in streamed.chunks if "platform_approvals" in chunk)
    assert last["platform_approvals"][0]["id"] in streamed.text
    assert "confirmation" in streamed.text and '{"name": "old"}' in streamed.text
    assert streamed.finish_reason == "stop" and careful.office.deleted == []


async def test_confirmed_once(careful: Stage) -> None:
    """Sent back, it is made as shown, and the model goes on; the second time it waits no longer."""
    found = await waiting(careful)
    careful.play(answer="It is gone.")
    again = {"platform_tools": True, "platform_approvals": [found["id"]]}
    answer = await careful.answer("Delete the old one.", **again)
    assert careful.office.deleted == ["old"] and careful.office.callers == ["ann"]
    assert answer["message"]["content"] == "It is gone." and answer["platform_tool_calls_made"] == 1
    told = careful.prompts[0]["messages"][-1]
    assert told["role"] == "tool" and '"deleted": "old"' in told["content"]
    careful.play()
    for stream in (False, True):
        reply = await careful.chat(stream=stream, **again)
        assert reply.status == 409 and reply.json()["code"] == "approval_not_waiting"
    assert careful.office.deleted == []


async def test_nobody_elses(careful: Stage) -> None:
    """Another account's approval answers like an unknown one, and stays."""
    found, ben = await waiting(careful), await careful.running.user()
    careful.play()
    replies = [
        await careful.chat(actor=ben, platform_tools=True, platform_approvals=[one])
        for one in (found["id"], "apr_unknown")
    ]
    assert [reply.status for reply in replies] == [409, 409]
    assert replies[0].detail.replace(found["id"], "apr_unknown") == replies[1].detail
    answer = await careful.answer(platform_tools=True, platform_approvals=[found["id"]])
    assert answer["platform_tool_calls_made"] == 1


async def test_expired(careful: Stage) -> None:
    """After its minutes a call waits no longer."""
    found = await waiting(careful)
    past = update(PendingCall).values(expires_at=utc_now() - timedelta(seconds=1))
    await careful.running.platform.database.write(lambda unit: unit.session.execute(past) and None)
    reply = await careful.chat(platform_tools=True, platform_approvals=[found["id"]])
    assert reply.status == 409


@pytest.mark.long
async def test_another_machines_clock(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call waits its minutes by the database's clock: a machine that is ahead forgets none too early."""
    clock, env = OwnClock(monkeypatch), {"PLATFORM_ORCHESTRATOR_CONFIRM": "destructive"}
    async with stage_with(tmp_path, "openai", {**env, "DATABASE_URL": postgres_url}) as stage:
        found = await waiting(stage)
        clock.by(660)
        ahead = await waiting(stage)
        for moment, approval in ((0, found), (660, ahead)):
            clock.by(moment)
            stage.play(answer="It is gone.")
            await stage.answer(platform_tools=True, platform_approvals=[approval["id"]])
            assert stage.office.deleted == ["old"]
            left = datetime.fromisoformat(approval["expires_at"]) - datetime.now(UTC)
            assert timedelta(minutes=5) < left <= timedelta(minutes=10)


async def test_reads_go_on(careful: Stage) -> None:
    """What only reads needs no confirmation; with one call that does, none of the turn is made."""
    reading = ("office_weather", {"city": "Oslo"})
    careful.play(Turn(calls=[reading]))
    assert (await careful.answer(platform_tools=True))["platform_tool_calls_made"] == 1
    careful.play(Turn(calls=[reading, ("office_delete", {"name": "old"})]))
    answer = await careful.answer(platform_tools=True)
    assert answer["platform_tool_calls_made"] == 0 and len(answer["platform_approvals"]) == 1
    assert careful.office.callers == []


async def test_mode_still_holds(careful: Stage) -> None:
    """A confirmation opens nothing that the chat's mode closes."""
    found = await waiting(careful)
    careful.play()
    await careful.answer(platform_tools="read_only", platform_approvals=[found["id"]])
    assert careful.office.deleted == []


async def test_ids_are_bounded(careful: Stage) -> None:
    """More than eight at once, or a long one, is no approval."""
    for ids in (["x"] * 9, ["x" * 65]):
        body = {"messages": [{"role": "user", "content": "x"}], "platform_approvals": ids}
        assert (await careful.ann.post(CHAT, json=body)).status == 422


@pytest.mark.parametrize(("cap", "offered"), [("none", False), ("read_only", True)])
async def test_cap(tmp_path_factory: pytest.TempPathFactory, cap: str, offered: bool) -> None:
    """What the operator does not allow, no client gets."""
    folder = tmp_path_factory.mktemp("capped")
    async with stage_with(folder, "ollama", {"PLATFORM_ORCHESTRATOR_TOOLS": cap}) as stage:
        stage.play(OLD)
        answer = await stage.answer(platform_tools=True)
        assert answer["platform_tools_offered"] is offered and stage.office.deleted == []
        names = {tool["function"]["name"] for tool in stage.prompts[0].get("tools", ())}
        assert "office_delete" not in names and ("office_weather" in names) is offered


async def test_the_account_is_deleted(careful: Stage) -> None:
    """A call that awaits confirmation is removed; another account's still waits."""
    mine, ben = await waiting(careful), await careful.running.user()
    careful.play(OLD)
    reply = await careful.chat("Delete the old one.", actor=ben, platform_tools=True)
    assert reply.json()["platform_approvals"]
    await delete_account(careful.running, ben)
    subjects = select(PendingCall.subject)
    left = await careful.running.platform.database.read(lambda session: set(session.scalars(subjects)))
    assert str(ben.user["id"]) not in left
    careful.play(answer="It is gone.")
    answer = await careful.answer(platform_tools=True, platform_approvals=[mine["id"]])
    assert answer["platform_tool_calls_made"] == 1
