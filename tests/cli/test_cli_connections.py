"""`platformctl models` against a running platform: connect, list, test, disconnect; what `doctor` says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from kernel.testing import Running, Start, somebody
from tests.cli.conftest import Cli
from tests.cli.test_cli_ingest import Terminal, signed_in
from tests.fakes.model_server import Script, model_server

KEY = "sk-0123456789-very-secret"


async def administrator(cli: Cli, running: Running, home: Path) -> Terminal:
    """A command line of an administrator."""
    terminal = await signed_in(cli, running, home)
    admin = await somebody(running, platform_admin=True)
    people = (await admin.get("/v1/auth/users?limit=500")).json()["items"]
    account = next(one["id"] for one in people if one["username"] == terminal.name)
    assert (await admin.patch(f"/v1/auth/users/{account}/role", json={"role": "admin"})).status == 200
    return terminal


async def test_the_whole_way(cli: Cli, start_platform: Start, tmp_path: Path) -> None:
    """A server with a key is connected, listed without the key, tested, and disconnected."""
    running = await start_platform("tenancy", "models", env={"PLATFORM_MODELS_NEARBY": ""})
    terminal = await administrator(cli, running, tmp_path / "client")
    async with model_server(Script(models=("big",), api_key=KEY)) as cloud:
        arguments = ("models", "connect", cloud.url, "--name", "cloud", "--model", "big", "--key-stdin")
        refused = await terminal(*arguments, given="wrong\n")
        assert refused.exit_code != 0
        connected = await terminal(*arguments, given=f"{KEY}\n")
        assert connected.exit_code == 0, connected.output
        listed = await terminal("models", "list", "--json")
        [server] = json.loads(listed.stdout)
        assert (server["name"], server["has_key"], KEY in listed.output) == ("cloud", True, False)
        assert json.loads((await terminal("models", "test", "cloud", "--json")).stdout)["models"] == ["big"]
    assert (await terminal("models", "test", "cloud")).exit_code != 0
    assert (await terminal("models", "disconnect", "cloud")).exit_code == 0
    assert json.loads((await terminal("models", "list", "--json")).stdout) == []


async def test_doctor(cli: Cli, start_platform: Start, tmp_path: Path) -> None:
    """It names a connected server whose test fails, with the step, and says nothing of a key."""
    running = await start_platform("tenancy", "models", env={"PLATFORM_MODELS_NEARBY": ""})
    terminal = await administrator(cli, running, tmp_path / "client")
    async with model_server(Script(models=("big",))) as server, model_server() as other:
        assert (await terminal("models", "connect", server.url, "--name", "gpu")).exit_code == 0
        for url, name in ((other.url, "ollama"), (other.url, "ollama"), (server.url, "gpu")):
            made = await terminal("models", "connect", url, "--json")
            assert json.loads(made.stdout)["name"] == name
        localhost = server.url.replace("127.0.0.1", "localhost")
        made = await terminal("models", "connect", localhost, "--json")
        assert json.loads(made.stdout)["name"] == "ollama-2"
        for name in ("ollama", "ollama-2"):
            assert (await terminal("models", "disconnect", name)).exit_code == 0
    findings = json.loads((await asyncio.to_thread(cli, "doctor", "--json")).stdout)
    [found] = [one for one in findings if one["check"] == "model server"]
    assert found["status"] == "warning"
