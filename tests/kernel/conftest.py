"""Packages by somebody else, installed beside the environment of the tests and not into it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FAKES = Path(__file__).parents[1] / "fakes"


def install(target: Path, *packages: Path) -> Path:
    """pip-install `packages` into their own folder; on PYTHONPATH, their entry points are found."""
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), *map(str, packages)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return target


@pytest.fixture(scope="session")
def sample_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample plugin installed in it."""
    return install(tmp_path_factory.mktemp("sample"), FAKES / "sample_plugin")


@pytest.fixture(scope="session")
def stranger_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample plugin and all that misbehave installed in it."""
    target = tmp_path_factory.mktemp("strangers")
    return install(target, FAKES / "sample_plugin", FAKES / "misbehaving_plugins")


@pytest.fixture(scope="session")
def lending_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package that brings a service installed in it."""
    return install(tmp_path_factory.mktemp("lending"), FAKES / "lending_service")
