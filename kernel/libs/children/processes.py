"""Run a Python function or a program in a limited child process, and trust nothing it returns."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from kernel.libs.children.confinement import Reach
from kernel.libs.children.limits import ChildLimits
from kernel.libs.children.messages import ChildTask, Reason
from kernel.libs.children.pipes import Pipe
from kernel.libs.children.prepared import Ended, PreparedProcess, child_environment
from kernel.libs.children.task import NOT_STARTED
from kernel.process.machine_faults import MachineFault

log = logging.getLogger("platform.children")

_KEPT_OF_ERRORS: Final = 4_096
_MOST_OF_ERRORS: Final = 1024 * 1024
_REFUSAL_BYTES: Final = 1_024
_MEMORY_SIGNS: Final = (b"MemoryError", b"bad_alloc", b"out of memory", b"Cannot allocate memory")
_SIGNALS: Final[dict[int, Reason]] = {-signal.SIGXCPU: "timeout", -signal.SIGXFSZ: "output"}


class ChildFailed(Exception):
    """A child did not complete its task, for a reason in the task itself.

    `reason`: ``failed`` (it raised an error or exited with a status), ``unavailable`` (it can't be started),
    ``memory``, ``timeout``, ``output`` (it wrote too much), or ``crashed``. `code` is the raised error's
    `code` if that is a string. `errors` is the end of its standard error, for logs only.
    """

    def __init__(self, reason: Reason, status: int, errors: str, code: str | None = None) -> None:
        self.reason: Reason = reason
        self.status = status
        self.errors = errors
        self.code = code
        super().__init__(f"{reason} (status {status})")


class _Outcome(NamedTuple):
    ended: Ended | None
    answer: bytes
    errors: bytes
    cut: Reason | None

    @property
    def is_good(self) -> bool:
        """Whether the child ended by itself and successfully."""
        return self.ended is not None and self.ended.status == 0 and self.cut is None


class Children:
    """Runs children, each forked from a process that has imported `preload` and is started when first needed.

    A child has no access to secrets: its environment is almost empty, and it inherits no other open files. It
    is killed, with everything it started, when it exceeds its limits, when the waiting task is cancelled, and
    when this process ends. After `idle_seconds` without a task, the prepared process ends.
    """

    def __init__(self, preload: Sequence[str] = (), *, idle_seconds: float = 300) -> None:
        self._preload = tuple(preload)
        self._idle_seconds = idle_seconds
        self._prepared: PreparedProcess | None = None
        self._turn = asyncio.Lock()
        self._retirement: asyncio.TimerHandle | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    async def call(
        self,
        target: str,
        *arguments: Any,
        limits: ChildLimits,
        ahead: Sequence[str] = (),
        reach: Reach | None = None,
    ) -> Any:
        """Call the function `target` (``package.module:name``) with JSON values. Returns its JSON value.

        The prepared process imports the modules `ahead` before the first child that needs them. With `reach`,
        the child reaches those files, what it imports, and nothing else, as far as the kernel can. Raises
        ChildFailed if the task is at fault, MachineFault if the machine is.
        """
        task = ChildTask(0, limits, target=target, arguments=list(arguments), ahead=list(ahead), reach=reach)
        outcome = await self._run(task, b"")
        if not outcome.is_good:
            _explain(task, outcome)
        try:
            return json.loads(outcome.answer)["answer"]
        except (ValueError, KeyError, TypeError):
            _fail(outcome, "crashed")

    async def run(
        self,
        command: Sequence[str],
        *,
        limits: ChildLimits,
        source: Path | bytes = b"",
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        reach: Reach | None = None,
    ) -> bytes:
        """Run a program in `folder` with `source` (a file or bytes) as standard input; returns its output.

        `reach` confines it, as in `call`; it may run its own file. Raises ChildFailed if it exits with a
        status other than 0 or exceeds its limits, MachineFault if the machine is at fault.
        """
        if reach is not None:
            program = shutil.which(command[0]) or command[0]
            reach = Reach([*reach.reads, program], reach.writes)
        task = ChildTask(
            *(0, limits, None, [], list(command)),
            environment={**child_environment(), **(environment or {})},
            folder=None if folder is None else str(folder),
            reach=reach,
        )
        outcome = await self._run(task, source)
        if not outcome.is_good:
            _explain(task, outcome)
        return outcome.answer

    async def aclose(self) -> None:
        """End the prepared process and every child."""
        self._postpone()
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            await prepared.close()
        await asyncio.gather(*self._leaving)

    async def _run(self, task: ChildTask, source: Path | bytes) -> _Outcome:
        prepared = await self._ready()
        attempt = _Attempt(prepared, task.limits)
        try:
            return await attempt.run(task, source)
        finally:
            if prepared.is_idle and prepared is self._prepared:
                self._postpone()
                loop = asyncio.get_running_loop()
                self._retirement = loop.call_later(self._idle_seconds, self._retire)

    async def _ready(self) -> PreparedProcess:
        async with self._turn:
            self._postpone()
            if self._prepared is not None and self._prepared.is_lost:
                self._leave(self._prepared)
                self._prepared = None
            if self._prepared is None:
                self._prepared = await PreparedProcess.start(self._preload)
            return self._prepared

    def _postpone(self) -> None:
        if self._retirement is not None:
            self._retirement.cancel()
            self._retirement = None

    def _retire(self) -> None:
        if self._prepared is not None and self._prepared.is_idle:
            self._leave(self._prepared)
            self._prepared = None

    def _leave(self, prepared: PreparedProcess) -> None:
        task = asyncio.create_task(prepared.close())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)


class _Attempt:
    """One child, from start to end."""

    def __init__(self, prepared: PreparedProcess, limits: ChildLimits) -> None:
        self._prepared = prepared
        self._limits = limits
        self._overflow = asyncio.Event()

    async def run(self, task: ChildTask, source: Path | bytes) -> _Outcome:
        most = self._limits.output_bytes + _REFUSAL_BYTES
        reading = _opened(source)
        answer = Pipe(most, most, self._overflow.set)
        errors = Pipe(_KEPT_OF_ERRORS, _MOST_OF_ERRORS, self._overflow.set, tail=True)
        ended, cut = None, None
        try:
            running = self._prepared.begin(task, (reading, answer.writing, errors.writing))
            answer.given_away()
            errors.given_away()
            try:
                cut = await self._wait(running.ended)
            finally:
                await self._prepared.end(running)
            ended = running.ended.result()
        finally:
            os.close(reading)
            outputs = (answer.close(), errors.close())
        return _Outcome(ended, *outputs, cut or ("output" if self._overflow.is_set() else None))

    async def _wait(self, ended: asyncio.Future[Ended]) -> Reason | None:
        """Wait until the child ends by itself (None) or there is a reason to end it."""
        overflow: asyncio.Future[Any] = asyncio.ensure_future(self._overflow.wait())
        try:
            async with asyncio.timeout(self._limits.wall_seconds):
                waited: list[asyncio.Future[Any]] = [ended, overflow]
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            return "timeout"
        finally:
            overflow.cancel()
        return None if ended.done() else "output"


def _opened(source: Path | bytes) -> int:
    """A descriptor for the child's standard input."""
    if isinstance(source, Path) or not source:
        return os.open(source or os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        file.write(source)
        file.seek(0)
        return os.dup(file.fileno())


def _explain(task: ChildTask, outcome: _Outcome) -> NoReturn:
    """Raise the error that fits the outcome."""
    refusal = _refusal(outcome.answer) if task.command is None else {}
    if outcome.cut is None and refusal.get("fault"):
        _log(outcome, refusal["fault"])
        raise MachineFault(refusal["fault"])
    reason = outcome.cut or refusal.get("reason") or _reason(task, outcome)
    if reason == "killed":
        _log(outcome, reason)
        raise MachineFault("memory")
    _fail(outcome, reason, refusal.get("code"))


def _fail(outcome: _Outcome, reason: Reason, code: str | None = None) -> NoReturn:
    stderr = _log(outcome, reason)
    raise ChildFailed(reason, outcome.ended.status if outcome.ended else 0, stderr, code)


def _log(outcome: _Outcome, reason: str) -> str:
    stderr = outcome.errors.decode("utf-8", "replace").strip()
    log.info("a child ended (%s): %s %s", reason, outcome.ended, stderr)
    return stderr


def _refusal(answer: bytes) -> dict[str, Any]:
    """What a callable's child reported about its failure; empty if it could report nothing."""
    try:
        report = json.loads(answer)
    except ValueError:
        return {}
    is_report = isinstance(report, dict) and report.keys() == {"fault", "reason", "code"}
    return report if is_report else {}


def _reason(task: ChildTask, outcome: _Outcome) -> Reason:
    """Why a child that reported nothing ended.

    A child that was killed from outside was most likely chosen because the machine ran out of memory: its own
    fault if it used much of its allowance, otherwise the machine's.
    """
    ended = outcome.ended
    if ended is None:
        return "crashed"
    if ended.status in _SIGNALS:
        return _SIGNALS[ended.status]
    if ended.status == -signal.SIGKILL:
        if ended.cpu_seconds >= task.limits.cpu_seconds:
            return "timeout"
        return "memory" if ended.peak_mb >= task.limits.memory_mb / 2 else "killed"
    if any(sign in outcome.errors for sign in _MEMORY_SIGNS):
        return "memory"
    if task.command is None or ended.status < 0:
        return "crashed"
    return "unavailable" if ended.status == NOT_STARTED else "failed"
