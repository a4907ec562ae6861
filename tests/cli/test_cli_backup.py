"""`platformctl backup` and `platformctl upgrade --check`, in a home with an account and a document."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import sqlite3
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from kernel.plugins.loading import installed
from kernel.testing import platforms, postgres_database
from kernel.testing.databases import names_among
from tests.cli.conftest import Cli

NAMES = ("embeddings", "models", "rag", "platform_ops")
TEXT = "The lighthouse keeper of Norderney counts the passing ships every single evening. He writes it down."


async def fill(home: Path) -> None:
    """An account whose knowledge base has one document, and a backup."""
    async with platforms(home) as start:
        running = await start(*NAMES)
        ann = await running.user("ann", role="admin")
        base = (await ann.post("/v1/rag/knowledge-bases", json={"name": "Ships"})).json()["id"]
        sent = await ann.upload(f"/v1/rag/knowledge-bases/{base}/upload", "ships.txt", TEXT.encode())
        assert sent.status == 202, sent.body
        await running.run_jobs()
        assert (await ann.post("/v1/backups")).status == 202
        await running.run_jobs()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("filled") / "home"
    asyncio.run(fill(home))
    return home


@pytest.fixture
def home(filled: Path, platform_home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in which the commands load the plugins of the copy alone."""
    shutil.copytree(filled, platform_home, dirs_exist_ok=True)
    others = sorted({one.name for one in installed() if not one.essential} - set(names_among(NAMES)))
    monkeypatch.setenv("PLATFORM_PLUGINS_DISABLED", ",".join(others))
    return platform_home


@pytest.fixture
def empty_database() -> Iterator[str]:
    with postgres_database(plain=True) as url:
        yield url


def newest(cli: Cli) -> str:
    result = cli("backup", "list", "--json")
    assert result.exit_code == 0, result.output
    return str(json.loads(result.stdout)[0]["name"])


def usernames(home: Path) -> set[str]:
    with closing(sqlite3.connect(home / "platform.db")) as connection:
        return {name for (name,) in connection.execute("SELECT username FROM kernel_account")}


@pytest.mark.long
def test_the_way_back_from_a_newer_version(cli: Cli, home: Path) -> None:
    """A database that a later version has changed is left alone; beside it, the backup restores."""
    name = newest(cli)
    database = home / "platform.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE kernel_alembic_version SET version_num = '9999'")
        connection.commit()
    assert cli("backup", "restore", name, "--yes").exit_code == 1
    for path in home.glob("platform.db*"):
        path.rename(path.with_name(f"later.{path.name}"))
    assert cli("backup", "restore", name, "--yes").exit_code == 0
    assert usernames(home) == {"ann"}


def test_create_and_verify(cli: Cli, home: Path) -> None:
    """A backup is made beside the first, and every byte of it read; a name that is none is not found."""
    result = cli("backup", "create")
    assert result.exit_code == 0, result.output
    [listed, _] = json.loads(cli("backup", "list", "--json").stdout)
    assert listed["name"] in result.output and 1_000 < listed["size_bytes"] < 1_000_000
    assert f"{listed['size_bytes'] / 1000:.1f} kB" in cli("backup", "list").stdout
    result = cli("backup", "verify")
    assert (result.exit_code, listed["name"] in result.output) == (0, True), result.output
    assert cli("backup", "verify", "platform-20200101-000000.tar.gz").exit_code == 3


def test_damage_is_found(cli: Cli, home: Path) -> None:
    """A piece that lost a byte fails the verification, without a traceback."""
    for piece in (home / "backups" / "objects").rglob("*"):
        if piece.is_file():
            piece.write_bytes(piece.read_bytes()[:-1])
    result = cli("backup", "verify")
    assert (result.exit_code, "Traceback" in result.output) == (1, False), result.output


def test_drill_into_postgresql(cli: Cli, home: Path, empty_database: str) -> None:
    """Rows, files and answers of a copy in PostgreSQL are the same; a database that is in use is refused."""
    result = cli("backup", "drill", "--into", empty_database)
    assert result.exit_code == 0, result.output
    for count in (" rows ", "1 uploaded files ", "1 recorded questions "):
        assert count in " ".join(result.output.split())
    assert cli("backup", "drill", "--into", empty_database).exit_code == 4


@pytest.mark.long
def test_restore_of_secrets_without_their_passphrase(cli: Cli, home: Path) -> None:
    """All else comes back, and the command names the setting that would bring them back, too."""
    passphrase = {"PLATFORM_BACKUP_PASSPHRASE": "a horse, a battery and a staple"}
    assert cli("secret", "set", "deploy", input="s3cret").exit_code == 0
    assert cli("backup", "create", env=passphrase).exit_code == 0
    name = newest(cli)
    assert cli("secret", "remove", "deploy").exit_code == 0
    result = cli("backup", "restore", name, "--yes")
    said = " ".join(result.output.split())
    assert (result.exit_code, "PLATFORM_BACKUP_PASSPHRASE" in said) == (0, True), said
    assert not (home / "secrets" / "deploy").exists()
    assert cli("backup", "restore", name, "--yes", env=passphrase).exit_code == 0
    assert (home / "secrets" / "deploy").read_text() == "s3cret"


def test_restore_of_what_is_not_there(cli: Cli, home: Path) -> None:
    """It is refused before the command asks anything."""
    for options in ((), ("--yes",)):
        result = cli("backup", "restore", "nope", *options)
        assert (result.exit_code, "Replace" in result.output) == (3, False), result.output
        assert "'nope'" in result.output and "platformctl backup list" in result.output
    assert usernames(home) == {"ann"}


def test_restore_of_a_path(cli: Cli, home: Path, tmp_path: Path) -> None:
    """A backup in another folder is not restored from there; the remedy says what to copy, and where."""
    elsewhere = tmp_path / "platform-20260131-030000.tar.gz"
    elsewhere.touch()
    result = cli("backup", "restore", str(elsewhere), "--yes")
    assert (result.exit_code, "'objects'" in result.output) == (3, True), result.output
    assert "PLATFORM_BACKUP_TO" in result.output


def test_restore_without_the_pieces(cli: Cli, home: Path) -> None:
    """A copied archive without its pieces names the missing folder, and changes nothing."""
    name = newest(cli)
    (home / "backups" / "objects").rename(home / "backups" / "forgotten")
    result = cli("backup", "restore", name, "--yes")
    assert (result.exit_code, "'objects'" in result.output) == (1, True), result.output
    assert usernames(home) == {"ann"}


def test_upgrade_check(bare_cli: Cli, platform_home: Path) -> None:
    """It lists what is pending, and changes nothing; no backup can be made of a database without tables."""
    result = bare_cli("upgrade", "--check", "--json")
    assert result.exit_code == 1
    assert "kernel" in {item["owner"] for item in json.loads(result.stdout)["pending"]}
    result = bare_cli("upgrade", "--check")
    assert result.exit_code == 1
    assert "0100" not in result.output and "backup" not in result.output
    assert bare_cli("backup", "create").exit_code == 1


@pytest.fixture
def outdated(home: Path) -> Path:
    """A home whose database lacks the migrations of rag."""
    with closing(sqlite3.connect(home / "platform.db")) as connection:
        connection.execute("DELETE FROM rag_alembic_version")
        connection.commit()
    return home


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({}, "A backup is made before they are applied."),
        ({"PLATFORM_BACKUP_BEFORE_UPGRADE": "false"}, "No backup is made first: PLATFORM_BACKUP_BEFORE"),
        ({"PLATFORM_BACKUP_SCHEDULE": "nightly"}, "out of service, so nothing was changed"),
    ],
)
def test_what_an_upgrade_does_first(cli: Cli, outdated: Path, env: dict[str, str], said: str) -> None:
    """Whether a backup comes first depends on the settings; a plugin that could not make it prevents both."""
    result = cli("upgrade", "--check", env=env)
    assert (result.exit_code, said in " ".join(result.output.split())) == (1, True), result.output


@pytest.mark.parametrize("command", ["list", "create"])
def test_a_storage_that_is_away(cli: Cli, home: Path, command: str) -> None:
    """The address is named, and the settings with which it is signed in to; nothing of a key."""
    env = {
        "PLATFORM_BACKUP_TO": "s3://backups/platform",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ACCESS_KEY_ID": "the-key",
        "AWS_SECRET_ACCESS_KEY": "the-secret",
    }
    result = cli("backup", command, env=env)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: s3://backups/platform: Could not connect")
    assert "PLATFORM_BACKUP_TO" in result.stderr and "AWS_ENDPOINT_URL" in result.stderr
    assert "the-secret" not in result.stderr


def test_a_storage_that_moved(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address in force is asked, and not the one that an earlier command of this process had asked."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    env = {
        "PLATFORM_BACKUP_TO": "s3://backups/platform",
        "AWS_ENDPOINT_URL": "http://{}:{}".format(*server.get_host_and_port()),
        "AWS_ACCESS_KEY_ID": "the-key",
        "AWS_SECRET_ACCESS_KEY": "the-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
    }
    try:
        for key, value in env.items():
            monkeypatch.setenv(key, value)
        boto3.client("s3").create_bucket(Bucket="backups")
        assert cli("backup", "list", env=env).exit_code == 0
        assert cli("backup", "list", env=env | {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}).exit_code == 1
    finally:
        server.stop()


@pytest.mark.parametrize("words", ["create", "restore x"])
def test_a_plugin_out_of_service(cli: Cli, home: Path, words: str) -> None:
    """The commands name the setting that keeps the plugin of backups out of service."""
    result = cli("backup", *words.split(), env={"PLATFORM_BACKUP_SCHEDULE": "nightly"})
    said = " ".join(result.output.split())
    assert (result.exit_code, "PLATFORM_BACKUP_SCHEDULE" in said) == (1, True), said
    assert "platformctl plugins why platform_ops" in said


def test_an_upgrade_without_the_plugin_warns_that_no_backup_is_made(cli: Cli, outdated: Path) -> None:
    turned_off = f"{os.environ['PLATFORM_PLUGINS_DISABLED']},platform_ops"
    result = cli("upgrade", "--check", env={"PLATFORM_PLUGINS_DISABLED": turned_off})
    assert "No backup is made first" in " ".join(result.output.split())


def test_a_platform_that_lacks_a_package(cli: Cli, outdated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the plugin can't be imported, each command says so, and none changes anything or crashes."""
    for module in ("plugin", "backup.errors", "backup.service"):
        monkeypatch.setitem(sys.modules, f"builtin_plugins.platform_ops.{module}", None)
    commands = ("upgrade", "upgrade --check", "backup create", "backup list", "backup restore x", "doctor")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", RuntimeWarning)
        for words in (*commands, "status"):
            result = cli(*words.split())
            assert (result.exit_code, "PLATFORM_DEBUG" in result.output) == (1, False), (words, result.output)
            assert "builtin_plugins.platform_ops" in result.output.replace("\n", ""), words
        gc.collect()
    assert [str(one.message) for one in warned if "never awaited" in str(one.message)] == []
