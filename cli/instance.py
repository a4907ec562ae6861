"""A throw-away platform: a child process with its own home, and a signed-in client."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from cli.failures import CommandFailed
from kernel.process.serve import this_command
from kernel.process.server import bind

_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
# Settings of the operator's platform must not reach the throw-away one.
_FOREIGN = ("DATABASE_", "REDIS_", "JWT_", "OLLAMA_", "OPENAI_", "RATE_LIMIT_", "AUTH_RATE_", "PLATFORM_")
# These describe the machine and apply to both.
_OF_THE_MACHINE = "_THREADS"
_LOG = "platform.log"


@dataclass
class Instance:
    """A running platform and an HTTP session with it."""

    home: Path
    url: str
    session: aiohttp.ClientSession
    token: str = ""

    @property
    def manifests(self) -> Path:
        """The folder that it watches for manifests."""
        return self.home / "manifests"

    async def call(
        self, method: str, path: str, *, expect: int | tuple[int, ...] = 200, **options: Any
    ) -> Any:
        """The JSON of a response. Raises CommandFailed for an unexpected status."""
        headers = {**({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        headers.update(options.pop("headers", {}))
        async with self.session.request(method, self.url + path, headers=headers, **options) as answer:
            body = await answer.json(content_type=None)
            if answer.status not in ((expect,) if isinstance(expect, int) else expect):
                detail = body.get("detail") if isinstance(body, dict) else body
                raise CommandFailed(f"{method} {path} answered {answer.status}: {detail}")
            return body

    async def status(self, path: str) -> int:
        """The status of a GET."""
        async with self.session.get(self.url + path) as answer:
            return answer.status

    async def sign_up(self, name: str) -> None:
        """Make an account and sign in."""
        account = {"username": name, "password": secrets.token_urlsafe(16)}
        email = {"email": f"{name}@demo.example.com"}
        await self.call("POST", "/v1/auth/register", expect=201, json={**account, **email})
        self.token = (await self.call("POST", "/v1/auth/login", json=account))["access_token"]


@asynccontextmanager
async def throw_away_instance(settings: Mapping[str, str] | None = None) -> AsyncIterator[Instance]:
    """Start a platform on a free port; stop it and remove its home afterwards. Raises CommandFailed.

    `settings` are variables of its environment besides the defaults.
    """
    home = Path(tempfile.mkdtemp(prefix="platform-demo-"))
    try:
        with bind("127.0.0.1", 0) as probe:
            port = probe.getsockname()[1]
        (home / "manifests").mkdir()
        process = await _start(home, port, settings or {})
        try:
            async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
                instance = Instance(home, f"http://127.0.0.1:{port}", session)
                await _ready(instance, process)
                yield instance
        finally:
            await _stop(process)
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def _start(home: Path, port: int, settings: Mapping[str, str]) -> asyncio.subprocess.Process:
    command = this_command("serve", "--host", "127.0.0.1", "--port", str(port))
    with (home / _LOG).open("ab") as log:
        return await asyncio.create_subprocess_exec(
            *command,
            env={**isolated_environment(home), **settings},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )


def variables(matches: Callable[[str], bool]) -> dict[str, str]:
    """The variables of this process's environment with matching names."""
    return {name: value for name, value in os.environ.items() if matches(name)}


def isolated_environment(home: Path) -> dict[str, str]:
    """Embedded defaults in its own home, without the rate limit, which polling would exceed."""
    own = {
        "PLATFORM_HOME": str(home),
        "PLATFORM_MANIFESTS_DIR": str(home / "manifests"),
        "PLATFORM_LOG_FORMAT": "text",
        "RATE_LIMIT_PER_MINUTE": "6000",
        "RATE_LIMIT_ACCOUNT_PER_MINUTE": "6000",
        "HF_HUB_OFFLINE": "1",
    }
    return variables(lambda name: name.endswith(_OF_THE_MACHINE) or not name.startswith(_FOREIGN)) | own


async def _ready(instance: Instance, process: asyncio.subprocess.Process) -> None:
    """Wait for the first 200 on /health."""
    deadline = asyncio.get_running_loop().time() + _START_SECONDS
    while process.returncode is None and asyncio.get_running_loop().time() < deadline:
        with suppress(aiohttp.ClientError, OSError):
            if await instance.status("/health") == 200:
                return
        await asyncio.sleep(0.05)
    raise CommandFailed(
        f"the temporary instance did not start. The end of its log:\n{log_tail(instance.home)}"
    )


def log_tail(home: Path, lines: int = 15) -> str:
    """The last lines of an instance's log."""
    with suppress(OSError):
        return "\n".join((home / _LOG).read_text(errors="replace").splitlines()[-lines:])
    return ""


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
