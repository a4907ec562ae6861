"""One model in a child process, from start to end."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from builtin_plugins.models.local.child import ServerOptions
from builtin_plugins.models.local.errors import LocalModelFailed, LocalModelUnusable
from builtin_plugins.models.local.files import ModelFile
from builtin_plugins.models.local.memory import available_mb
from builtin_plugins.models.runtimes.openai import OpenAIRuntime
from builtin_plugins.models.runtimes.protocol import RuntimeLimits
from kernel.sdk import OUTGOING, ChildFailed, ChildLimits, Children, Platform

log = logging.getLogger("platform.models")

_PROGRAM: Final = "builtin_plugins.models.local.child"
_WITHOUT_END: Final = 10**9
_MB: Final = 1024 * 1024
# Address space besides the weights: libraries, thread stacks, and a reserve for unknowns.
_SPACE_BESIDE_MB: Final = 2_048
_SPACE_UNKNOWN_MB: Final = 64 * 1_024
_ADDRESS_BYTES: Final = 200


@dataclass(frozen=True)
class Serving:
    """How models are served: by `threads` threads, with `parallel` answers sharing `context` tokens."""

    threads: int
    context: int
    parallel: int
    load_seconds: float


class ModelProcess:
    """A loaded model. `users`: how many answers are being made; `last_used` is on the monotonic clock.

    `is_lost`: a call could not reach it, usually because its process has just ended.
    """

    def __init__(self, file: ModelFile) -> None:
        self.file = file
        self.users = 0
        self.is_lost = False
        self.last_used = time.monotonic()
        self._stack = AsyncExitStack()
        self._child: asyncio.Task[bytes] | None = None
        self._runtime: OpenAIRuntime | None = None

    @property
    def runtime(self) -> OpenAIRuntime:
        """A client of its server."""
        assert self._runtime is not None
        return self._runtime

    @property
    def has_ended(self) -> bool:
        """Whether its process is gone or has to be replaced."""
        return self.is_lost or self._child is None or self._child.done()

    async def start(
        self, platform: Platform, children: Children, serving: Serving, limits: RuntimeLimits
    ) -> None:
        """Load it. On LocalModelUnusable and LocalModelFailed, the process is ended."""
        try:
            key = secrets.token_urlsafe(24)
            url = await self._load(children, serving, key)
            client = await self._stack.enter_async_context(
                platform.resource(OUTGOING).client("local model", named=[url])
            )
            self._runtime = OpenAIRuntime(client, url, api_key=key, limits=limits)
        except BaseException:  # the caller may leave while it loads: the process must not outlive that
            await self.stop()
            raise

    async def stop(self) -> None:
        """End the process; its memory is free afterwards."""
        child, self._child = self._child, None
        if child is not None:
            child.cancel()
            await asyncio.wait({child})  # not `await child`: its cancellation would look like our own
        await self._stack.aclose()

    async def _load(self, children: Children, serving: Serving, key: str) -> str:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="platform-model-"))
        ready = Path(folder) / "ready"
        os.mkfifo(ready, 0o600)
        options = ServerOptions(
            path=str(self.file.path),
            name=self.file.name,
            key=key,
            ready=str(ready),
            threads=serving.threads,
            context=serving.context,
            parallel=serving.parallel,
        )
        command = [sys.executable, "-P", "-m", _PROGRAM]
        running = children.run(
            command,
            limits=self._limits(),
            source=json.dumps(options).encode(),
            environment={"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        )
        self._child = asyncio.create_task(running, name=f"local model {self.file.name}")
        self._child.add_done_callback(_retrieve_outcome)
        return await self._address(ready, self._child, serving.load_seconds)

    async def _address(self, ready: Path, child: asyncio.Task[bytes], seconds: float) -> str:
        """The address that the child writes once it serves; raises why it doesn't."""
        reading = os.open(ready, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        loop, written = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(reading, written.set)
        waiting = asyncio.ensure_future(written.wait())
        try:
            await asyncio.wait({waiting, child}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if written.is_set():
                return os.read(reading, _ADDRESS_BYTES).decode("ascii")
        finally:
            waiting.cancel()
            loop.remove_reader(reading)
            os.close(reading)
        raise self._why(child, seconds)

    def _why(self, child: asyncio.Task[bytes], seconds: float) -> Exception:
        name = self.file.name
        if not child.done():
            return LocalModelFailed(f"The local model '{name}' was not loaded within {seconds:g} s.")
        error = child.exception()
        if isinstance(error, ChildFailed) and error.reason in ("failed", "crashed"):
            log.warning("the local model '%s' can't be loaded: %s", name, error.errors.strip()[-500:])
            return LocalModelUnusable(name)
        return LocalModelFailed(
            f"The local model '{name}' could not be started: the machine is short of memory."
        )

    def _limits(self) -> ChildLimits:
        """Limit it to the free memory, so that a file with false metadata can't exhaust the machine."""
        free = available_mb()
        beside = _SPACE_UNKNOWN_MB if free is None else free + _SPACE_BESIDE_MB
        weights = self.file.size // _MB
        return ChildLimits(weights + beside, cpu_seconds=_WITHOUT_END, wall_seconds=_WITHOUT_END)


def _retrieve_outcome(child: asyncio.Task[bytes]) -> None:
    """Fetch the task's outcome, so that asyncio reports no unawaited error."""
    if not child.cancelled() and (error := child.exception()) is not None:
        log.info("a local model's process ended: %s", error)
