"""The fixtures come from `kernel.testing`, which pytest loads through its entry point."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many examples the generating tests make; more of them find more, and take longer."""
    parser.addoption("--openapi-examples", type=int, default=8, help="Examples of each API operation.")
    parser.addoption("--identity-walks", type=int, default=8, help="Walks through the states of identity.")
    parser.addoption("--leak-steps", type=int, default=500, help="Steps of the leak fuzzer.")
    parser.addoption("--leak-seed", type=int, default=0, help="Seed of the leak fuzzer; 0 is a new one.")
