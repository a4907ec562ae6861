"""Starting the platform's processes: one API process, or a parent with several of them on one port."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cli.running import make_loader, private_files, refuse_as_root
from cli.welcome import Facts, gather_facts, welcome
from kernel.boot import open_platform
from kernel.errors import PlatformError, StartupError
from kernel.libs import memory
from kernel.observe import logs
from kernel.platform import Platform
from kernel.plugins.loading import write_report
from kernel.process.serve import Ports, Supervisor, published_ports, serve_api, stop_on_signals, this_command
from kernel.process.server import bind, cannot_listen
from kernel.settings.loading import KernelSettings, SettingsLoader

log = logging.getLogger("platform.serve")


@dataclass(frozen=True)
class Start:
    """The options of `platformctl serve` besides settings."""

    only: str | None = None
    with_worker: bool = True
    shared_port: bool = False


def start(overrides: Mapping[str, str], how: Start) -> None:
    """Serve until SIGTERM or SIGINT. Raises StartupError if it can't."""
    loader = make_loader(overrides)
    settings = configure_logs(loader)
    if settings.workers > 1 and not how.shared_port:
        run_process(_serve_many(loader, settings, how))
    else:
        run_process(_serve_one(loader, how))


def run_process(work: Coroutine[Any, Any, None]) -> None:
    """Run a long-lived process; an unexpected error is logged with its traceback."""
    try:
        with private_files():
            _runner()(work)
    except (StartupError, PlatformError):
        raise
    except Exception:  # boundary: whatever ends the process is logged
        log.critical("the process stopped because of an unexpected error", exc_info=True)
        raise


def _runner() -> Callable[[Coroutine[Any, Any, None]], None]:
    """What runs an event loop: uvloop, which answers more requests, or Python's own without it."""
    try:
        from uvloop import run
    except ModuleNotFoundError:
        return asyncio.run
    return run


def configure_logs(loader: SettingsLoader) -> KernelSettings:
    """Set up logging as the settings say, unless root would write log files into a service's home."""
    settings = loader.load("kernel", KernelSettings)
    if (settings.home / "secrets").is_dir():  # an empty home may be a container's volume with any owner
        refuse_as_root(settings.home)
    try:
        logs.configure(settings.log_level, settings.log_format, settings.log_file)
    except OSError as error:
        raise StartupError(f"PLATFORM_LOG_FILE: {settings.log_file}: {error.strerror}") from error
    return settings


async def _serve_one(loader: SettingsLoader, how: Start) -> None:
    async def announce(platform: Platform, ports: Ports) -> None:
        if not how.shared_port:
            welcome(await gather_facts(platform, loader), ports)

    children = [this_command("worker", "--supervised")] if how.with_worker else []
    await serve_api(loader, only=how.only, shared_port=how.shared_port, announce=announce, children=children)


async def _serve_many(loader: SettingsLoader, settings: KernelSettings, how: Start) -> None:
    """Migrate once, then supervise `workers` API processes that share the port, and one job worker."""
    if settings.dev_ports:
        log.warning("PLATFORM_DEV_PORTS has no effect with several API processes: they share one port")
    stop = stop_on_signals()
    with _reserved(settings.host, settings.port) as port:
        async with open_platform(loader) as platform:
            facts = await gather_facts(platform, loader)
            await asyncio.to_thread(write_report, settings.home, platform.plugins)
            ports = Ports.of(platform, port, {} if how.only else published_ports(platform))
        memory.freeze_present()
        supervisor = Supervisor(_children(settings, how, port))
        await supervisor.start()
        try:
            if await _answering(facts, port, stop):
                welcome(facts, ports)
            await stop.wait()
        finally:
            await supervisor.stop()


def _children(settings: KernelSettings, how: Start, port: int) -> list[list[str]]:
    api = this_command("serve", "--shared-port", "--no-worker", "--host", settings.host, "--port", str(port))
    api += ["--workers", str(settings.workers)]
    if how.only is not None:
        api += ["--only", how.only]
    return [api] * settings.workers + ([this_command("worker", "--supervised")] if how.with_worker else [])


@contextmanager
def _reserved(host: str, port: int) -> Iterator[int]:
    """Hold the port for the processes that share it. Refuses it if somebody else already listens there.

    With SO_REUSEPORT alone, another platform of the same user would go unnoticed; hence the first bind.
    """
    try:
        with bind(host, port) as alone:
            port = alone.getsockname()[1]
        with bind(host, port, shared=True):
            yield port
    except OSError as error:
        raise cannot_listen(host, port, error) from None


async def _answering(facts: Facts, port: int, stop: asyncio.Event) -> bool:
    """Wait until a child accepts connections; False if stopped before that."""
    while not stop.is_set():
        try:
            _, writer = await asyncio.open_connection(facts.reachable_host, port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        return True
    return False
