"""A chat in which the model calls the platform's tools as the caller (wire-facts 8.2).

At most five rounds with eight calls each, then a last turn without tools.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from builtin_plugins.inference import api as inference
from builtin_plugins.orchestrator.events import Approval, Events, Finished, TokenUsage, ToolCall, ToolStep
from builtin_plugins.orchestrator.schemas import ChatBody
from builtin_plugins.orchestrator.services.approvals import confirmed, keep_waiting
from builtin_plugins.orchestrator.services.call_parsing import arguments_of, call_in_text
from builtin_plugins.orchestrator.services.plain import ask_model, plain_chat
from builtin_plugins.orchestrator.services.tool_results import flattened, with_rule
from builtin_plugins.orchestrator.services.turns import ChatTurn
from builtin_plugins.orchestrator.settings import OrchestratorSettings
from builtin_plugins.tools.api import TOOLS, Tool, ToolReply, failed_reply
from kernel.sdk import BadRequest, Context, PlatformError

ROUNDS = 5
CALLS_PER_TURN = 8

Mode = Literal["none", "read_only", "all"]
_FINAL = (404, 429, 504)  # errors of a runtime that are not about the tools


def mode_of(ctx: Context, body: ChatBody) -> Mode:
    """What the model may call: what the client requests, as far as the operator allows."""
    cap = ctx.settings_of(OrchestratorSettings).tools
    if body.platform_tools is False or cap == "none":
        return "none"
    return "read_only" if body.platform_tools == "read_only" else cap


@dataclass(frozen=True)
class _Planned:
    """A call that is about to be made; if there is no such tool, `refusal` is returned instead."""

    call: ToolCall
    tool: Tool | None
    arguments: Any
    refusal: ToolReply | None = None


class ToolChat:
    """One such chat."""

    def __init__(self, ctx: Context, body: ChatBody, tools: Sequence[Tool]) -> None:
        self._ctx = ctx
        self._body = body
        self._tools = {tool.name: tool for tool in tools}
        self._theirs = {_name_of(tool) for tool in body.tools or ()}
        self._messages = with_rule(body.given_messages)
        self._tokens = TokenUsage()
        self._steps: list[ToolStep] = []
        self._degraded: list[str] = []

    async def run(self) -> Events:
        """The chat's events. Raises what the runtime raises, and NotWaiting."""
        async with aclosing(self._confirmed_calls()) as steps:
            async for event in steps:
                yield event
        for _ in range(ROUNDS):
            turn = ChatTurn(hold=True)
            try:
                async with aclosing(turn.follow(self._ask(with_tools=True))) as events:
                    async for event in events:
                        yield event
            except PlatformError as error:
                if turn.began or error.status in _FINAL:
                    raise
                async with aclosing(self._without_tools(error)) as events:
                    async for event in events:
                        yield event
                return
            self._tokens.add(turn.ended())
            calls = turn.calls or self._in_text(turn)
            async with aclosing(self._after(turn, calls)) as events:
                async for event in events:
                    yield event
                    if isinstance(event, Finished):
                        return
        async with aclosing(self._last_turn()) as events:
            async for event in events:
                yield event

    async def _after(self, turn: ChatTurn, calls: Sequence[ToolCall]) -> Events:
        """What follows a turn: the end, or the calls that it requests."""
        theirs = [call for call in calls if call.name in self._theirs]
        if not calls:
            if turn.pending_text:
                yield turn.pending_text
            yield self._finished(turn, turn.text)
        elif theirs:
            for index, call in enumerate(theirs):
                yield inference.ToolCallPart(index, call.id, call.name, call.arguments)
            yield self._finished(turn, turn.text, calls=theirs, reason="tool_calls")
        else:
            planned = [self._plan(call) for call in calls[:CALLS_PER_TURN]]
            approvals = await self._approvals(planned)
            if approvals:
                text = _asking(approvals)
                yield text
                yield self._finished(turn, text, approvals=approvals)
                return
            if turn.text and not turn.pending_text:
                yield "\n\n"  # the model's next text is a new paragraph
            async with aclosing(self._make(planned, turn.text if turn.calls else "")) as events:
                async for event in events:
                    yield event

    async def _make(self, planned: Sequence[_Planned], text: str) -> Events:
        """Make the calls, read-only ones in parallel, and pass the results to the model."""
        for plan in planned:
            yield self._record(ToolStep("running", plan.call.name, plan.arguments))
        reads = all(plan.tool is None or plan.tool.read_only for plan in planned)
        if reads:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._reply(plan)) for plan in planned]
            replies = [task.result() for task in tasks]
        else:
            replies = [await self._reply(plan) for plan in planned]
        calls = [plan.call.as_message_part() for plan in planned]
        self._messages.append({"role": "assistant", "content": text, "tool_calls": calls})
        for plan, reply in zip(planned, replies, strict=True):
            status: Literal["done", "failed"] = "failed" if reply.failed else "done"
            yield self._record(ToolStep(status, plan.call.name, plan.arguments, reply.text))
            self._messages.append(
                {
                    "role": "tool",
                    "tool_call_id": plan.call.id,
                    "name": plan.call.name,
                    "content": reply.text,
                }
            )

    async def _reply(self, plan: _Planned) -> ToolReply:
        if plan.tool is None or plan.refusal is not None:
            return plan.refusal or failed_reply(BadRequest())
        seconds = self._ctx.settings_of(OrchestratorSettings).tool_seconds
        tools = self._ctx.resource(TOOLS)
        return await tools.reply(self._ctx, plan.tool, plan.arguments, seconds=seconds)

    def _plan(self, call: ToolCall) -> _Planned:
        """A call with its tool and arguments; tools not offered in this chat count as unknown."""
        tool = self._tools.get(call.name)
        if tool is None:
            text = f"error: there is no tool '{call.name[:80]}'; available: {', '.join(self._tools)}"
            return _Planned(call, None, call.arguments, ToolReply(text[:4000], failed=True))
        try:
            return _Planned(call, tool, arguments_of(call, tool))
        except BadRequest as error:
            return _Planned(call, tool, call.arguments, ToolReply(f"error: {error.detail}", failed=True))

    async def _approvals(self, planned: Sequence[_Planned]) -> list[Approval]:
        """Store the calls that need confirmation; none if the operator requires no confirmation."""
        policy = self._ctx.settings_of(OrchestratorSettings).confirm
        waiting = [
            (plan.tool, plan.arguments)
            for plan in planned
            if plan.tool is not None and plan.refusal is None and _waits(plan.tool, policy)
        ]
        return await keep_waiting(self._ctx, waiting) if waiting else []

    async def _confirmed_calls(self) -> Events:
        """Make the calls that the user has confirmed, before the model continues."""
        resolved = await confirmed(self._ctx, self._body.platform_approvals or ())
        calls = [
            ToolCall(f"call_{secrets.token_hex(8)}", one.tool, json.dumps(one.arguments, ensure_ascii=False))
            for one in resolved
        ]
        if calls:
            async with aclosing(self._make([self._plan(call) for call in calls], "")) as events:
                async for event in events:
                    yield event

    async def _without_tools(self, error: PlatformError) -> Events:
        """A call without tools, in place of one that failed with them, including their results so far."""
        notice = "tools: the model runtime refused the request with tools; the model answers without them"
        if not self._steps:
            async with aclosing(
                plain_chat(self._ctx, self._body, offered=False, degraded=[notice])
            ) as events:
                async for event in events:
                    yield event
            return
        self._degraded.append(notice)
        self._messages = flattened(self._messages)
        async with aclosing(self._last_turn()) as events:
            async for event in events:
                yield event

    async def _last_turn(self) -> Events:
        turn = ChatTurn()
        async with aclosing(turn.follow(self._ask(with_tools=False))) as events:
            async for event in events:
                yield event
        self._tokens.add(turn.ended())
        yield self._finished(turn, turn.text)

    def _ask(self, *, with_tools: bool) -> inference.ChatEvents:
        """A call that the client requires is only forced once: a model that must call never answers."""
        tools = [*(_definition(tool) for tool in self._tools.values()), *(self._body.tools or ())]
        options = self._body.options
        if self._steps and options.get("tool_choice") not in ("auto", "none"):
            options.pop("tool_choice", None)
        return ask_model(self._ctx, self._body, self._messages, tools if with_tools else (), options)

    def _in_text(self, turn: ChatTurn) -> list[ToolCall]:
        call = call_in_text(turn.text, self._tools)
        return [call] if call else []

    def _record(self, step: ToolStep) -> ToolStep:
        if step.status != "running":
            self._steps.append(step)
        return step

    def _finished(
        self,
        turn: ChatTurn,
        text: str,
        *,
        calls: Sequence[ToolCall] = (),
        reason: str | None = None,
        approvals: Sequence[Approval] = (),
    ) -> Finished:
        end = turn.ended()
        model_reason = "stop" if end.finish_reason == "tool_calls" else end.finish_reason
        return Finished(
            end.model,
            text,
            reason or model_reason,
            self._tokens,
            thought=turn.thought,
            calls=calls,
            offered=True,
            calls_made=len(self._steps),
            steps=self._steps,
            approvals=approvals,
            logprobs=() if approvals else end.logprobs,
            degraded=self._degraded,
        )


def _definition(tool: Tool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}


def _name_of(tool: Mapping[str, Any]) -> str:
    function = tool.get("function")
    return str(function.get("name", "")) if isinstance(function, Mapping) else ""


def _waits(tool: Tool, policy: str) -> bool:
    if policy == "writes":
        return not tool.read_only
    return policy == "destructive" and tool.annotations["destructiveHint"]


def _asking(approvals: Sequence[Approval]) -> str:
    """The question to the user, in words; the calls are also in `platform_approvals`."""
    lines = [
        f"- {one.tool} with {json.dumps(one.arguments, ensure_ascii=False)} (approval {one.id})"
        for one in approvals
    ]
    return "This needs your confirmation before it is done:\n" + "\n".join(lines)
