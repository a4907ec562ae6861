"""`platformctl doctor`: each defect is found, with its remedy."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.machine_checks import check_dev_ports, check_port
from kernel.testing import Start
from tests.cli.conftest import Cli
from tests.cli.packages import Package

Findings = dict[str, dict[str, Any]]


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """A port that nobody listens on, whatever runs on this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PLATFORM_PORT", str(probe.getsockname()[1]))


def examined(cli: Cli, **env: str) -> tuple[int, Findings]:
    """Exit code, and the last finding of each check."""
    result = cli("doctor", "--json", env=env)
    return result.exit_code, {item["check"]: item for item in json.loads(result.stdout)}


def test_fresh_machine_is_sound(cli: Cli, platform_home: Path) -> None:
    """Before the first start nothing is wrong, and looking makes nothing."""
    code, found = examined(cli)
    assert (code, {item["status"] for item in found.values()}) == (0, {"ok"})
    assert not platform_home.exists()


def test_used_home_is_sound(cli: Cli) -> None:
    """After a migration the database is up to date and the secrets are closed."""
    cli("db", "upgrade")
    code, found = examined(cli)
    assert code == 0
    assert found["database"]["text"] == "SQLite, up to date"
    assert found["secrets"]["status"] == "ok"


def test_shown_for_people(cli: Cli) -> None:
    """On the screen each check has its line, and the end sums up."""
    result = cli("doctor")
    assert result.exit_code == 0
    assert "✓ database" in result.stdout
    assert result.stdout.rstrip().endswith("All is well.")


def test_pending_migrations(cli: Cli, platform_home: Path) -> None:
    """A home whose database lacks tables is a warning that names the command."""
    platform_home.mkdir(mode=0o700)
    code, found = examined(cli)
    assert (code, found["database"]["status"]) == (0, "warning")
    assert "platformctl db upgrade" in found["database"]["remedy"]


def test_secret_that_others_can_read(cli: Cli, platform_home: Path) -> None:
    """A secret with loose permissions fails, with the command that closes it."""
    cli("secret", "set", "deploy", input="s3cret")
    (platform_home / "secrets" / "deploy").chmod(0o644)
    code, found = examined(cli)
    assert (code, found["secrets"]["status"]) == (1, "failed")
    assert found["secrets"]["remedy"] == f"chmod 600 {platform_home / 'secrets' / 'deploy'}"


def test_home_that_others_can_enter(cli: Cli, platform_home: Path) -> None:
    """A home with loose permissions is a warning."""
    platform_home.mkdir(mode=0o755)
    result = cli("doctor")
    assert f"chmod 700 {platform_home}" in result.stdout


def test_unreachable_stores(cli: Cli) -> None:
    """A database and a Redis that do not answer fail, and the other checks still run."""
    env = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1"}
    code, found = examined(cli, **env)
    assert code == 1
    assert (found["database"]["status"], found["cache"]["status"]) == ("failed", "failed")
    assert "nobody" not in json.dumps(found)


def test_wrong_setting_stops_early(cli: Cli) -> None:
    """A setting that can't be read fails and is named."""
    code, found = examined(cli, PLATFORM_WORKERS="many")
    assert (code, found["settings"]["status"]) == (1, "failed")
    assert "PLATFORM_WORKERS" in found["settings"]["text"]


def test_misspelt_setting(cli: Cli) -> None:
    """A variable that nobody reads is a warning with the likely name."""
    code, found = examined(cli, PLATFORM_WORKER="2")
    assert (code, found["settings"]["status"]) == (0, "warning")
    assert "did you mean PLATFORM_WORKERS" in found["settings"]["text"]


def test_damaged_model_files(cli: Cli, tmp_path: Path) -> None:
    """Model files that are not the published ones fail."""
    code, found = examined(cli, PLATFORM_EMBEDDINGS_WEIGHTS=str(tmp_path))
    assert (code, found["model files"]["status"]) == (1, "failed")


def test_plugin_out_of_service(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin that can't be loaded fails with its reason, and the model files are still checked."""
    package = Package("acme-broken", body="raise RuntimeError('no licence')")
    monkeypatch.syspath_prepend(package.unpack(tmp_path / "packages"))
    code, found = examined(cli)
    assert (code, found["plugin"]["status"]) == (1, "failed")
    assert "acme_broken: it can't be imported: RuntimeError: no licence" in found["plugin"]["text"]
    assert found["model files"]["status"] == "ok"


def test_missing_secret_of_a_manifest(cli: Cli, tmp_path: Path) -> None:
    """A manifest whose secret is not set is a warning that says how to set it."""
    sample = Path(__file__).parents[2] / "manifests" / "samples" / "github-issues.yaml"
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "issues.yaml").write_text(sample.read_text())
    code, found = examined(cli)
    assert (code, found["manifest"]["status"]) == (0, "warning")
    assert "platformctl secret set github-issues" in found["manifest"]["text"]


async def test_running_platform(cli: Cli, start_platform: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform that answers is told from a stranger, and a missing worker is a warning."""
    running = await start_platform("rag")
    monkeypatch.setenv("PLATFORM_PORT", running.url.rpartition(":")[2])
    _, found = await asyncio.to_thread(examined, cli)
    assert f"a platform answers at {running.url[7:]}" in found["port"]["text"]
    assert found["worker"]["status"] == "warning"
    assert found["worker"]["remedy"] == "Start a worker: platformctl worker"


def test_taken_dev_port() -> None:
    """A service port that somebody listens on is named; a free one is not."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as gone:
        taken, free = server.getsockname()[1], gone.getsockname()[1]
        gone.close()
        found = check_dev_ports([taken, free])
    assert (found.status, found.text) == ("failed", f"other programs are using {taken}")
    assert check_dev_ports([free]).status == "ok"


@contextmanager
def stranger(answer: bytes) -> Iterator[int]:
    """Somebody else's server on a port, for one connection."""
    import threading

    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-Other\r\n",
        b"HTTP/1.0 404 Not Found\r\n\r\nnothing here",
        b'HTTP/1.0 200 OK\r\n\r\n{"status": "up"}',
        b"HTTP/1.0 200 OK\r\n\r\n[]",
    ],
)
def test_port_of_a_stranger(answer: bytes) -> None:
    """Whatever else answers on the port, it is told to be no platform."""
    with stranger(answer) as port:
        found = check_port("127.0.0.1", port)
    assert (found.status, found.platform_answers) == ("failed", False)
    assert "another program is using" in found.text
