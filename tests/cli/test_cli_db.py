"""`platformctl db`, on SQLite and PostgreSQL."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.packages import Package

WITH_TABLE = """
from pathlib import Path
from sqlalchemy import Integer
from sqlalchemy.orm import Mapped, mapped_column
from kernel.sdk import Plugin, Tables, UtcDateTime, hookimpl, json_type, plugin_base

Base = plugin_base("{name}")

class Note(Base):
    __tablename__ = "{name}_note"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    noted_at = mapped_column(UtcDateTime)
    labels = mapped_column(json_type())

class ThePlugin(Plugin):
    name = "{name}"
    version = "{version}"

    @hookimpl
    def register_tables(self):
        return Tables(Base, Path(__file__).parent / "migrations")
"""


@pytest.fixture
def database(empty_database_url: str | None) -> dict[str, str]:
    return {} if empty_database_url is None else {"DATABASE_URL": empty_database_url}


def test_from_empty_to_up_to_date(bare_cli: Cli, database: dict[str, str]) -> None:
    """Everything is pending in an empty database, nothing after an upgrade, and a second one does nothing."""
    before = json.loads(bare_cli("db", "pending", "--json", env=database).stdout)
    assert (before[0]["owner"], before[0]["revisions"][0]) == ("kernel", "0100")
    upgraded = bare_cli("db", "upgrade", env=database)
    assert upgraded.exit_code == 0, upgraded.output
    assert "kernel: 0100" in upgraded.stderr
    assert json.loads(bare_cli("db", "pending", "--json", env=database).stdout) == []
    again = bare_cli("db", "upgrade", env=database)
    assert (again.exit_code, "kernel: 0100" in again.stderr) == (0, False)


def test_check_agrees_after_an_upgrade(bare_cli: Cli, database: dict[str, str]) -> None:
    """Models and tables of every owner agree in a database that was just made."""
    bare_cli("db", "upgrade", env=database)
    result = bare_cli("db", "check", env=database)
    assert result.exit_code == 0, result.output
    assert "kernel" in result.stderr


def test_pending_changes_nothing(bare_cli: Cli, database: dict[str, str]) -> None:
    bare_cli("db", "pending", env=database)
    assert json.loads(bare_cli("db", "pending", "--json", env=database).stdout) != []


def test_check_fails_before_an_upgrade(bare_cli: Cli) -> None:
    result = bare_cli("db", "check")
    assert result.exit_code == 1
    assert "kernel: revision 0100 " in result.stderr
    assert "platformctl db upgrade" in result.stderr


def test_check_names_what_differs(cli: Cli, platform_home: Path) -> None:
    """A column that somebody dropped by hand is named with its owner."""
    with sqlite3.connect(platform_home / "platform.db") as connection:
        connection.execute("ALTER TABLE kernel_account DROP COLUMN must_change_password")
    connection.close()
    result = cli("db", "check", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert "must_change_password" in " ".join(found["kernel"])
    assert 'db revision -p kernel -m "…"' in result.stderr
    assert "db upgrade" not in result.stderr  # it would change nothing


def test_unreachable_database(cli: Cli) -> None:
    result = cli("db", "pending", env={"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"})
    assert (result.exit_code, "Traceback" in result.output) == (1, False)
    assert result.stderr.startswith("error: ")


def test_revision_of_a_plugin(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin author's first migration is written from the models, and an upgrade applies it."""
    packages = Package("acme-ledger", body=WITH_TABLE).unpack(tmp_path / "packages")
    (packages / "migrations").mkdir()
    monkeypatch.syspath_prepend(packages)
    result = cli("db", "revision", "-p", "acme_ledger", "-m", "First tables")
    assert result.exit_code == 0, result.output
    written = packages / "migrations" / "0001_first_tables.py"
    assert (result.stdout, result.stderr.split()) == ("", ["✓", str(written)])
    text = written.read_text()
    assert "acme_ledger_note" in text
    assert "sa.Column('noted_at', UtcDateTime()" in text
    assert "sa.Column('labels', json_type()" in text
    assert "acme_ledger: 0001" in cli("db", "upgrade").stderr
    assert cli("db", "check").exit_code == 0


def test_upgrade_with_a_migration_that_fails(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with the reason in one line, and does not call the database up to date."""
    packages = Package("acme-bad", body=WITH_TABLE).unpack(tmp_path / "packages")
    (packages / "migrations").mkdir()
    monkeypatch.syspath_prepend(packages)
    assert cli("db", "revision", "-p", "acme_bad", "-m", "First tables").exit_code == 0
    (written,) = (packages / "migrations").glob("0001*.py")
    script = written.read_text()
    written.write_text(script.replace("def upgrade() -> None:", "def upgrade() -> None:\n    1 / 0"))
    result = cli("db", "upgrade")
    assert result.exit_code == 1
    assert "acme_bad: " in result.stderr and "ZeroDivisionError" in result.stderr
    assert "up to date" not in result.stderr


def test_tables_of_a_newer_version(
    cli: Cli, platform_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier version of a plugin can't use them: the commands say so before a start does."""
    packages = Package("acme-old", body=WITH_TABLE).unpack(tmp_path / "packages")
    (packages / "migrations").mkdir()
    monkeypatch.syspath_prepend(packages)
    assert cli("db", "revision", "-p", "acme_old", "-m", "First tables").exit_code == 0
    assert cli("db", "upgrade").exit_code == 0
    with closing(sqlite3.connect(platform_home / "platform.db")) as connection:
        connection.execute("UPDATE acme_old_alembic_version SET version_num = '0002'")
        connection.commit()
    checked = cli("db", "check")
    assert (checked.exit_code, "acme_old: " in checked.stderr) == (1, True)
    assert "platformctl db revision" not in checked.stderr
    upgraded = cli("db", "upgrade")
    assert (upgraded.exit_code, "acme_old: " in upgraded.stderr) == (1, True)
    assert "up to date" not in upgraded.stderr
    examined = json.loads(cli("doctor", "--json").stdout)
    (found,) = [item for item in examined if item["check"] == "tables"]
    assert (found["status"], "acme_old: " in found["text"]) == ("failed", True)


def test_revision_without_a_difference(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that agree with the tables give no migration: exit code 4, and no file."""
    packages = Package("acme-twice", body=WITH_TABLE).unpack(tmp_path / "packages")
    (packages / "migrations").mkdir()
    monkeypatch.syspath_prepend(packages)
    assert cli("db", "revision", "-p", "acme_twice", "-m", "First tables").exit_code == 0
    assert cli("db", "revision", "-p", "acme_twice", "-m", "Nothing").exit_code == 4
    assert [path.name for path in (packages / "migrations").glob("*.py")] == ["0001_first_tables.py"]


def test_revision_of_an_installed_copy(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration is never written into installed packages, where the next upgrade would lose it."""
    packages = Package("acme-copied", body=WITH_TABLE).unpack(tmp_path / "site-packages")
    (packages / "migrations").mkdir()
    monkeypatch.syspath_prepend(packages)
    result = cli("db", "revision", "-p", "acme_copied", "-m", "First tables")
    assert (result.exit_code, "pip install -e" in result.stderr) == (4, True)
    assert list((packages / "migrations").iterdir()) == []


def test_revision_of_an_unknown_plugin(cli: Cli) -> None:
    assert cli("db", "revision", "-p", "nobody", "-m", "nothing").exit_code == 3
