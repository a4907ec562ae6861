"""What commands show on a real terminal of 80 columns."""

from __future__ import annotations

import re
import shutil
import socket
from pathlib import Path

import pytest
import yaml

from kernel.plugins.loading import installed
from kernel.testing import migrated_home
from tests.fakes.processes import free_port
from tests.fakes.terminal import screen, shown_by

SAMPLES = Path(__file__).resolve().parents[2] / "manifests" / "samples"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of a platform in an empty home."""
    return {"PLATFORM_HOME": str(tmp_path / "home"), "PLATFORM_PORT": str(free_port())}


@pytest.fixture
def used(home: dict[str, str]) -> dict[str, str]:
    migrated_home(Path(home["PLATFORM_HOME"]))
    return home


def test_terminal_of_these_tests() -> None:
    """Carriage returns, erased lines and the edge of the screen are taken as a terminal takes them."""
    assert screen("busy\r\x1b[2Kdone\r\nabcdef", 4) == ["done", "abcd", "ef"]
    assert screen("one\r\ntwo\x1b[1A\r\x1b[2K1", 80) == ["1", "two"]


def test_doctor_and_its_spinner(used: dict[str, str]) -> None:
    """Each finding is on its own line: the spinner leaves nothing, long texts are indented."""
    with socket.create_server(("127.0.0.1", int(used["PLATFORM_PORT"]))):
        pass
    code, shown = shown_by("doctor", env=used)
    assert code == 0, shown
    assert "Checking" not in shown
    findings = [line for line in shown.splitlines() if line and not line.startswith(" ")]
    assert [line for line in findings[:-1] if not re.match(r"[✓!✗] [a-z ]{12} \S", line)] == []
    assert "encryption" in shown and "\n  " in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_settings_keep_names_in_one_piece(home: dict[str, str]) -> None:
    """The names of variables are never split; a word chooses among the settings."""
    code, shown = shown_by("settings", "manifest_webhooks", env=home)
    assert code == 0
    assert "PLATFORM_WEBHOOK_RATE_PER_MINUTE" in shown
    assert "OLLAMA" not in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("columns", [40, 80])
def test_tables_keep_words_whole(used: dict[str, str], columns: int) -> None:
    """Names are in one piece: where a table would cut them, each row is a paragraph of names and values."""
    code, shown = shown_by("jobs", "schedules", env=used, columns=columns)
    assert code == 0
    assert {"kernel.housekeeping", "manifest_webhooks.forget_old"} <= set(shown.split())
    assert max(map(len, shown.splitlines())) <= columns


def test_tables_lose_no_word(used: dict[str, str], tmp_path: Path) -> None:
    """Headings and texts are whole at 80 columns: nothing runs off the right edge."""
    _, shown = shown_by("jobs", "schedules", env=used)
    assert {"JOB", "SCHEDULE", "ENDED"} <= set(shown.split())
    shutil.copy(SAMPLES / "github-issues.yaml", tmp_path)
    about = yaml.safe_load((tmp_path / "github-issues.yaml").read_text())["metadata"]["description"]
    secret = {"PLATFORM_SECRET_GITHUB_ISSUES": "x" * 32, "PLATFORM_MANIFESTS_DIR": str(tmp_path)}
    _, shown = shown_by("manifests", "list", env={**used, **secret})
    assert set(about.split()) <= set(shown.split()), shown


def test_plugins_on_a_small_screen(home: dict[str, str]) -> None:
    """The package that all come from takes no column, so that a plugin has two or three lines."""
    _, shown = shown_by("plugins", "list", env=home)
    assert "(multilingual-e5-small," in shown.split() and "PACKAGE" not in shown
    assert len(shown.splitlines()) < 3 * len(installed())


def test_paragraphs_before_words_are_cut(home: dict[str, str]) -> None:
    """A word that a column has no room for, and a paragraph has, is not cut in pieces."""
    _, shown = shown_by("plugins", "list", env=home, columns=60)
    assert "(multilingual-e5-small," in shown.split()
    assert max(map(len, shown.splitlines())) <= 60


def test_long_errors_are_indented(used: dict[str, str]) -> None:
    """The lines of a long error and of its remedy stay to the right of the mark."""
    _, shown = shown_by("plugins", "why", "nosuch", env=used)
    lines = shown.splitlines()
    assert lines[0].startswith("error: ") and len(lines) > 2
    assert [line for line in lines[1:] if line and not line.startswith("       ")] == []


def test_hooks_break_between_arguments(home: dict[str, str]) -> None:
    """A signature that is too long has each argument on its own line."""
    code, shown = shown_by("hooks", "find_memberships", env=home)
    assert code == 0
    assert "find_memberships(\n    platform: Platform,\n    account_ids: Sequence[int]\n)" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_settings_wide(home: dict[str, str]) -> None:
    _, shown = shown_by("settings", "--wide", "JWT_EXPIRATION", env=home, columns=400)
    lines = [line for line in shown.splitlines() if "JWT_EXPIRATION_MINUTES" in line]
    assert len(lines) == 1
    assert re.search(r"kernel +JWT_EXPIRATION_MINUTES +15 +\S", lines[0])


def test_taken_name_before_the_password(used: dict[str, str]) -> None:
    """`users create` says that a name exists before it asks for a password."""
    password = "correct horse battery"
    replies = [("Password: ", password), ("Repeat for confirmation: ", password)]
    code, shown = shown_by("users", "create", "ada", env=used, replies=replies)
    assert code == 0, shown
    code, shown = shown_by("users", "create", "ADA", env=used, replies=replies)
    assert code == 4
    assert "already exists" in shown
    assert "Password" not in shown


def test_state_of_every_account(used: dict[str, str]) -> None:
    """`users list` shows a state for each account, the active ones included."""
    shown_by("users", "create", "ada", "--generate", env=used)
    _, shown = shown_by("users", "list", env=used)
    assert re.search(r"ada .* active$", shown, re.MULTILINE)
