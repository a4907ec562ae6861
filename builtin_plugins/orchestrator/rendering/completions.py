"""A chat as OpenAI's chat completion, whole or in chunks, with the additional fields of a model runtime."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from builtin_plugins.inference import api as inference
from builtin_plugins.orchestrator.events import Event, Events, Finished, ToolStep
from builtin_plugins.orchestrator.rendering.citations import source_event, url_citations
from builtin_plugins.orchestrator.schemas import ChatBody, ChatCompletion
from kernel.sdk import PlatformError

DONE = b"data: [DONE]\n\n"
_PLACE = "\0text\0"
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


async def whole(events: Events) -> ChatCompletion:
    """The answer at once."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Finished):
                return _completion(event)
    raise AssertionError("a chat ends with Finished")


def _completion(end: Finished) -> ChatCompletion:
    created, message = int(time.time()), _message(end)
    choice = {
        "index": 0,
        "message": message,
        "logprobs": end.logprobs_object,
        "finish_reason": end.finish_reason,
    }
    return ChatCompletion(
        id=_new_id(),
        created=created,
        created_at=datetime.fromtimestamp(created, UTC),
        model=end.model,
        choices=[choice],
        message=message,
        usage=end.tokens.as_json(),
        **end.platform_fields(),
    )


def _message(end: Finished) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": end.text}
    if end.calls:
        message["tool_calls"] = [call.as_message_part() for call in end.calls]
    if end.thought:
        message["reasoning_content"] = end.thought
    if end.passages:
        message["annotations"] = url_citations(end.text, end.passages)
    return message


async def chunks(events: Events, body: ChatBody) -> AsyncGenerator[bytes, None]:
    """The answer as OpenAI's chunks, then ``[DONE]``. Steps are our own field in the delta."""
    stream = _Chunks(body.model or "")
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Finished):
                for chunk in stream.last(event, with_usage=body.wants_usage):
                    yield chunk
            elif isinstance(event, str):
                yield stream.text(event)
            else:
                yield stream.chunk(_delta(event))
    yield DONE


def failed(error: PlatformError) -> bytes:
    """An error after the stream began, as OpenAI's clients read it."""
    return _data({"error": inference.openai_error(error)})


class _Chunks:
    """The frame that all chunks of one answer share. The first one names the role."""

    def __init__(self, model: str) -> None:
        self._id = _new_id()
        self._created = int(time.time())
        self._model = model
        self._named = False
        self._around_text: tuple[bytes, bytes] | None = None

    def text(self, piece: str) -> bytes:
        """A chunk with text, put into a prebuilt frame: thousands of chunks differ only in their text."""
        if self._around_text is None:
            first = self.chunk({"content": piece})
            before, _, after = self.chunk({"content": _PLACE}).rpartition(_dumped(_PLACE))
            self._around_text = before, after
            return first
        before, after = self._around_text
        return before + _dumped(piece) + after

    def chunk(self, delta: dict[str, Any], **more: Any) -> bytes:
        if not self._named:
            self._named = True
            delta = {"role": "assistant", "content": "", **delta}
        logprobs, reason = more.pop("logprobs", None), more.pop("reason", None)
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return self._framed([choice], **more)

    def last(self, end: Finished, *, with_usage: bool) -> list[bytes]:
        self._model = end.model
        delta: dict[str, Any] = {}
        more: dict[str, Any] = end.platform_fields()
        if end.passages:
            delta["annotations"] = url_citations(end.text, end.passages)
            more["event"] = source_event(end.passages)
        about = {"reason": end.finish_reason, "logprobs": end.logprobs_object}
        frames = [self.chunk(delta, **about, **more)]
        if with_usage:
            frames.append(self._framed([], usage=end.tokens.as_json()))
        return frames

    def _framed(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        return _data(
            {
                "id": self._id,
                "object": "chat.completion.chunk",
                "created": self._created,
                "model": self._model,
                "choices": choices,
                **more,
            }
        )


def _delta(event: Event) -> dict[str, Any]:
    if isinstance(event, inference.Thought):
        return {"reasoning_content": event.text}
    if isinstance(event, ToolStep):
        return {"platform_step": event.as_json()}
    assert isinstance(event, inference.ToolCallPart)
    function = {"name": event.name, "arguments": event.arguments}
    call: dict[str, Any] = {"index": event.index, "type": "function", "id": event.id, "function": function}
    if not event.name:  # a further piece of a call whose name was already sent
        call = {"index": event.index, "function": {"arguments": event.arguments}}
    return {"tool_calls": [call]}


def _new_id() -> str:
    return f"chatcmpl-{secrets.token_hex(12)}"


def _data(value: Any) -> bytes:
    return b"data: %b\n\n" % _dumped(value)


def _dumped(value: Any) -> bytes:
    return _encoded(value).encode()
