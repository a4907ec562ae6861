"""A scripted model server on a real socket: Ollama's protocol and OpenAI's, with faults on request.

async with model_server(Script(answer="Paris [1].")) as server:
    runtime = OllamaRuntime(session, server.url)
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

Json = dict[str, Any]
SECRET_TEXT = "cuda error at 0xdead on host gpu-7.internal"
"""What a real driver would let slip; no error of the platform may repeat it."""


@dataclass(frozen=True)
class Refusal:
    """Answer with this status and, unless ``body`` says otherwise, the protocol's error object."""

    status: int
    body: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


Start = Refusal | Literal["drop", "hang", "garbage", "hang_after_headers"]
Middle = Literal["error", "drop", "hang", "garbage", "end", "endless_line"]


@dataclass(frozen=True)
class Turn:
    """What the model says in one turn of a chat: a text, thoughts, calls of tools as (name, arguments).

    Arguments that are a text go out as they are, whatever they are. `logprobs` has an entry for each token.
    `call_deltas` are the lists of tool calls in a stream of OpenAI's protocol, as another server sends them.
    """

    text: str = ""
    calls: Sequence[tuple[str, Json | str]] = ()
    thought: str = ""
    logprobs: Sequence[Json] = ()
    call_deltas: Sequence[Sequence[Json]] = ()


_TURN = web.RequestKey("turn", Turn)


@dataclass
class PullScript:
    """A model that can be pulled: its files' bytes, told in `steps`; what was fetched once stays.

    The connection is lost when that many bytes of all files are there (`lost_at`, each once). With `gate` the
    pull goes no further than half until it is set. `error` ends it with those words.
    """

    files: Sequence[int] = (1_000, 4_000)
    steps: int = 5
    lost_at: list[int] = field(default_factory=list)
    gate: asyncio.Event | None = None
    error: str | None = None
    completed: int = 0
    attempts: int = 0


@dataclass
class Script:
    """What the server does.

    ``turn``: what the model says next, from the body of the request; None for ``answer``.

    ``answer``: the text, or a function of the last user message. ``pieces``: characters in each delta.
    ``bytes_per_write``: cut the wire into pieces this small, UTF-8 sequences included.
    ``start``: instead of an answer, for the first ``start_times`` requests (None: for all).
    ``middle``: what happens to a stream after ``middle_after`` deltas. ``pause_s``: wait before each delta.
    ``api_key``: refuse requests without it. ``counts``: prompt and answer tokens, None to leave them out.
    ``without``: paths that it doesn't have.
    ``reverse_embeddings``: list them last text first, as the OpenAI protocol allows.
    """

    answer: str | Callable[[str], str] = "Hello from the fake."
    turn: Callable[[Json], Turn | Refusal | None] | None = None
    models: Sequence[str] = ("tiny:latest", "tiny")
    pieces: int = 4
    bytes_per_write: int | None = None
    without: Collection[str] = ()
    start: Start | None = None
    start_times: int | None = None
    middle: Middle | None = None
    middle_after: int = 1
    pause_s: float = 0.0
    api_key: str | None = None
    counts: tuple[int, int] | None = (11, 7)
    embedding: Callable[[str], list[float]] | None = None
    reverse_embeddings: bool = False
    pulls: dict[str, PullScript] = field(default_factory=dict)
    done_marker: bool = True
    finish_reason: str | None = "stop"


@dataclass(frozen=True)
class Received:
    """One request that arrived."""

    method: str
    path: str
    body: Json
    headers: dict[str, str]


class ModelServer:
    """A running server: its address, what it received, and whether a client hung up before the end."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.url = ""
        self.requests: list[Received] = []
        self.streaming = asyncio.Event()
        self.disconnected = asyncio.Event()
        self._started = 0

    def application(self) -> web.Application:
        app = web.Application(client_max_size=64 << 20)
        app.add_routes(
            [
                web.get("/api/version", self._version),
                web.get("/api/tags", self._tags),
                web.post("/api/show", self._show),
                web.post("/api/pull", self._pull),
                web.delete("/api/delete", self._delete),
                web.post("/api/chat", self._ollama_chat),
                web.post("/api/embed", self._ollama_embed),
                web.get("/v1/models", self._openai_models),
                web.get("/v1/models/{model}", self._openai_model),
                web.post("/v1/chat/completions", self._openai_chat),
                web.post("/v1/embeddings", self._openai_embed),
            ]
        )
        app.middlewares.append(self._scripted)
        return app

    @web.middleware
    async def _scripted(
        self, request: web.Request, handler: Callable[[web.Request], Any]
    ) -> web.StreamResponse:
        body = await _body(request)
        self.requests.append(Received(request.method, request.path, body, dict(request.headers)))
        try:
            answer: web.StreamResponse = await self._begin(request, handler, body)
        except (asyncio.CancelledError, ConnectionResetError):
            self.disconnected.set()
            raise
        return answer

    async def _begin(
        self, request: web.Request, handler: Callable[[web.Request], Any], body: Json
    ) -> web.StreamResponse:
        if (key := self.script.api_key) and request.headers.get("Authorization") != f"Bearer {key}":
            return _refuse(request, 401)
        if request.path in self.script.without:
            return _refuse(request, 404)
        if self._misbehaves_now():
            return await self._misbehave(request)
        model = body.get("model", request.match_info.get("model"))
        if model is not None and model not in self.script.models and request.path != "/api/pull":
            return _refuse(request, 404, f"model '{model}' not found")
        turn = self.script.turn(body) if self.script.turn is not None and "messages" in body else None
        if isinstance(turn, Refusal):
            return _refuse(request, turn.status, body=turn.body, headers=turn.headers)
        request[_TURN] = turn or Turn(self._text(body) if "messages" in body else "")
        answer: web.StreamResponse = await handler(request)
        return answer

    def _misbehaves_now(self) -> bool:
        self._started += 1
        times = self.script.start_times
        return self.script.start is not None and (times is None or self._started <= times)

    async def _misbehave(self, request: web.Request) -> web.StreamResponse:
        start = self.script.start
        if isinstance(start, Refusal):
            return _refuse(request, start.status, body=start.body, headers=start.headers)
        if start == "hang":
            await asyncio.Event().wait()
        if start == "hang_after_headers":
            response = web.StreamResponse()
            await response.prepare(request)
            self.streaming.set()
            await asyncio.Event().wait()
        if start == "garbage":
            return web.Response(text="<html>not json", content_type="application/json")
        return _drop(request)

    # Ollama

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": "0.40.12"})

    async def _tags(self, request: web.Request) -> web.Response:
        details = {"family": "llama", "parameter_size": "3.2B", "quantization_level": "Q4_K_M"}
        models = [
            {"name": name, "model": name, "size": 1230000000, "modified_at": "2026-11-01T10:00:00Z"}
            for name in self.script.models
        ]
        return web.json_response({"models": [{**model, "details": details} for model in models]})

    async def _show(self, request: web.Request) -> web.Response:
        return web.json_response({"details": {"family": "llama"}, "capabilities": ["completion", "tools"]})

    async def _delete(self, request: web.Request) -> web.Response:
        gone = (await request.json())["model"]
        self.script.models = [name for name in self.script.models if name != gone]
        return web.Response()

    async def _pull(self, request: web.Request) -> web.StreamResponse:
        model = (await request.json())["model"]
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        await response.write(_line({"status": "pulling manifest"}))
        script = self.script.pulls.get(model)
        if script is None or script.error:
            error = script.error if script else "pull model manifest: file does not exist"
            await response.write(_line({"error": error}))
            return response
        script.attempts += 1
        while script.completed < sum(script.files):
            if script.lost_at and script.completed >= script.lost_at[0]:
                script.lost_at.pop(0)
                return _drop(request)
            self.streaming.set()
            if script.gate is not None and script.completed * 2 >= sum(script.files):
                await script.gate.wait()
            script.completed = min(sum(script.files), script.completed + sum(script.files) // script.steps)
            for line in _pull_lines(script):
                await response.write(_line(line))
            await asyncio.sleep(0)
        self.script.models = [*self.script.models, model]
        await response.write(_line({"status": "writing manifest"}) + _line({"status": "success"}))
        return response

    async def _ollama_chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        model, turn = body["model"], request[_TURN]
        last: Json = {"done": True, "done_reason": self.script.finish_reason, **self._ollama_counts()}
        if body.get("stream") is False:
            whole = _ollama_part(model, turn.text)
            whole["message"].update(_ollama_extras(turn))
            whole |= {"logprobs": list(turn.logprobs)} if turn.logprobs else {}
            return web.json_response({**whole, **last})
        deltas = [_line({**_ollama_part(model, piece), "done": False}) for piece in self._pieces(turn.text)]
        if extras := _ollama_extras(turn):
            asking = _ollama_part(model, "")
            asking["message"].update(extras)
            deltas.append(_line({**asking, "done": False}))
        deltas += [_line({**_ollama_part(model, ""), "logprobs": [told]}) for told in turn.logprobs]
        ending = _line({**_ollama_part(model, ""), **last})
        return await self._stream(request, "application/x-ndjson", deltas, [ending])

    async def _ollama_embed(self, request: web.Request) -> web.Response:
        body = await request.json()
        return web.json_response(
            {"model": body["model"], "embeddings": [self._embed(text) for text in body["input"]]}
        )

    def _ollama_counts(self) -> Json:
        counts = self.script.counts
        return {"prompt_eval_count": counts[0], "eval_count": counts[1]} if counts else {}

    # OpenAI

    async def _openai_models(self, request: web.Request) -> web.Response:
        data = [{"id": name, "object": "model", "owned_by": "fake"} for name in self.script.models]
        return web.json_response({"object": "list", "data": data})

    async def _openai_model(self, request: web.Request) -> web.Response:
        return web.json_response({"id": request.match_info["model"], "object": "model"})

    async def _openai_chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        turn, reason = request[_TURN], self.script.finish_reason
        if (turn.calls or turn.call_deltas) and reason:
            reason = "tool_calls"
        if not body.get("stream"):
            message = {"role": "assistant", "content": turn.text, **_openai_extras(turn)}
            told = {"content": list(turn.logprobs)} if turn.logprobs else None
            choice = {"index": 0, "message": message, "logprobs": told, "finish_reason": reason}
            return web.json_response(
                {"id": "c1", "model": body["model"], "choices": [choice], "usage": self._usage()}
            )
        deltas = [_openai_chunk(body["model"], {"content": piece}) for piece in self._pieces(turn.text)]
        deltas += [_openai_chunk(body["model"], delta) for delta in self._call_deltas(turn)]
        deltas += [_openai_chunk(body["model"], {}, logprobs={"content": [told]}) for told in turn.logprobs]
        opening = _openai_chunk(body["model"], {"role": "assistant", "content": ""})
        return await self._stream(
            request, "text/event-stream", [b": keep-alive\n\n" + opening + deltas[0], *deltas[1:]],
            self._openai_ending(body, reason),
        )  # fmt: skip

    def _call_deltas(self, turn: Turn) -> list[Json]:
        """The calls of a turn, each named first and then spelled out, as OpenAI streams them."""
        deltas: list[Json] = [{"reasoning_content": turn.thought}] if turn.thought else []
        deltas += [{"tool_calls": list(calls)} for calls in turn.call_deltas]
        for index, call in enumerate(_openai_extras(turn).get("tool_calls", ())):
            text = call["function"].pop("arguments")
            call["function"]["arguments"] = ""
            deltas.append({"tool_calls": [{"index": index, **call}]})
            for piece in self._pieces(text):
                deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        return deltas

    def _openai_ending(self, body: Json, reason: str | None) -> list[bytes]:
        ending: list[bytes] = []
        if reason:
            ending.append(_openai_chunk(body["model"], {}, reason))
        if self.script.counts and body.get("stream_options", {}).get("include_usage"):
            ending.append(_event({"model": body["model"], "choices": [], "usage": self._usage()}))
        if self.script.done_marker:
            ending.append(b"data: [DONE]\n\n")
        return ending

    async def _openai_embed(self, request: web.Request) -> web.Response:
        body = await request.json()
        data = [
            {"object": "embedding", "index": index, "embedding": self._embed(text)}
            for index, text in enumerate(body["input"])
        ]
        if self.script.reverse_embeddings:
            data.reverse()
        return web.json_response({"object": "list", "model": body["model"], "data": data})

    def _usage(self) -> Json | None:
        if not (counts := self.script.counts):
            return None
        return {"prompt_tokens": counts[0], "completion_tokens": counts[1], "total_tokens": sum(counts)}

    # Both

    def _text(self, body: Json) -> str:
        answer = self.script.answer
        prompts = [message["content"] for message in body["messages"] if message["role"] == "user"]
        prompts = [prompt if isinstance(prompt, str) else str(prompt) for prompt in prompts]
        return answer if isinstance(answer, str) else answer(prompts[-1] if prompts else "")

    def _pieces(self, text: str) -> list[str]:
        size = self.script.pieces
        return [text[start : start + size] for start in range(0, len(text), size)] or [""]

    def _embed(self, text: str) -> list[float]:
        return (self.script.embedding or word_vector)(text)

    async def _stream(
        self, request: web.Request, content_type: str, deltas: list[bytes], ending: list[bytes]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": content_type})
        await response.prepare(request)
        for number, delta in enumerate(deltas):
            if self.script.middle and number == self.script.middle_after:
                return await self._break(request, response)
            await asyncio.sleep(self.script.pause_s)
            await self._write(response, delta)
            self.streaming.set()
        await self._write(response, b"".join(ending))
        await response.write_eof()
        return response

    async def _write(self, response: web.StreamResponse, data: bytes) -> None:
        size = self.script.bytes_per_write or max(len(data), 1)
        for start in range(0, len(data), size):
            await response.write(data[start : start + size])
            await asyncio.sleep(0)

    async def _break(self, request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
        middle, sse = self.script.middle, request.path.startswith("/v1/")
        if middle == "hang":
            await asyncio.Event().wait()
        if middle == "drop":
            return _drop(request)
        if middle == "error":
            await response.write(_event(_openai_error(500)) if sse else _line({"error": SECRET_TEXT}))
        if middle == "garbage":
            await response.write(b"data: {oops\n\n" if sse else b"{oops\n")
        while middle == "endless_line":
            await response.write(b"data: " + b"x" * 65536)
        await response.write_eof()
        return response


@asynccontextmanager
async def model_server(script: Script | None = None) -> AsyncIterator[ModelServer]:
    """A server on a free loopback port, stopped at exit without waiting for streams that hang."""
    server = ModelServer(script or Script())
    runner = web.AppRunner(
        server.application(), handler_cancellation=True, access_log=None, shutdown_timeout=0.2
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.url = f"http://{host}:{port}"
        yield server
    finally:
        await runner.cleanup()


def word_vector(text: str, size: int = 16) -> list[float]:
    """A bag of hashed words: texts that share words are near each other. Not normalized."""
    vector = [0.0] * size
    for word in text.lower().split():
        vector[hashlib.sha256(word.encode()).digest()[0] % size] += 1.0
    return vector if math.hypot(*vector) else [1.0, *vector[1:]]


async def _body(request: web.Request) -> Json:
    raw = await request.read()
    return json.loads(raw) if raw else {}


def _refuse(
    request: web.Request,
    status: int,
    message: str = SECRET_TEXT,
    body: str | None = None,
    headers: dict[str, str] | None = None,
) -> web.Response:
    if body is not None:
        return web.Response(status=status, text=body, headers=headers)
    error: Json = {"error": message}
    if request.path.startswith("/v1/"):
        error = _openai_error(status, message)
    return web.json_response(error, status=status, headers=headers)


def _openai_error(status: int, message: str = SECRET_TEXT) -> Json:
    code = "model_not_found" if status == 404 else None
    return {"error": {"message": message, "type": "server_error", "param": None, "code": code}}


def _drop(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _pull_lines(script: PullScript) -> list[Json]:
    """One line for each file that has begun, as Ollama tells them."""
    lines, left = [], script.completed
    for number, size in enumerate(script.files):
        digest = f"sha256:{number:012x}"
        lines.append(
            {"status": f"pulling {digest[7:]}", "digest": digest, "total": size, "completed": min(size, left)}
        )
        left = max(0, left - size)
        if not left:
            break
    return lines


def _ollama_part(model: str, text: str) -> Json:
    message = {"role": "assistant", "content": text}
    return {"model": model, "created_at": "2026-11-20T09:00:00.000000Z", "message": message}


def _ollama_extras(turn: Turn) -> Json:
    """What a message of Ollama's holds beside its text; arguments are objects there."""
    calls = [{"function": {"name": name, "arguments": given}} for name, given in turn.calls]
    found: Json = {"tool_calls": calls} if calls else {}
    return {**found, "thinking": turn.thought} if turn.thought else found


def _openai_extras(turn: Turn) -> Json:
    """What a message of OpenAI's holds beside its text; arguments are JSON text there."""
    calls = [
        {
            "id": f"call_{at}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for at, (name, given) in enumerate(turn.calls)
    ]
    found: Json = {"tool_calls": calls} if calls else {}
    return {**found, "reasoning_content": turn.thought} if turn.thought else found


def _line(part: Json) -> bytes:
    return _encoded(part) + b"\n"


def _event(chunk: Json) -> bytes:
    return b"data: " + _encoded(chunk) + b"\r\n\r\n"


def _openai_chunk(
    model: str, delta: Json, finish_reason: str | None = None, logprobs: Json | None = None
) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}
    return _event({"id": "c1", "object": "chat.completion.chunk", "model": model, "choices": [choice]})


def _encoded(value: Json) -> bytes:
    """JSON in UTF-8; with escapes where a text holds halves of characters."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()
