"""The fixtures come from `kernel.testing`, which pytest loads through its entry point."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many examples the OpenAPI fuzzer makes for each operation."""
    parser.addoption("--openapi-examples", type=int, default=8, help="Examples of each API operation.")
