"""Git's own HTTP server (`git http-backend`) behind a web server that can refuse, cut off and count."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestServer

_QUIET = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
}


def git(folder: Path, *words: str, **environment: str) -> str:
    """Run git as a person would; returns what it says."""
    ran = subprocess.run(
        ["git", *words],
        cwd=folder,
        env={**os.environ, **_QUIET, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


class GitServer:
    """A repository `docs.git` with a working copy beside it.

    `token` must come with each request, if it is set; `refusal` is a status that everything is answered with;
    with `cut`, answers end after so many bytes. `sent` counts the bytes of packs.
    """

    def __init__(self, folder: Path) -> None:
        self.bare, self.work = folder / "docs.git", folder / "work"
        self.token: str | None = None
        self.refusal: int | None = None
        self.cut: int | None = None
        self.sent = 0
        self.commands: list[str] = []
        self.url = ""
        folder.mkdir(exist_ok=True)
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", "docs.git")
        git(self.bare, "config", "uploadpack.allowFilter", "true")
        git(folder, "clone", "--quiet", "docs.git", "work")
        git(self.work, "commit", "--quiet", "--allow-empty", "-m", "begin")
        git(self.work, "push", "--quiet", "origin", "HEAD:main")

    def publish(self, branch: str = "main", **environment: str) -> None:
        """Commit everything in the working copy, and push it."""
        git(self.work, "add", "--all", "--force")
        git(self.work, "commit", "--quiet", "--allow-empty", "-m", "change", **environment)
        git(self.work, "push", "--quiet", "origin", f"HEAD:{branch}")

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.refusal is not None:
            return web.Response(status=self.refusal)
        expected = base64.b64encode(f"git:{self.token}".encode()).decode()
        if self.token and request.headers.get("Authorization") != f"Basic {expected}":
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="git"'})
        head, _, body = (await self._backend(request)).partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        status = int(headers.pop("Status", "200").split()[0])
        if request.method == "POST":
            self.sent += len(body)
        if self.cut is None or len(body) <= self.cut:
            return web.Response(body=body, status=status, headers=headers)
        reply = web.StreamResponse(status=status, headers={**headers, "Content-Length": str(len(body))})
        await reply.prepare(request)
        await reply.write(body[: self.cut])
        assert request.transport is not None
        request.transport.abort()
        return reply

    async def _backend(self, request: web.Request) -> bytes:
        process = await asyncio.create_subprocess_exec(
            "git",
            "http-backend",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **_QUIET, **self._variables(request)},
        )
        written, _ = await process.communicate(await request.read())
        return written

    def _variables(self, request: web.Request) -> Mapping[str, str]:
        return {
            "GIT_PROJECT_ROOT": str(self.bare.parent),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query_string,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }


@asynccontextmanager
async def git_server(folder: Path) -> AsyncIterator[GitServer]:
    """Serve a new repository on a free port of 127.0.0.1."""
    found = GitServer(folder)
    app = web.Application(client_max_size=2**30)
    app.router.add_route("*", "/{path:.*}", found.answer)
    async with TestServer(app) as server:
        found.url = f"http://127.0.0.1:{server.port}/docs.git"
        yield found
