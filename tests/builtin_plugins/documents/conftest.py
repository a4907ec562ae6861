"""Parsers run within the tests' own process here, though they limit its processor time."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """Collecting the tests' heap takes seconds, which would count as a page's and end the process."""
    gc.disable()
    yield
    gc.enable()
