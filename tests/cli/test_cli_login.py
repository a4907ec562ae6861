"""`platformctl login`: wrong addresses, servers that are no platform, prompts that are interrupted."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from kernel.testing import Start
from tests.cli.conftest import Cli
from tests.fakes.terminal import shown_by
from tests.fakes.website import site_with

PASSWORD = "a long enough password"
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def port_with(talk: Talk) -> AsyncIterator[str]:
    """The address of a server that talks like this."""
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    "url", ["not a url", "http://127.0.0.1:99999", "http://[::1", "ftp://x", "http://:80"]
)
def test_addresses_that_are_none(cli: Cli, url: str) -> None:
    refused = cli("login", url, "-u", "ann", input=f"{PASSWORD}\n")
    assert refused.exit_code == 2 and f"'{url}'" in refused.stderr


@pytest.mark.parametrize(
    "answer",
    [
        lambda _request: web.Response(text="<html>Welcome</html>", content_type="text/html"),
        lambda _request: web.Response(status=405, text="no"),
        lambda _request: web.json_response({"detail": "not found"}, status=404),
        lambda _request: web.json_response({"hello": "world"}),
    ],
    ids=["page", "405", "404", "json"],
)
async def test_a_website(
    cli: Cli, answer: Callable[[web.Request], web.Response], platform_home: Path
) -> None:
    """What answers is not the API: the remedy names the command that shows the address."""
    async with site_with(answer) as url:
        refused = await asyncio.to_thread(cli, "login", url, "-u", "ann", input=f"{PASSWORD}\n")
    assert refused.exit_code == 1 and "platformctl serve" in refused.stderr, refused.stderr
    assert not (platform_home / "login.json").exists()


async def test_another_protocol(cli: Cli) -> None:
    """A server that does not speak HTTP is no platform, also for commands of an earlier session."""

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"INFO a greeting that is not HTTP\r\n")
        await writer.drain()
        writer.close()

    async with port_with(greet) as url:
        refused = await asyncio.to_thread(cli, "login", url, "-u", "ann", input=f"{PASSWORD}\n")
        env = {"PLATFORM_API_URL": url, "PLATFORM_API_TOKEN": "plk_token"}
        asked = await asyncio.to_thread(cli, "ask", "Who?", "--kb", "Papers", env=env)
    for done in (refused, asked):
        assert done.exit_code == 1 and "platformctl serve" in done.stderr, done.stderr


async def test_a_connection_that_breaks_off(cli: Cli) -> None:
    """It is named with its address, as when a platform is killed in mid-answer."""

    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"items"'
        )
        await writer.drain()
        writer.close()

    async with port_with(half) as url:
        env = {"PLATFORM_API_URL": url, "PLATFORM_API_TOKEN": "plk_token"}
        asked = await asyncio.to_thread(cli, "ask", "Who?", "--kb", "Papers", env=env)
    assert asked.exit_code == 1 and asked.stderr.startswith(f"error: {url} "), asked.stderr


async def test_for_a_program(cli: Cli, start_platform: Start, platform_home: Path) -> None:
    """With `--json`, standard output has the address and the account; the token stays in its file."""
    running = await start_platform()
    body = {"username": "bea", "email": "bea@example.org", "password": PASSWORD}
    assert (await running.anonymous.post("/v1/auth/register", json=body)).status == 201
    told = await asyncio.to_thread(cli, "login", running.url, "-u", "bea", "--json", input=f"{PASSWORD}\n")
    assert told.exit_code == 0, told.stderr
    found = json.loads(told.stdout)
    assert (found["url"], found["username"]) == (running.url, "bea") and found["expires_at"]
    token = json.loads((platform_home / "login.json").read_text())["token"]
    assert token not in told.stdout + told.stderr


def test_a_pipe_without_a_name(cli: Cli) -> None:
    refused = cli("login", "http://127.0.0.1:9", input=f"{PASSWORD}\n")
    assert refused.exit_code == 2 and "--username" in refused.stderr and not refused.stdout


@pytest.mark.parametrize(("words", "prompt"), [((), "Name: "), (("-u", "ann"), "Password: ")])
def test_interrupted_at_a_prompt(words: tuple[str, ...], prompt: str, platform_home: Path) -> None:
    """Ctrl-C ends the command with 130, as in a shell."""
    code, screen = shown_by(
        "login",
        "http://127.0.0.1:9",
        *words,
        env={"PLATFORM_HOME": str(platform_home)},
        replies=[(prompt, signal.SIGINT)],
    )
    assert code == 130 and "Aborted" not in screen, screen


async def test_broken_rules(cli: Cli, start_platform: Start) -> None:
    """What is too short or too long is named with its bound, whether the command or the API finds it."""
    short = await asyncio.to_thread(cli, "users", "create", "ann", "--password-stdin", input="short\n")
    assert short.exit_code == 2
    assert re.search(r"password: .* 8 ", " ".join(short.stderr.replace("│", "").split()))
    running = await start_platform("rag")
    ann = await running.user("ann")
    env = {"PLATFORM_API_URL": running.url, "PLATFORM_API_TOKEN": ann.token}
    long = await asyncio.to_thread(cli, "ingest", __file__, "--kb", "x" * 256, env=env)
    assert long.exit_code == 1 and re.search("name: .* 255 ", long.stderr), long.stderr
