"""The command line, run in this process with a home of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from tests.cli.environments import Environment, make_environment
from tests.fakes.command_line import run_command

Cli = Callable[..., Result]

_FOREIGN = ("PLATFORM_", "DATABASE_URL", "REDIS_URL", "JWT_", "OLLAMA_", "OPENAI_")


@pytest.fixture
def cli(platform_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`cli("users", "list", input=..., env={...})` runs a command."""
    for name in [name for name in os.environ if name.startswith(_FOREIGN)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLATFORM_HOME", str(platform_home))
    monkeypatch.setenv("PLATFORM_PASSWORD_MEMORY_MB", "12")  # as kernel.testing sets it
    return run_command


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment of the tests that install packages."""
    return make_environment(tmp_path_factory.mktemp("environment") / "env")


@pytest.fixture
def environment(made: Path, tmp_path: Path) -> Iterator[Environment]:
    """The environment, empty again after the test."""
    found = Environment(made, tmp_path / "home")
    yield found
    names = sorted(found.installed())
    if names:
        subprocess.run([made / "bin" / "python", "-m", "pip", "uninstall", "-qy", *names], check=True)
