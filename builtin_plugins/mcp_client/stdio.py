"""A server that is a local program: one process, one message per line."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from builtin_plugins.mcp_client.faults import ServerFault, ServerRefused, ServerSlow
from builtin_plugins.mcp_client.messages import (
    METHOD_NOT_FOUND,
    check_hello,
    hello,
    notification,
    read,
    request,
    result_of,
)

_GRACE = 2.0
_PROBE = 5.0
_MOST_UNREAD = 4 * 1024 * 1024


class StdioConnection:
    """Starts the program on first use; one that has ended is restarted by the next request.

    It gets only the given environment, not the platform's. `changed` is called when it reports that its tools
    have changed.
    """

    def __init__(
        self,
        command: list[str],
        environment: Mapping[str, str],
        folder: str | None,
        *,
        line_bytes: int,
        changed: Callable[[], None],
    ) -> None:
        self._command = command
        self._environment = {"PATH": os.defpath, **environment}
        self._folder = folder
        self._line_bytes = line_bytes
        self._changed = changed
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)
        self._turn = asyncio.Lock()
        self._modern = False

    async def ask(
        self, method: str, params: Mapping[str, Any], seconds: float, credential: str | None = None
    ) -> dict[str, Any]:
        """The result of a request. Raises ServerFault, ServerRefused."""
        async with self._turn:
            if self._process is None or self._reading is None or self._reading.done():
                await self._start()
        return await self._exchange(method, params, seconds)

    async def close(self) -> None:
        """End the program and all its child processes."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _start(self) -> None:
        await self.close()
        await self._spawn()
        try:
            # Older servers answer this with an error, stay silent, or end.
            await self._exchange("server/discover", {}, _PROBE, modern=True)
            self._modern = True
        except (ServerFault, ServerRefused):
            self._modern = False
            if self._reading is None or self._reading.done():
                await self.close()
                await self._spawn()
            check_hello(await self._exchange("initialize", hello(), _PROBE * 2))
            self._send(notification("notifications/initialized"))

    async def _spawn(self) -> None:
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=self._environment,
                cwd=self._folder,
                limit=self._line_bytes,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ServerFault(f"it can't be started ({type(error).__name__})") from None
        self._reading = asyncio.create_task(self._read(self._process), name="mcp server")

    async def _exchange(
        self, method: str, params: Mapping[str, Any], seconds: float, *, modern: bool | None = None
    ) -> dict[str, Any]:
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            as_modern = self._modern if modern is None else modern
            self._send(request(number, method, params, modern=as_modern))
            async with asyncio.timeout(seconds):
                return result_of(await answer)
        except TimeoutError:
            raise ServerSlow(f"it did not answer within {seconds:g} s") from None
        finally:
            del self._waiting[number]
            if not answer.done() or answer.cancelled():
                with suppress(ServerFault):
                    self._send(notification("notifications/cancelled", {"requestId": number}))

    def _send(self, message: Mapping[str, Any]) -> None:
        stdin = None if self._process is None else self._process.stdin
        if stdin is None or stdin.is_closing():
            raise ServerFault("it has ended")
        if stdin.transport.get_write_buffer_size() > _MOST_UNREAD:
            raise ServerFault("it doesn't read what it is sent")
        stdin.write(json.dumps(message).encode() + b"\n")

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Pass each answer to its waiting request, until the program ends or violates the protocol."""
        why = "it has ended"
        try:
            assert process.stdout is not None
            while line := await process.stdout.readline():
                if line.strip():
                    self._take(read(line))
        except ValueError:
            why = f"it sent a line of more than {self._line_bytes // 1024} KB"
        except ServerFault as fault:
            why = str(fault)
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(ServerFault(why))
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def _take(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            if number is not None:
                self._answer(method, number)
            elif method == "notifications/tools/list_changed":
                self._changed()
            return
        answer = self._waiting.get(number) if isinstance(number, int) else None
        if answer is not None and not answer.done():
            answer.set_result(message)

    def _answer(self, method: str, number: Any) -> None:
        """Answer a server's request: we only support `ping`."""
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
        if method == "ping":
            reply["result"] = {}
        else:
            reply["error"] = {"code": METHOD_NOT_FOUND, "message": "Not offered by this client"}
        with suppress(ServerFault):
            self._send(reply)
