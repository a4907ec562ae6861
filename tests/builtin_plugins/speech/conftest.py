"""Programs that the tests of speech need."""

from __future__ import annotations

import shutil

import pytest

from kernel.testing import missing


@pytest.fixture(scope="session")
def espeak() -> None:
    """The program espeak-ng."""
    _program("espeak-ng")


@pytest.fixture(scope="session")
def ffmpeg() -> None:
    """The program ffmpeg."""
    _program("ffmpeg")


def _program(name: str) -> None:
    if shutil.which(name) is None:
        missing(f"the program {name} is not installed (Debian: apt install {name})")
