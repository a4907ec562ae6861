"""Several machines: API processes and workers with homes of their own, behind the nginx of the documentation.

They share a database, an S3 store and Redis. Each can be killed and started again.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.fakes.processes import Child, free_port, process_environment, start_python, stop

CONFIG = Path(__file__).resolve().parents[2] / "docs" / "deploy" / "nginx-machines.conf"
_PATIENCE = 120.0
_GRACE = 25.0


@dataclass
class Machine:
    """One process with its own home."""

    name: str
    home: Path
    environment: Mapping[str, str]
    port: int | None
    """Of an API process; a worker has none."""
    process: Child | None = None
    starts: int = 0

    @property
    def log(self) -> Path:
        """What it writes."""
        return self.home.with_suffix(".log")

    async def start(self) -> None:
        """Start it, and wait until it answers or takes jobs."""
        command = ["serve", "--no-worker", "--port", str(self.port)] if self.port else ["worker"]
        values = process_environment({**self.environment, "PLATFORM_HOME": str(self.home)})
        with self.log.open("ab") as log:
            self.process = await start_python("-m", "cli", *command, env=values, output=log)
        self.starts += 1
        async with asyncio.timeout(_PATIENCE):
            while not await self._is_ready():
                if self.process.returncode is not None:
                    raise AssertionError(f"{self.name} did not start:\n{self.said()[-3000:]}")
                await asyncio.sleep(0.05)

    async def kill(self) -> None:
        """End it with SIGKILL."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()

    async def stop(self) -> None:
        """Ask it to stop; kill it if it does not."""
        if self.process is None or self.process.returncode is not None:
            return
        await stop(self.process, _GRACE)

    def said(self) -> str:
        """Everything it wrote."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    async def _is_ready(self) -> bool:
        if self.port is None:
            return self.said().count("is ready for jobs") >= self.starts
        async with aiohttp.ClientSession() as session:
            with suppress(aiohttp.ClientError):
                async with session.get(f"http://127.0.0.1:{self.port}/livez") as answer:
                    return answer.status == 200
        return False


@dataclass
class Machines:
    """All of them, and the address of the proxy in front."""

    url: str
    apis: list[Machine] = field(default_factory=list)
    workers: list[Machine] = field(default_factory=list)

    @property
    def all(self) -> list[Machine]:
        """API processes, then workers."""
        return [*self.apis, *self.workers]


@asynccontextmanager
async def machines(
    folder: Path,
    environment: Mapping[str, str],
    *,
    apis: int = 3,
    workers: int = 2,
    at_once: int | None = None,
) -> AsyncIterator[Machines]:
    """Started as the documentation says: the first alone, its secrets copied to the others, then these.

    With `at_once`, only so many are started.
    """
    listens = free_port()
    found = Machines(f"http://127.0.0.1:{listens}")
    values = {
        "RATE_LIMIT_ENABLED": "false",
        "TRUSTED_PROXY_CIDRS": "127.0.0.1/32",
        "PLATFORM_LOG_FORMAT": "text",
        "PLATFORM_PASSWORD_MEMORY_MB": "12",
        "PLATFORM_DATABASE_POOL_SIZE": "5",
        "PLATFORM_EMBEDDINGS_PRELOAD": "multilingual-e5-small",
        **environment,
    }
    for number in range(apis):
        found.apis.append(Machine(f"api-{number}", folder / f"api-{number}", values, free_port()))
    for number in range(workers):
        found.workers.append(Machine(f"worker-{number}", folder / f"worker-{number}", values, None))
    async with nginx(folder, listens, [machine.port for machine in found.apis if machine.port]):
        try:
            first, *others = found.all
            await first.start()
            for machine in others:
                machine.home.mkdir(mode=0o700)
                shutil.copytree(first.home / "secrets", machine.home / "secrets")
            wanted = found.all[1:at_once]
            await asyncio.gather(*(machine.start() for machine in wanted))
            yield found
        finally:
            await asyncio.gather(*(machine.stop() for machine in found.all))


@asynccontextmanager
async def nginx(folder: Path, port: int, upstreams: list[int]) -> AsyncIterator[asyncio.subprocess.Process]:
    """The documented server without TLS, in front of these ports. Clients may keep their connections."""
    text = CONFIG.read_text(encoding="utf-8")
    one = re.compile(r"    server 10\.0\.0\.\d+:8000 (.*)\n")
    options = one.findall(text)
    assert len(set(options)) == 1, "the documentation shows machines that differ"
    servers = "".join(f"    server 127.0.0.1:{upstream} {options[0]}\n" for upstream in upstreams)
    text = one.sub("", text).replace("    keepalive 32;", f"{servers}    keepalive 32;")
    text = text.replace("listen 443 ssl http2", f"listen 127.0.0.1:{port}")
    text = re.sub(r"    ssl_.*\n", "", text)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr;\nuser {getpass.getuser()};\n"
        f"events {{}}\nhttp {{\naccess_log off;\nkeepalive_requests 1000000;\n{temporary}{text}}}\n"
    )
    with (folder / "nginx.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *("nginx", "-e", "stderr", "-p", str(folder), "-c", str(config)),
            stdout=log,
            stderr=log,
            env=dict(os.environ),
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
