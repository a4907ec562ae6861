"""The fixtures come from `kernel.testing`, which pytest loads through its entry point."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many examples the generating tests make; more of them find more, and take longer."""
    parser.addoption("--openapi-examples", type=int, default=8, help="Examples of each API operation.")
    parser.addoption("--identity-walks", type=int, default=8, help="Walks through the states of identity.")
