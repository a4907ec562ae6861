"""A platform, or a bare aiohttp handler, in its own process, for benchmarks."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

BARE = """
import sys, uvloop, asyncio
from aiohttp import web
body = open(sys.argv[2], "rb").read()
async def handler(request):
    return web.Response(body=body, content_type="application/json")
async def main():
    app = web.Application()
    app.router.add_get("/bare", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(sys.argv[1])).start()
    await asyncio.Event().wait()
uvloop.run(main())
"""


@dataclass
class Served:
    """A running server."""

    port: int
    process: asyncio.subprocess.Process
    seconds_to_health: float

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def platform(
    home: Path, *arguments: str, env: Mapping[str, str] | None = None, checkout: Path | None = None
) -> AsyncIterator[Served]:
    """This checkout's platform, or that of another one, which has its own `.venv`."""
    port = free_port()
    environment = {
        **os.environ,
        "PLATFORM_HOME": str(home),
        "PLATFORM_MANIFESTS_DIR": str(home / "manifests"),
        "RATE_LIMIT_PER_MINUTE": "1000000000",
        "RATE_LIMIT_ACCOUNT_PER_MINUTE": "1000000000",
        "AUTH_RATE_LIMIT_PER_MINUTE": "1000000",
        "LOG_LEVEL": "WARNING",
        **(env or {}),
    }
    # pip compiles what it installs: a start that compiled every module again would be no second start.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    python = sys.executable if checkout is None else str(checkout / ".venv" / "bin" / "python")
    command = [python, "-m", "cli", "serve", "--port", str(port), *arguments]
    async with process_of(command, environment, port, "/health", folder=checkout) as served:
        yield served


@asynccontextmanager
async def bare(body: bytes, folder: Path) -> AsyncIterator[Served]:
    """The baseline: a bare aiohttp handler that answers the same bytes."""
    port = free_port()
    file = folder / "bare.json"
    file.write_bytes(body)
    async with process_of(
        [sys.executable, "-c", BARE, str(port), str(file)], dict(os.environ), port, "/bare"
    ) as served:
        yield served


@asynccontextmanager
async def fastapi(database_url: str, jwt_secret: str, program: str = "fastapi_app") -> AsyncIterator[Served]:
    """The same answers by FastAPI (`tests.benchmarks.<program>`), over the same tables."""
    port = free_port()
    environment = {**os.environ, "DATABASE_URL": database_url, "JWT_SECRET": jwt_secret}
    command = [sys.executable, "-m", "uvicorn", f"tests.benchmarks.{program}:app", "--port", str(port)]
    command += ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    async with process_of(command, environment, port, "/ready") as served:
        yield served


@asynccontextmanager
async def process_of(
    command: list[str], environment: dict[str, str], port: int, ready: str, folder: Path | None = None
) -> AsyncIterator[Served]:
    """Any server in its own process, started in `folder`, once a GET of `ready` answers 200."""
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.DEVNULL, cwd=folder
    )
    try:
        await _wait(f"http://127.0.0.1:{port}{ready}", process)
        yield Served(port, process, time.perf_counter() - started)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


async def _wait(url: str, process: asyncio.subprocess.Process) -> None:
    async with aiohttp.ClientSession() as session:
        while process.returncode is None:
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                await asyncio.sleep(0.01)
    raise RuntimeError(f"the server ended with {process.returncode} before it was ready")


async def account(served: Served, name: str = "bench") -> str:
    async with aiohttp.ClientSession(served.url) as session:
        password = "a long enough password"
        body = {"username": name, "email": f"{name}@example.org", "password": password}
        async with session.post("/v1/auth/register", json=body) as answer:
            assert answer.status in (201, 409), await answer.text()
        async with session.post("/v1/auth/login", json={"username": name, "password": password}) as answer:
            return str((await answer.json())["access_token"])
