"""A platform with a scripted model runtime, tools of every kind, and an account with a pipeline."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from kernel.sdk import ADMIN, AUTHENTICATED, PUBLIC, Action, BadRequest, Context, Plugin, hookimpl
from kernel.testing import Actor, Reply, Running, platforms
from tests.builtin_plugins.rag.rag_support import HANDBOOK, ingest, make_base, make_pipeline
from tests.fakes.loaded_once import LoadedOnce
from tests.fakes.model_server import ModelServer, Refusal, Script, Turn, model_server

CHAT = "/v1/ai/chat/completions"
ADDRESS = {"ollama": "OLLAMA_BASE_URL", "openai": "OPENAI_BASE_URL"}
MODELS = ("llama3.2", "tiny", "nomic-embed-text")
HOTEL = "How much may a hotel cost per night?"


class Place(BaseModel):
    """Where."""

    city: str = Field(min_length=1, description="A city.")


class Deletion(BaseModel):
    """What to delete."""

    name: str


class Nothing(BaseModel):
    """No arguments."""


@dataclass
class Office(Plugin):
    """An office with tools that read, write, delete, refuse, fail and hang; it keeps what was done."""

    name = "office"
    deleted: list[str] = field(default_factory=list)
    callers: list[str] = field(default_factory=list)
    weather: str = "rain"
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    @hookimpl
    def register_actions(self) -> Sequence[Action]:
        return [
            Action("weather", "The weather of a city.", Place, self._weather, access=PUBLIC, read_only=True),
            Action("delete", "Deletes a thing.", Deletion, self._delete, access=AUTHENTICATED),
            Action("refuse", "Refuses.", Nothing, self._refuse, access=AUTHENTICATED, read_only=True),
            Action("crash", "Fails.", Nothing, self._crash, access=AUTHENTICATED, read_only=True),
            Action("hang", "Waits.", Nothing, self._hang, access=AUTHENTICATED, read_only=True),
            Action("reign", "For administrators.", Nothing, self._refuse, access=ADMIN, read_only=True),
        ]

    async def _weather(self, ctx: Context, place: Place) -> dict[str, str]:
        self.callers.append(ctx.principal.username)
        return {"city": place.city, "weather": self.weather}

    async def _delete(self, ctx: Context, what: Deletion) -> dict[str, str]:
        self.callers.append(ctx.principal.username)
        self.deleted.append(what.name)
        return {"deleted": what.name}

    async def _refuse(self, _ctx: Context, _nothing: Nothing) -> None:
        raise BadRequest("the office is closed")

    async def _crash(self, _ctx: Context, _nothing: Nothing) -> None:
        raise RuntimeError("password=hunter2")

    async def _hang(self, _ctx: Context, _nothing: Nothing) -> None:
        self.hanging.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()


@dataclass
class Stage:
    """The platform, what stands behind it, and who asks."""

    running: Running
    server: ModelServer
    office: Office
    kind: str
    ann: Actor
    base: str = ""
    pipeline: str = ""

    def play(self, *turns: Turn | Refusal, **script: Any) -> None:
        """Have the model say these turns, one for each request from now on, then a plain answer."""
        waiting = list(turns)

        def turn(_body: dict[str, Any]) -> Turn | Refusal | None:
            return waiting.pop(0) if waiting else None

        self.server.script = Script(**{"models": MODELS, "answer": "Done.", "turn": turn, **script})
        self.server.requests.clear()
        self.server.streaming.clear()
        self.server.disconnected.clear()
        self.office.deleted.clear()
        self.office.callers.clear()

    @property
    def prompts(self) -> list[dict[str, Any]]:
        """The bodies of the chats that reached the runtime."""
        return [one.body for one in self.server.requests if one.path in ("/api/chat", "/v1/chat/completions")]

    async def chat(self, question: str = HOTEL, *, actor: Actor | None = None, **fields: Any) -> Reply:
        """A chat with one question."""
        body = {"model": "llama3.2", "messages": [{"role": "user", "content": question}], **fields}
        return await (actor or self.ann).post(CHAT, json=body)

    async def answer(self, question: str = HOTEL, **fields: Any) -> dict[str, Any]:
        """The whole answer to a chat that works."""
        reply = await self.chat(question, **fields)
        assert reply.status == 200, reply.body
        return dict(reply.json())

    async def stream(self, question: str = HOTEL, **fields: Any) -> Streamed:
        """A streamed chat, read to its end."""
        reply = await self.chat(question, stream=True, **fields)
        assert reply.status == 200, reply.body
        assert reply.headers["Content-Type"].startswith("text/event-stream")
        return Streamed(reply.body.decode())


class Streamed:
    """The chunks of a streamed chat."""

    def __init__(self, text: str) -> None:
        frames = [frame.removeprefix("data: ") for frame in text.split("\n\n") if frame]
        self.done = frames[-1] == "[DONE]"
        self.chunks = [json.loads(frame) for frame in frames if frame != "[DONE]"]

    @property
    def deltas(self) -> list[dict[str, Any]]:
        """What the choices of the chunks hold."""
        return [chunk["choices"][0]["delta"] for chunk in self.chunks if chunk.get("choices")]

    @property
    def text(self) -> str:
        """The text in one."""
        return "".join(delta.get("content") or "" for delta in self.deltas)

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps with the platform's tools."""
        return [delta["platform_step"] for delta in self.deltas if "platform_step" in delta]

    @property
    def finish_reason(self) -> str | None:
        """Why it ended."""
        reasons = [chunk["choices"][0]["finish_reason"] for chunk in self.chunks if chunk.get("choices")]
        return reasons[-1] if reasons else None


@asynccontextmanager
async def stage_with(
    folder: Path,
    kind: Literal["ollama", "openai", "none"],
    env: dict[str, str] | None = None,
    *more: Any,
    documents: bool = False,
) -> AsyncIterator[Stage]:
    """A stage whose runtime speaks this protocol; with `documents` the account has a pipeline over one."""
    office = Office()
    async with model_server(Script(models=MODELS)) as server, platforms(folder) as start:
        address = {ADDRESS[kind]: server.url} if kind in ADDRESS else {}
        plugins = (
            LoadedOnce,
            "models",
            "rag",
            "extractive_answers",
            "orchestrator",
            "plugin_registry",
            office,
            *more,
        )
        running = await start(*plugins, env={**address, **(env or {})})
        stage = Stage(running, server, office, kind, await running.user("ann"))
        if documents:
            stage.base = await make_base(stage.ann)
            await ingest(running, stage.ann, stage.base, "handbook.md", HANDBOOK)
            stage.pipeline = await make_pipeline(stage.ann, stage.base, name="Travel handbook")
        yield stage


def tool_call(name: str, /, **arguments: Any) -> Turn:
    """A turn that is one call."""
    return Turn(calls=[(name, arguments)])
