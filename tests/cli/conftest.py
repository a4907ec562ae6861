"""The command line, run in this process with a home of its own."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from tests.cli.environments import Environment, make_environment

Cli = Callable[..., Result]

_FOREIGN = ("PLATFORM_", "DATABASE_URL", "REDIS_URL", "JWT_", "OLLAMA_", "OPENAI_")


@pytest.fixture
def cli(platform_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """`cli("users", "list", input=..., env={...})` runs a command; log handlers are put back afterwards."""
    for name in [name for name in os.environ if name.startswith(_FOREIGN)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLATFORM_HOME", str(platform_home))
    monkeypatch.setenv("PLATFORM_PASSWORD_MEMORY_MB", "12")  # as kernel.testing sets it
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def run(*arguments: str, input: str | None = None, env: dict[str, str] | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=input, env=env, prog_name="platformctl")

    yield run
    root.handlers[:] = handlers
    root.setLevel(level)


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
