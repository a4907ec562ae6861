"""`platformctl serve` and `worker` as processes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import psutil
import pytest
import pytest_asyncio

from kernel.testing import eventually
from tests.cli.conftest import Cli
from tests.fakes.processes import (
    Process,
    Served,
    free_port,
    listening,
    platformctl,
    running_process,
    served_platform,
    without_plugins,
)

BARE = without_plugins()
RAG = without_plugins("rag")
BROKEN = {**without_plugins("news", "web_client"), "NEWS_MAX_ITEMS": "many"}
OUT_OF_SERVICE = "plugin news is out of service"
HEAVY = {"torch", "faiss", "transformers", "sentence_transformers", "openvino", "tantivy", "alembic"}


def children(process: Process, word: str) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(process.pid).children():
        try:
            found += [child] if word in child.cmdline() else []
        except psutil.NoSuchProcess:
            continue
    return found


def lives(process: psutil.Process) -> bool:
    """Whether it has not ended; nobody may have taken notice of its end."""
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("serve") / "home"


@pytest.fixture
def strange_home(tmp_path: Path) -> Path:
    home = tmp_path / "strange"
    home.mkdir()
    os.chown(home, 65534, 65534)
    return home


class TestOneProcess:
    async def test_says_where_to_go_next(self, bare_cli: Cli, platform_home: Path) -> None:
        """The first start names address, home and how to make the first account; a later one is briefer.
        A plugin that is off by default doesn't count as loaded.
        """
        env = without_plugins("plugin_registry", "news")
        async with served_platform(platform_home, "--no-worker", env=env, migrated=False) as served:
            await eventually(lambda: "is ready" in served.process.output())
            first = served.process.output()
        assert f"{served.url}/docs" in first
        assert str(platform_home) in first
        assert re.search(r"Plugins +8 loaded", first)
        assert "platformctl users create" in first
        code = (platform_home / "secrets/first-account").read_text("utf-8")
        assert f"{served.url}/#first-account={code}" in first
        await asyncio.to_thread(bare_cli, "users", "create", "ada", "--admin", "--generate")
        async with served_platform(platform_home, "--no-worker", env=BARE) as served:
            await eventually(lambda: served.process.output().count("is ready") == 2)
            second = served.process.output()[len(first) :]
        assert "users create" not in second and "first-account" not in second

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
    async def test_root_in_an_empty_home_of_another_account(self, strange_home: Path) -> None:
        """A container may run as root over a folder of the host: there is no service to lock out."""
        async with served_platform(strange_home, "--no-worker", env=BARE, migrated=False) as served:
            await eventually(lambda: "is ready" in served.process.output())

    async def test_start_imports_nothing_heavy(self, home: Path, tmp_path: Path) -> None:
        """Models, indexes and the job engine are not imported by an API process that nobody has asked yet."""
        port = free_port()
        command = ("-X", "importtime", "-P", "-m", "cli", "serve", "--port", str(port), "--no-worker")
        async with served_platform(home, "--no-worker"):
            pass
        env = {"PLATFORM_HOME": str(home)}
        async with running_process(*command, env=env, log=tmp_path / "log") as process:
            await eventually(lambda: "is ready" in process.output())
            output = process.output()
        imported = {line.rpartition("|")[2].strip() for line in output.splitlines() if "import time" in line}
        assert len(imported) > 100
        assert {name.partition(".")[0] for name in imported} & HEAVY == set()

    async def test_home_that_others_may_enter(self, tmp_path: Path) -> None:
        """The database, files and notes in a home made by somebody else are the platform's alone."""
        home = tmp_path / "home"
        home.mkdir()
        home.chmod(0o755)
        async with served_platform(home, migrated=False):
            assert (home / "platform.db").exists()
        open_to_others = [path for path in home.rglob("*") if path.stat().st_mode & 0o077]
        assert open_to_others == []

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    async def test_stops_in_order(self, home: Path, number: signal.Signals) -> None:
        """SIGTERM, or a terminal that is closed, ends it, and its worker, with exit status 0."""
        async with served_platform(home, env=BARE) as served:
            await eventually(lambda: bool(children(served.process, "worker")))
            worker = children(served.process, "worker")[0]
            served.process.signal(number)
            assert await served.process.wait() == 0
            assert not worker.is_running()

    async def test_dead_worker_is_replaced(self, home: Path) -> None:
        """A worker that is killed is started again, and the API keeps answering. What is out of service is in
        the log once, not from each of them.
        """
        async with served_platform(home, env=BROKEN) as served:
            await eventually(lambda: bool(children(served.process, "worker")))
            killed = children(served.process, "worker")[0]
            killed.kill()
            await eventually(
                lambda: any(child.pid != killed.pid for child in children(served.process, "worker"))
            )
            assert (await served.get("/health"))[0] == 200
            await eventually(lambda: "is ready for jobs" in served.process.output())
            assert served.process.output().count(OUT_OF_SERVICE) == 1

    @pytest.mark.parametrize("options", [(), pytest.param(("--workers", "2"), marks=pytest.mark.long)])
    async def test_children_die_with_their_parent(self, tmp_path: Path, options: Sequence[str]) -> None:
        """`kill -9` of the first process leaves neither a worker nor an API process behind."""
        async with served_platform(tmp_path / "home", *options, env=BARE) as served:
            await eventually(lambda: "is ready for jobs" in served.process.output())
            offspring = list(filter(lives, psutil.Process(served.process.pid).children(recursive=True)))
            assert len(offspring) == 1 + 2 * bool(options)
            await served.process.kill()
            try:
                await eventually(lambda: not any(map(lives, offspring)), seconds=20)
            finally:
                for left in filter(lives, offspring):
                    left.kill()

    async def test_taken_port(self, home: Path, tmp_path: Path) -> None:
        """A port that is in use is named in one line, and the exit code is 1."""
        async with served_platform(home, "--no-worker", env=BARE) as served:
            port = served.url.rpartition(":")[2]
            result = await run("serve", "--port", port, "--no-worker", home=tmp_path / "other", **BARE)
        assert result.code == 1
        assert re.search(rf"^error: .*127\.0\.0\.1:{port}", result.output, re.MULTILINE)
        assert "Traceback" not in result.output

    async def test_taken_port_of_a_service(self, tmp_path: Path) -> None:
        """--port would not help, so the command that shows the service's setting is named."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            env = {**without_plugins("web_client"), "PLATFORM_WEB_CLIENT_PORT": str(port)}
            async with served_platform(tmp_path / "home", "--no-worker", env=env) as served:
                await eventually(lambda: "is ready" in served.process.output())
                said = served.process.output()
        assert f" 127.0.0.1:{port}" in said
        assert "platformctl settings web_client" in said and "--port" not in said

    async def test_taken_development_port(self, tmp_path: Path) -> None:
        with ExitStack() as stack:
            with suppress(OSError):  # another program that has it will do
                stack.enter_context(socket.create_server(("127.0.0.1", 8004)))
            command = ("serve", "--port", "0", "--no-worker")
            result = await run(*command, home=tmp_path / "home", PLATFORM_DEV_PORTS="true", **RAG)
        assert result.code == 1
        assert "unset PLATFORM_DEV_PORTS" in result.output and "--port" not in result.output

    @pytest.mark.parametrize(
        ("options", "named"),
        [
            (("--host", "192.0.2.1"), "--host"),
            (("--log-file", "/"), "PLATFORM_LOG_FILE"),
            (("--only", "telepathy"), "offered here: "),
        ],
    )
    async def test_options_that_cannot_be(self, tmp_path: Path, options: tuple[str, str], named: str) -> None:
        """An address that this machine lacks, a log file that is a folder, a service that nobody offers."""
        result = await run("serve", "--port", "0", *options, home=tmp_path / "home", **RAG)
        assert (result.code, named in result.output, "Traceback" in result.output) == (1, True, False)

    async def test_no_room_for_a_home(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        result = await run("serve", "--port", "0", home=tmp_path / "file" / "home")
        assert (result.code, result.output.count("PLATFORM_HOME")) == (1, 1)

    async def test_only_one_service(self, tmp_path: Path) -> None:
        """`--only` serves the service at its own root, and nothing of the gateway."""
        async with served_platform(
            tmp_path / "home", "--no-worker", "--only", "rag-pipeline", env=RAG
        ) as served:
            assert (await served.get("/knowledge-bases"))[0] == 401
            assert (await served.get("/v1/auth/capabilities"))[0] == 404
            assert (await served.get("/health"))[1]["service"] == "rag-pipeline"

    async def test_log_lines_go_to_a_file(self, tmp_path: Path) -> None:
        """With --log-file every log line is a JSON object in that file, and none is on standard error. After
        logrotate has moved the file, the next request's line is in a new one.
        """
        file = tmp_path / "logs" / "platform.log"
        async with served_platform(
            tmp_path / "home", "--no-worker", "--log-file", str(file), env=BARE
        ) as served:
            await served.get("/v1/auth/capabilities", headers={"X-Request-ID": "told-apart"})
            await eventually(lambda: "told-apart" in file.read_text())
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            shown = served.process.output()
            file.rename(tmp_path / "platform.log.1")
            await served.get("/v1/auth/capabilities", headers={"X-Request-ID": "after"})
            await eventually(lambda: file.exists() and "after" in file.read_text())
        assert any(line.get("request_id") == "told-apart" for line in lines)
        assert "told-apart" not in shown

    @pytest.mark.long
    async def test_without_standard_streams(self, tmp_path: Path) -> None:
        """A parent that has closed all three gets a platform with a worker all the same."""
        port = free_port()
        command = [sys.executable, "-P", "-m", "cli", "serve", "--port", str(port)]
        script = f"import os; os.closerange(0, 3); os.execv({sys.executable!r}, {command!r})"
        env = {**BARE, "PLATFORM_HOME": str(tmp_path / "home")}
        async with (
            running_process("-P", "-c", script, env=env, log=tmp_path / "log", fresh=True) as process,
            aiohttp.ClientSession() as session,
        ):
            await Served(process, f"http://127.0.0.1:{port}", session).until_healthy()
            await eventually(lambda: any(lives(child) for child in children(process, "worker")))
            process.signal(signal.SIGTERM)
            assert await process.wait() == 0

    async def test_no_room_for_log_lines(self, tmp_path: Path) -> None:
        """Lines that the log file can't take are on standard error, and the requests are served."""
        options = ("--no-worker", "--log-file", "/dev/full")
        async with served_platform(tmp_path / "home", *options, env=BARE) as served:
            headers = {"X-Request-ID": "no-room"}
            assert (await served.get("/v1/auth/capabilities", headers=headers))[0] == 200
            await eventually(lambda: "no-room" in served.process.output())
        assert "Traceback" not in served.process.output()


@asynccontextmanager
async def many(home: Path) -> AsyncIterator[Served]:
    env = {**BROKEN, "RATE_LIMIT_PER_MINUT": "9", "PLATFORM_WEB_CLIENT_PORT": str(free_port())}
    async with served_platform(home, "--workers", "2", env=env) as served:
        await eventually(lambda: len(listening(served.process)) == 2)
        yield served


def living(process: Process) -> list[psutil.Process]:
    return [c for c in children(process, "--shared-port") if c.status() != psutil.STATUS_ZOMBIE]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """Two API processes and a worker, shared by the tests below in their order."""
    async with many(tmp_path_factory.mktemp("many") / "home") as served:
        yield served


@pytest.mark.asyncio(loop_scope="module")
class TestSeveralProcesses:
    async def test_share_one_port(self, served: Served) -> None:
        """N API processes and one worker run under a parent; they take turns on the one port."""
        assert len(living(served.process)) == 2
        await eventually(lambda: len(children(served.process, "worker")) == 1)
        assert (await served.get("/v1/auth/capabilities"))[0] == 200

    async def test_pages_have_titles(self, served: Served) -> None:
        """What is served on a port of its own has its title in the banner, as with a single process."""
        await eventually(lambda: "is ready\n" in served.process.output())
        assert re.search(r"^  Web client http://127\.0\.0\.1:\d+$", served.process.output(), re.MULTILINE)

    async def test_warnings_about_settings_come_once(self, served: Served) -> None:
        """A misspelt variable is named once, not by every process, and so is a plugin out of service."""
        await eventually(lambda: "is ready for jobs" in served.process.output())
        said = "RATE_LIMIT_PER_MINUT is not a setting; did you mean RATE_LIMIT_PER_MINUTE?"
        assert served.process.output().count(said) == 1
        assert served.process.output().count(OUT_OF_SERVICE) == 1

    async def test_second_platform_is_kept_off_the_port(self, served: Served, tmp_path: Path) -> None:
        """Sharing a port is for one platform's processes: another platform is refused."""
        port = served.url.rpartition(":")[2]
        result = await run("serve", "--port", port, "--workers", "2", home=tmp_path / "other", **BARE)
        assert (result.code, f"127.0.0.1:{port}" in result.output) == (1, True)

    async def test_one_that_dies_is_replaced(self, served: Served) -> None:
        """While one of them is killed and started again, the other answers."""
        killed = living(served.process)[0]
        killed.kill()
        # A zombie's other threads may still hold its socket, which takes connections to their end.
        await eventually(lambda: not killed.is_running())
        assert (await served.get("/health"))[0] == 200
        await eventually(lambda: len(living(served.process)) == 2)

    async def test_all_stop_together(self, served: Served) -> None:
        offspring = psutil.Process(served.process.pid).children(recursive=True)
        served.process.signal(signal.SIGTERM)
        assert await served.process.wait() == 0
        assert [child for child in offspring if child.is_running()] == []


class TestWorker:
    async def test_runs_alone(self, tmp_path: Path) -> None:
        """A worker without an API process makes its own start: home, tables, queue."""
        env = {**BARE, "PLATFORM_HOME": str(tmp_path / "home")}
        command = ("-P", "-m", "cli", "worker")
        async with running_process(*command, env=env, log=tmp_path / "log") as process:
            await eventually(lambda: "is ready for jobs" in process.output())
            process.signal(signal.SIGTERM)
            assert await process.wait() == 0


class Ended:
    """What a process left."""

    def __init__(self, code: int, output: str) -> None:
        self.code = code
        self.output = re.sub(r"\s+", " ", output)


async def run(*arguments: str, home: Path, **settings: str) -> Ended:
    env = {"PLATFORM_HOME": str(home), **settings}
    ended = await asyncio.to_thread(platformctl, *arguments, env=env, seconds=30)
    return Ended(ended.returncode, ended.stdout + ended.stderr)
