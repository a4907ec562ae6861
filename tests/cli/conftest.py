"""The command line, run in this process with its own home."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from kernel.testing import migrated_home
from tests.cli.environments import Environment, make_environment
from tests.fakes.command_line import run_command

Cli = Callable[..., Result]

_FOREIGN = ("PLATFORM_", "DATABASE_URL", "REDIS_URL", "JWT_", "OLLAMA_", "OPENAI_")


@pytest.fixture
def bare_cli(platform_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`bare_cli("users", "list", input=..., env={...})` runs a command; the first one finds no home."""
    for name in [name for name in os.environ if name.startswith(_FOREIGN)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLATFORM_HOME", str(platform_home))
    monkeypatch.setenv("PLATFORM_PASSWORD_MEMORY_MB", "12")  # as kernel.testing sets it
    return run_command


@pytest.fixture
def cli(bare_cli: Cli, platform_home: Path) -> Cli:
    """The same in a home that has its tables, as commands find it after the first start."""
    migrated_home(platform_home)
    return bare_cli


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_environment(tmp_path_factory.mktemp("environment") / "env")


@pytest.fixture
def environment(made: Path, tmp_path: Path) -> Iterator[Environment]:
    found = Environment(made, tmp_path / "home")
    before = set(found.site.iterdir())
    yield found
    for path in set(found.site.iterdir()) - before:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
