"""Models on this machine as a runtime: loaded when needed, unloaded when idle."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from builtin_plugins.inference import api as inference
from builtin_plugins.models.local.errors import (
    LocalMemoryShort,
    LocalModelFailed,
    LocalModelUnusable,
    LocalRuntimeMissing,
)
from builtin_plugins.models.local.files import ModelFile, model_files
from builtin_plugins.models.local.forced_tools import forced, forced_call
from builtin_plugins.models.local.memory import available_mb
from builtin_plugins.models.local.process import ModelProcess, Serving
from builtin_plugins.models.local.requests import checked_chat, checked_options
from builtin_plugins.models.names import canonical
from builtin_plugins.models.runtimes.errors import RuntimeLacksModel, RuntimeUnreachable
from builtin_plugins.models.runtimes.openai import OpenAIRuntime
from builtin_plugins.models.runtimes.protocol import (
    Embeddings,
    GenerationRequest,
    ModelDetails,
    ModelInfo,
    RuntimeLimits,
    TextDelta,
)
from kernel.sdk import ChildFailed, ChildLimits, Children, Platform, lasting
from kernel.sdk.operations import Reach

log = logging.getLogger("platform.models")

_LOOK_SECONDS: Final = 1.0
_LOOK_AT_FILES: Final = 5.0
_MB: Final = 1024 * 1024
_READING: Final = ChildLimits(memory_mb=256, cpu_seconds=10, wall_seconds=20)


@dataclass(frozen=True)
class LocalLimits:
    """At most `loaded` models at a time, kept for `idle_seconds`; `spare_mb` of memory must stay free."""

    loaded: int
    idle_seconds: float
    spare_mb: int


class LocalRuntime:
    """`ModelRuntime` over GGUF files, each served by its own process (`local.child`)."""

    def __init__(
        self,
        platform: Platform,
        folder: Path,
        named: Mapping[str, Path],
        serving: Serving,
        limits: LocalLimits,
        calls: RuntimeLimits,
    ) -> None:
        self._platform = platform
        self._folder, self._named = folder, dict(named)
        self._serving, self._limits, self._calls = serving, limits, calls
        self._files: dict[str, ModelFile] = {}
        self._running: dict[str, ModelProcess] = {}
        self._unusable: dict[Path, tuple[int, float]] = {}
        self._loading: str | None = None
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()
        self._children = Children(preload=["builtin_plugins.models.local.gguf"])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[LocalRuntime]:
        """Watch the files and the loaded models within the block; end all processes at its end."""
        await self.look()
        looking = lasting("local models", self._look_after)
        try:
            yield self
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            for model in list(self._running.values()):
                await model.stop()
            await self._children.aclose()

    def knows(self, model: str) -> bool:
        """Whether there is a file of that name, as of the last look."""
        return canonical(model) in self._files

    @property
    def has_files(self) -> bool:
        """Whether there is any."""
        return bool(self._files)

    def loaded(self) -> list[str]:
        """The names of the models in memory."""
        return [model.file.name for model in self._running.values() if not model.has_ended]

    def status(self, model: str) -> Literal["ready", "loading", "error"]:
        """`ready`, `loading`, or `error` (its file, or any file, can't be loaded)."""
        file = self._files.get(canonical(model))
        if file is None or self._is_unusable(file) or not _is_installed():
            return "error"
        return "loading" if self._loading == file.name else "ready"

    async def look(self) -> None:
        """Look which files there are now."""
        self._files = await asyncio.to_thread(model_files, self._folder, self._named)

    async def generate(self, request: GenerationRequest) -> inference.Completion:
        """See `ModelRuntime`."""
        request = replace(request, options=checked_options(request.options))
        async with self._use(request.model) as runtime:
            return await runtime.generate(request)

    async def stream(
        self, request: GenerationRequest
    ) -> AsyncGenerator[TextDelta | inference.Completion, None]:
        """See `ModelRuntime`."""
        request = replace(request, options=checked_options(request.options))
        async with self._use(request.model) as runtime, aclosing(runtime.stream(request)) as items:
            async for item in items:
                yield item

    async def chat(self, request: inference.ChatRequest, model: str) -> inference.ChatEvents:
        """See `ModelRuntime`. A tool call that the client requires is forced by grammar."""
        request = checked_chat(request)
        async with self._use(model) as runtime:
            forced_request = forced(request)
            events = (
                runtime.chat(request, model)
                if forced_request is None
                else forced_call(runtime, forced_request, model)
            )
            async with aclosing(events):
                async for event in events:
                    yield event

    async def embed(self, model: str, texts: Sequence[str]) -> Embeddings:
        """See `ModelRuntime`."""
        async with self._use(model) as runtime:
            return await runtime.embed(model, texts)

    async def models(self) -> list[ModelInfo]:
        """See `ModelRuntime`."""
        await self.look()
        return [ModelInfo(id=file.name, size_bytes=file.size) for file in self._files.values()]

    async def describe(self, model: str) -> ModelDetails:
        """The file's metadata, read in a child process."""
        await self.look()
        file = self._file(model)
        try:
            facts: dict[str, Any] = await self._children.call(
                "builtin_plugins.models.local.gguf:describe",
                str(file.path),
                limits=_READING,
                reach=Reach([str(file.path)]),
            )
        except ChildFailed:
            raise LocalModelUnusable(file.name) from None
        can = ["embedding"] if "pooling" in facts else ["completion", "tools"]
        details = {**facts, "format": "gguf", "size": file.size, "loaded": file.name in self.loaded()}
        return ModelDetails(id=file.name, details=details, capabilities=tuple(can))

    async def healthy(self) -> bool:
        """Whether models can be loaded at all."""
        return _is_installed()

    async def delete(self, model: str) -> None:
        """Unload it and remove its file. Raises ModelNotFound, also for one outside the platform's folder."""
        await self.look()
        file = self._file(model)
        if not file.ours:
            raise RuntimeLacksModel(model)
        async with self._turn:
            if canonical(model) in self._running:
                await self._unload(canonical(model))
            await asyncio.to_thread(file.path.unlink, missing_ok=True)
        await self.look()

    @asynccontextmanager
    async def _use(self, model: str) -> AsyncIterator[OpenAIRuntime]:
        used = await self._ready(model)
        try:
            yield used.runtime
        except RuntimeUnreachable:
            used.is_lost, name = True, used.file.name
            raise LocalModelFailed(
                f"The local model '{name}' ended unexpectedly; ask again to start it."
            ) from None
        finally:
            used.users -= 1
            used.last_used = time.monotonic()
            self._freed.set()
            if not used.users and used not in self._running.values():
                await used.stop()

    async def _ready(self, model: str) -> ModelProcess:
        """The loaded model, with one more user. First come, first served."""
        async with self._turn:
            if not self.knows(model):
                await self.look()
            file, key = self._file(model), canonical(model)
            process = self._running.get(key)
            if process is not None and (process.has_ended or (process.file != file and not process.users)):
                await self._replace(key)
                process = None
            if process is None:
                process = await self._load(key, file)
            process.users += 1
            return process

    async def _replace(self, key: str) -> None:
        """Remove it to make room for another of its name; if it has users, the last of them stops it."""
        if self._running[key].users:
            del self._running[key]
        else:
            await self._unload(key)

    async def _load(self, key: str, file: ModelFile) -> ModelProcess:
        if not _is_installed():
            raise LocalRuntimeMissing()
        if self._is_unusable(file):
            raise LocalModelUnusable(file.name)
        await self._make_room(file)
        self._loading, process = file.name, ModelProcess(file)
        try:
            started = time.perf_counter()
            await process.start(self._platform, self._children, self._serving, self._calls)
            log.info("the local model '%s' is loaded (%.1f s)", file.name, time.perf_counter() - started)
        except LocalModelUnusable:
            self._unusable[file.path] = (file.size, file.modified)
            raise
        finally:
            self._loading = None
        self._running[key] = process
        return process

    async def _make_room(self, file: ModelFile) -> None:
        """Unload other models once they have finished their answers. Raises LocalMemoryShort."""
        while len(self._running) >= self._limits.loaded:
            await self._unload_one()
        needed = file.size // _MB + self._limits.spare_mb
        while (left := available_mb()) is not None and left < needed:
            if not self._running:
                raise LocalMemoryShort(file.name, needed, left)
            await self._unload_one()

    async def _unload_one(self) -> None:
        """Unload the least recently used model; waits for one without users."""
        while not (free := [key for key, model in self._running.items() if not model.users]):
            self._freed.clear()
            await self._freed.wait()
        await self._unload(min(free, key=lambda key: self._running[key].last_used))

    async def _unload(self, key: str) -> None:
        model = self._running[key]
        await model.stop()  # if this is cancelled, the end of the runtime stops it again
        del self._running[key]
        log.info("the local model '%s' is unloaded", model.file.name)

    async def _look_after(self) -> None:
        looked = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if time.monotonic() - looked > _LOOK_AT_FILES:
                await self.look()
                looked = time.monotonic()
            if self._running and not self._turn.locked():
                async with self._turn:
                    await self._tidy()

    async def _tidy(self) -> None:
        """Unload idle and dead models and, when memory is short, all that aren't in use."""
        left, now = available_mb(), time.monotonic()
        short = left is not None and left < self._limits.spare_mb
        for key, model in list(self._running.items()):
            idle = now - model.last_used > self._limits.idle_seconds
            if not model.users and (idle or short or model.has_ended):
                await self._unload(key)

    def _file(self, model: str) -> ModelFile:
        file = self._files.get(canonical(model))
        if file is None:
            raise RuntimeLacksModel(model)
        return file

    def _is_unusable(self, file: ModelFile) -> bool:
        """Whether this same file could not be loaded before; a replaced file is tried again."""
        return self._unusable.get(file.path) == (file.size, file.modified)


def _is_installed() -> bool:
    return find_spec("xllamacpp") is not None
