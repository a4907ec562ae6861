"""Real platform processes for tests: started, waited for, killed."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any, Protocol

import aiohttp
import psutil

from kernel.plugins.loading import installed
from kernel.testing import migrated_home
from kernel.testing.databases import names_among
from kernel.version import DISTRIBUTION
from tests.fakes.prepared import PASSED_ON, fork


class Child(Protocol):
    """A process that was started or forked."""

    @property
    def pid(self) -> int:
        """Its number."""

    @property
    def returncode(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""

    def send_signal(self, number: int, /) -> None:
        """Send it, unless the process has ended."""

    def kill(self) -> None:
        """SIGKILL."""

    async def wait(self) -> int:
        """Until it ends; returns its exit status."""


async def start_python(
    *command: str, env: Mapping[str, str], output: IO[bytes], folder: Path | None = None, fresh: bool = False
) -> Child:
    """`python COMMAND` with exactly this environment; what it says goes to the file `output`.

    It is forked from a process that has imported the platform already, which saves seconds of processor time;
    a `fresh` one is its own interpreter, for tests of the start itself.
    """
    _share_cache(env)
    if not fresh:
        streams = (output.fileno(),) * 2
        forked = await asyncio.to_thread(fork, command, env=env, streams=streams, folder=folder)
        if forked is not None:
            return forked
    return await asyncio.create_subprocess_exec(
        sys.executable, *command, env=env, cwd=folder, stdin=DEVNULL, stdout=output, stderr=output
    )


def _share_cache(env: Mapping[str, str]) -> None:
    """One folder for what all homes derive from the same packages: it is two hundred megabytes in each."""
    home = Path(env.get("PLATFORM_HOME", "/none"))
    shared = Path(gettempdir()) / f"platform-tests-cache-{os.getuid()}"
    if home.is_dir() and not (home / "cache").exists():
        shared.mkdir(exist_ok=True, mode=0o700)
        (home / "cache").symlink_to(shared)


def run_python(
    *command: str,
    env: Mapping[str, str],
    folder: Path | None = None,
    seconds: float = 60,
    python: str = sys.executable,
    fresh: bool = False,
) -> subprocess.CompletedProcess[str]:
    """`python COMMAND` with exactly this environment until it ends, and what it said; see `start_python`."""
    forked = None
    with TemporaryFile() as out, TemporaryFile() as err:
        if not fresh:
            streams = (out.fileno(), err.fileno())
            forked = fork(command, env=env, streams=streams, folder=folder, python=python)
        if forked is None:
            return subprocess.run(
                [python, *command],
                env=env,
                cwd=folder,
                timeout=seconds,
                capture_output=True,
                text=True,
                check=False,
            )
        try:
            code = forked.join(seconds)
        finally:
            forked.kill()
        said = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode() for file in (out, err)]
    return subprocess.CompletedProcess([python, *command], code, *said)


def platformctl(
    *arguments: str, env: Mapping[str, str], seconds: float = 60, fresh: bool = False
) -> subprocess.CompletedProcess[str]:
    """`platformctl ARGUMENTS` as a process with these settings."""
    command = ("-P", "-m", "cli", *arguments)
    return run_python(*command, env=process_environment(env), seconds=seconds, fresh=fresh)


def free_port() -> int:
    """A loopback port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_ports(count: int) -> list[int]:
    """As many, no two alike."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def listening(process: Process) -> list[psutil.Process]:
    """Child processes that take connections."""
    found = []
    for child in psutil.Process(process.pid).children():
        with suppress(psutil.Error):
            taken = {connection.status for connection in child.net_connections("tcp")}
            found += [child] if psutil.CONN_LISTEN in taken else []
    return found


def process_environment(values: Mapping[str, str]) -> dict[str, str]:
    """Only what a process needs from ours, and `values`: no setting of the tester leaks in."""
    return {**{name: os.environ[name] for name in PASSED_ON if name in os.environ}, **values}


def without_plugins(*kept: str) -> dict[str, str]:
    """Settings that leave out all built-in plugins but these, what they require, and the essential ones: half
    the processor time of a start.
    """
    own = (candidate for candidate in installed() if candidate.distribution == DISTRIBUTION)
    names = {candidate.name for candidate in own if not candidate.essential}
    return {"PLATFORM_PLUGINS_DISABLED": ",".join(sorted(names.difference(names_among(kept))))}


class Process:
    """A child process whose output is kept in a file."""

    def __init__(self, process: Child, log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def output(self) -> str:
        """Everything written so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def signal(self, number: signal.Signals) -> None:
        """Send it, unless the process has ended."""
        self._process.send_signal(number)

    async def wait(self, seconds: float = 30) -> int:
        """Until it ends; returns its exit status."""
        async with asyncio.timeout(seconds):
            return await self._process.wait()

    async def kill(self) -> None:
        """End it with SIGKILL."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def running_process(
    *command: str, env: Mapping[str, str], log: Path, grace: float = 20, fresh: bool = False
) -> AsyncIterator[Process]:
    """`python <command>` with exactly this environment; asked to stop, then killed, at the end."""
    with log.open("ab") as sink:
        process = await start_python(*command, env=process_environment(env), output=sink, fresh=fresh)
    try:
        yield Process(process, log)
    finally:
        await stop(process, grace)


async def stop(process: Child, grace: float = 20) -> None:
    """Ask it to stop; kill it if it does not within so many seconds."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(grace):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


_QUICK = {"PLATFORM_PASSWORD_MEMORY_MB": "12"}  # as `kernel.testing` has it


class Served:
    """A platform in its own process, and a client of it."""

    def __init__(self, process: Process, url: str, session: aiohttp.ClientSession) -> None:
        self.process = process
        self.url = url
        self.session = session

    async def get(self, path: str, **options: Any) -> tuple[int, Any]:
        """Status and JSON body."""
        async with self.session.get(self.url + path, **options) as answer:
            return answer.status, await answer.json(content_type=None)

    async def sign_up(self, name: str = "reader") -> dict[str, str]:
        """The Authorization header of a new account."""
        account = {"username": name, "email": f"{name}@example.org", "password": "a long password"}
        async with self.session.post(self.url + "/v1/auth/register", json=account) as answer:
            assert answer.status == 201, await answer.text()
        async with self.session.post(self.url + "/v1/auth/login", json=account) as answer:
            return {"Authorization": f"Bearer {(await answer.json())['access_token']}"}

    async def until_healthy(self, seconds: float = 30) -> dict[str, Any]:
        """The body of the first answer of /health. Raises AssertionError, with the log, when none comes."""
        try:
            async with asyncio.timeout(seconds):
                while self.process.returncode is None:
                    with suppress(aiohttp.ClientConnectionError):
                        return dict((await self.get("/health"))[1])
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pass
        raise AssertionError(f"the platform did not answer:\n{self.process.output()[-5000:]}")


@asynccontextmanager
async def served_platform(
    home: Path,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    migrated: bool = True,
    fresh: bool = False,
) -> AsyncIterator[Served]:
    """`platformctl serve` on a free port, answering. With ``migrated=False`` it makes a new home's tables."""
    home.parent.mkdir(parents=True, exist_ok=True)
    if migrated:
        migrated_home(home, env)
    port = free_port()
    values = {"PLATFORM_HOME": str(home), "RATE_LIMIT_ENABLED": "false", **_QUICK, **(env or {})}
    command = ("-m", "cli", "serve", "--port", str(port), *arguments)
    async with (
        running_process(*command, env=values, log=home.parent / "serve.log", fresh=fresh) as process,
        aiohttp.ClientSession() as session,
    ):
        served = Served(process, f"http://127.0.0.1:{port}", session)
        await served.until_healthy()
        yield served
