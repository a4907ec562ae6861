"""The processes of a running platform: the API, the worker, and the supervisor that restarts them."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from kernel.boot import open_platform
from kernel.errors import StartupError
from kernel.gateway.app import gateway_app, service_app
from kernel.gateway.services import Service
from kernel.http.application import Application
from kernel.http.streams import OPEN_STREAMS
from kernel.libs import memory
from kernel.platform import PUBLISHED_PORTS, Platform
from kernel.plugins.loading import write_report
from kernel.plugins.offers import OFFERS
from kernel.process.housekeeping import housekeep
from kernel.process.restarting import restart_requested, start_again
from kernel.process.server import OTHER_PORT, Listener, bind, cannot_listen, stop_all
from kernel.settings.loading import SettingsLoader

log = logging.getLogger("platform.serve")


@dataclass(frozen=True)
class Ports:
    """Where a platform listens: the gateway's port, and those of published services by their titles."""

    main: int
    published: Mapping[str, int]

    @classmethod
    def of(cls, platform: Platform, main: int, published: Mapping[str, int]) -> Ports:
        """From `published`, by service name; the names are replaced by titles."""
        return cls(main, {_service(platform, name).title or name: port for name, port in published.items()})


Announce = Callable[[Platform, Ports], Awaitable[None]]

_WORKER_NICENESS = 10
# How long a computing thread keeps the event loop waiting each time that the loop wants the interpreter,
# which is several times per request. Next to such a thread, an echo takes 6.2 ms (p50) with Python's default
# of 5 ms, 1.6 ms with 1 ms, and 0.4 ms with this; the thread computes no less. Without one it makes no
# difference.
_TURN = 0.0001
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_HEALTHY_AFTER = 60.0
_PR_SET_PDEATHSIG = 1


async def serve_api(
    loader: SettingsLoader,
    *,
    only: str | None = None,
    shared_port: bool = False,
    announce: Announce | None = None,
    children: Sequence[Sequence[str]] = (),
) -> None:
    """Serve HTTP until SIGTERM or SIGINT; then let requests in flight finish.

    `only` serves one service at its own root instead of the gateway. `children` are argument lists of
    processes that this one supervises (the worker).
    """
    async with AsyncExitStack() as stack:
        platform = await stack.enter_async_context(
            open_platform(loader, role="api", restart=True, supervised=shared_port)
        )
        stop = stop_on_signals()
        again = restart_requested(platform, stop)
        listeners = await _listen(stack, platform, only, shared_port)
        published = {} if only else await _listen_published(stack, platform, shared_port)
        await asyncio.to_thread(write_report, platform.settings.home, platform.plugins)
        housekeeping = asyncio.create_task(housekeep(platform), name="housekeeping")
        stack.push_async_callback(_cancel, housekeeping)
        if children:
            supervisor = Supervisor(children)
            stack.push_async_callback(supervisor.stop)
            await supervisor.start()
        memory.freeze_present()
        sys.setswitchinterval(_TURN)
        if announce is not None:
            await announce(platform, Ports.of(platform, listeners[0].port, published))
        await stop.wait()
        log.info("stopping: running requests have %g s to finish", platform.settings.shutdown_timeout)
        platform.resource(OPEN_STREAMS).stop(platform.settings.shutdown_timeout)
        await stop_all(listeners)
    if again.is_set() and not shared_port:  # a process that shares its port is restarted by its parent
        start_again()


async def _listen(
    stack: AsyncExitStack, platform: Platform, only: str | None, shared_port: bool
) -> list[Listener]:
    settings = platform.settings
    main = gateway_app(platform) if only is None else service_app(platform, _service(platform, only))
    listeners = [await _start(platform, main, settings.host, settings.port, shared_port)]
    if settings.dev_ports and only is None and not shared_port:
        offered = platform.resource(OFFERS).services
        remedy = "stop the other program, or unset PLATFORM_DEV_PORTS"
        for _, service in offered.values():
            if service.port is not None and service.published is None:
                app = service_app(platform, service)
                listeners.append(await _start(platform, app, "127.0.0.1", service.port, False, remedy))
    stack.push_async_callback(stop_all, listeners)
    return listeners


def published_ports(platform: Platform) -> dict[str, int]:
    """The ports that services want besides the gateway's, by service name."""
    offered = platform.resource(OFFERS).services
    ports = {name: s.published(platform) for name, (_, s) in offered.items() if s.published is not None}
    return {name: port for name, port in ports.items() if port is not None}


async def _listen_published(stack: AsyncExitStack, platform: Platform, shared: bool) -> dict[str, int]:
    """Serve the published services; return their ports by name. A port in use is reported and skipped."""
    ports: dict[str, int] = {}
    for name, port in published_ports(platform).items():
        owner, service = platform.resource(OFFERS).services[name]
        app = service_app(platform, service)
        remedy = f"choose another port: 'platformctl settings {owner}' shows its setting"
        try:
            listener = await _start(platform, app, platform.settings.host, port, shared, remedy)
        except StartupError as error:
            log.warning("%s is not served on its own port: %s", service.title or name, error)
            continue
        stack.push_async_callback(stop_all, [listener])
        ports[name] = listener.port
    platform.resources.add(PUBLISHED_PORTS, ports)
    return ports


def _service(platform: Platform, name: str) -> Service:
    offered = platform.resource(OFFERS).services
    if name not in offered:
        names = ", ".join(sorted(offered)) or "none"
        raise StartupError(f"--only {name}: no plugin offers this service; offered here: {names}")
    return offered[name][1]


async def _start(
    platform: Platform, app: Application, host: str, port: int, shared: bool, remedy: str = OTHER_PORT
) -> Listener:
    settings = platform.settings
    listener = Listener(app, patience=settings.header_timeout, grace=settings.shutdown_timeout)
    try:
        await listener.start(bind(host, port, shared=shared, send_timeout=settings.send_timeout))
    except OSError as error:
        raise cannot_listen(host, port, error, remedy) from None
    return listener


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def run_worker(loader: SettingsLoader, *, supervised: bool = False) -> None:
    """Run jobs until SIGTERM or SIGINT, at lower priority than the API."""
    from kernel.jobs.worker import Worker, executor_slot

    with suppress(OSError):
        os.nice(_WORKER_NICENESS)
    async with (
        open_platform(loader, role="worker", restart=True, supervised=supervised) as platform,
        executor_slot(platform) as executor,
    ):
        stop = stop_on_signals()
        again = restart_requested(platform, stop)
        await housekeep(platform)
        memory.freeze_present()
        await Worker(platform, executor).run(stop)
    if again.is_set() and not supervised:
        start_again()
    _leave()


def _leave() -> None:
    """End the process at once; everything has been closed.

    Interrupted jobs may have left threads behind, and an ordinary exit would wait for them.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def stop_on_signals() -> asyncio.Event:
    """An event set by SIGTERM, SIGINT, and SIGHUP (the terminal was closed) unless nohup ignores it."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, stop.set)
    return stop


class Supervisor:
    """Keeps child processes running: one that dies is restarted, after growing pauses."""

    def __init__(self, commands: Sequence[Sequence[str]]) -> None:
        self._commands = commands
        self._tasks: list[asyncio.Task[None]] = []
        self._processes: set[asyncio.subprocess.Process] = set()

    async def start(self) -> None:
        """Start every child."""
        self._tasks = [asyncio.create_task(self._keep(command)) for command in self._commands]

    async def stop(self) -> None:
        """Ask the children to stop (SIGTERM), wait, then kill them."""
        for task in self._tasks:
            task.cancel()
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.terminate()
        waits = [asyncio.wait_for(process.wait(), 30) for process in self._processes]
        await asyncio.gather(*waits, return_exceptions=True)
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.kill()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep(self, command: Sequence[str]) -> None:
        pause = _FIRST_PAUSE
        while True:
            started = time.monotonic()
            # In a new session: Ctrl-C reaches the supervisor alone, which then stops its children.
            process = await asyncio.create_subprocess_exec(
                *command, preexec_fn=_die_with_parent, start_new_session=True
            )
            self._processes.add(process)
            code = await process.wait()
            self._processes.discard(process)
            pause = _FIRST_PAUSE if time.monotonic() - started > _HEALTHY_AFTER else pause
            log.warning("'%s' ended with %s; starting it again in %.1f s", _title(command), code, pause)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)


def _title(command: Sequence[str]) -> str:
    """What a person would call the process: the words after ``-m cli``."""
    return " ".join(command[list(command).index("cli") + 1 :]) if "cli" in command else " ".join(command)


def _die_with_parent() -> None:
    """Die with a killed parent instead of keeping its port or its jobs (prctl(2), Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def this_command(*arguments: str) -> list[str]:
    """The argument list of another `platformctl` process in the same environment.

    ``-P`` keeps a folder called `cli` in the working directory from being imported instead of ours.
    """
    return [sys.executable, "-P", "-m", "cli", *arguments]
