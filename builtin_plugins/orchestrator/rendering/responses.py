"""A chat as OpenAI's response, whole or as events."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from builtin_plugins.inference.api import openai_error
from builtin_plugins.orchestrator.api import FileHits
from builtin_plugins.orchestrator.events import Event, Events, Finished, ToolCall, ToolStep
from builtin_plugins.orchestrator.rendering.citations import address, citations
from builtin_plugins.orchestrator.rendering.file_search import file_citations, search_done
from builtin_plugins.orchestrator.schemas_responses import ResponseOut, ResponsesBody
from kernel.sdk import PlatformError

Json = dict[str, Any]


async def whole(events: Events, body: ResponsesBody) -> ResponseOut:
    """The response at once."""
    frame, searches = _Frame(body), list[Json]()
    async with aclosing(events):
        async for event in events:
            if isinstance(event, FileHits):
                searches = [search_done(_new("fs"), event, body)]
            elif isinstance(event, Finished):
                output = [_message(_new("msg"), event)] if event.text or not event.calls else []
                output += [_call(_new("fc"), call) for call in event.calls]
                return ResponseOut(**frame.finished(event, [*searches, *output]))
    raise AssertionError("a chat ends with Finished")


class _Frame:
    """The fields of a response that are known from its start."""

    def __init__(self, body: ResponsesBody) -> None:
        self._fixed: Json = {
            "id": _new("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "error": None,
            "instructions": body.instructions,
            "metadata": body.metadata or {},
            "parallel_tool_calls": body.parallel_tool_calls is not False,
            "temperature": body.temperature,
            "top_p": body.top_p,
            "max_output_tokens": body.max_output_tokens,
            "tool_choice": body.tool_choice or "auto",
            "tools": body.tools or [],
            "store": False,
            "previous_response_id": None,
        }
        self._model = body.model or ""

    def begun(self) -> Json:
        return {
            **self._fixed,
            "status": "in_progress",
            "model": self._model,
            "output": [],
            "usage": None,
            "incomplete_details": None,
        }

    def finished(self, end: Finished, output: Sequence[Json]) -> Json:
        cut = end.finish_reason == "length"
        return {
            **self._fixed,
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "model": end.model,
            "output": list(output),
            "usage": _usage(end),
            **end.platform_fields(),
        }


class Stream:
    """The events of one response, numbered, in the order that OpenAI's clients expect.

    Steps with the platform's tools are the event `response.platform_step`.
    """

    def __init__(self, body: ResponsesBody) -> None:
        self._body = body
        self._frame = _Frame(body)
        self._search = _new("fs") if body.file_search() else None
        self._output: list[Json] = []
        self._count = 0
        self._message_id = _new("msg")
        self._begun = False
        self._texts: list[str] = []

    async def frames(self, events: Events) -> AsyncGenerator[bytes, None]:
        """What is sent."""
        async with aclosing(events):
            async for event in events:
                for frame in self._frames(event):
                    yield frame

    def failed(self, error: PlatformError) -> bytes:
        """An error after the stream began."""
        return self._numbered("error", **openai_error(error))

    def _frames(self, event: Event) -> Iterator[bytes]:
        if isinstance(event, Finished):
            yield from self._end(event)
        elif isinstance(event, FileHits):
            yield from self._search_call(event)
        elif isinstance(event, str):
            yield from self._text(event)
        elif isinstance(event, ToolStep):
            yield from self._step(event)

    def _text(self, piece: str) -> Iterator[bytes]:
        yield from self._opening()
        if not self._texts:
            item = {**_message_frame(self._message_id), "status": "in_progress", "content": []}
            yield self._numbered("response.output_item.added", output_index=len(self._output), item=item)
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            yield self._numbered("response.content_part.added", **self._place(), part=part)
        self._texts.append(piece)
        yield self._numbered("response.output_text.delta", **self._place(), delta=piece, logprobs=[])

    def _step(self, step: ToolStep) -> Iterator[bytes]:
        yield from self._opening()
        yield self._numbered("response.platform_step", step=step.as_json())

    def _search_call(self, hits: FileHits) -> Iterator[bytes]:
        yield from self._opening()
        if self._search is None:
            return
        item = search_done(self._search, hits, self._body)
        yield self._numbered("response.file_search_call.completed", output_index=0, item_id=self._search)
        yield self._numbered("response.output_item.done", output_index=0, item=item)
        self._output.append(item)

    def _end(self, end: Finished) -> Iterator[bytes]:
        yield from self._opening()
        output = self._output
        if self._texts or not end.calls:
            if not self._texts:
                yield from self._text("")
            text = "".join(self._texts)
            item = _message(self._message_id, end, text)
            part = item["content"][0]
            for at, annotation in enumerate(part["annotations"]):
                yield self._numbered(
                    "response.output_text.annotation.added",
                    **self._place(),
                    annotation_index=at,
                    annotation=annotation,
                )
            yield self._numbered("response.output_text.done", **self._place(), text=text, logprobs=[])
            yield self._numbered("response.content_part.done", **self._place(), part=part)
            yield self._numbered("response.output_item.done", output_index=len(output), item=item)
            output.append(item)
        for call in end.calls:
            item = _call(_new("fc"), call)
            yield from self._called(len(output), item)
            output.append(item)
        whole = self._frame.finished(end, output)
        yield self._numbered(f"response.{whole['status']}", response=whole)

    def _called(self, at: int, item: Json) -> Iterator[bytes]:
        begun = {**item, "status": "in_progress", "arguments": ""}
        yield self._numbered("response.output_item.added", output_index=at, item=begun)
        place = {"item_id": item["id"], "output_index": at}
        arguments = item["arguments"]
        yield self._numbered("response.function_call_arguments.delta", **place, delta=arguments)
        yield self._numbered(
            "response.function_call_arguments.done", **place, name=item["name"], arguments=arguments
        )
        yield self._numbered("response.output_item.done", output_index=at, item=item)

    def _opening(self) -> Iterator[bytes]:
        if not self._begun:
            self._begun = True
            for kind in ("created", "in_progress"):
                yield self._numbered(f"response.{kind}", response=self._frame.begun())
            if self._search is not None:
                yield from self._searching(self._search)

    def _searching(self, name: str) -> Iterator[bytes]:
        item = {"id": name, "type": "file_search_call", "status": "in_progress", "queries": []}
        yield self._numbered("response.output_item.added", output_index=0, item={**item, "results": None})
        for kind in ("in_progress", "searching"):
            yield self._numbered(f"response.file_search_call.{kind}", output_index=0, item_id=name)

    def _place(self) -> Json:
        return {"item_id": self._message_id, "output_index": len(self._output), "content_index": 0}

    def _numbered(self, kind: str, **more: Any) -> bytes:
        event = {**more, "type": kind, "sequence_number": self._count}
        self._count += 1
        return _event(event)


def _message_frame(name: str) -> Json:
    return {"id": name, "type": "message", "role": "assistant"}


def _message(name: str, end: Finished, text: str | None = None) -> Json:
    content = end.text if text is None else text
    noted = file_citations(content, end) if end.files else _url_citations(content, end)
    part = {"type": "output_text", "text": content, "annotations": noted, "logprobs": []}
    return {**_message_frame(name), "status": "completed", "content": [part]}


def _url_citations(text: str, end: Finished) -> list[Json]:
    return [
        {
            "type": "url_citation",
            "start_index": start,
            "end_index": stop,
            "title": end.passages[number - 1].source,
            "url": address(end.passages[number - 1]),
        }
        for start, stop, number in citations(text, end.passages)
    ]


def _call(name: str, call: ToolCall) -> Json:
    fields = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
    return {"id": name, "type": "function_call", "status": "completed", **fields}


def _usage(end: Finished) -> Json | None:
    counted = end.tokens.as_json()
    if counted is None:
        return None
    return {
        "input_tokens": counted["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": counted["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": counted["total_tokens"],
    }


def _new(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(16)}"


def _event(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
