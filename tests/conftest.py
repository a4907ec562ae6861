"""The fixtures come from `kernel.testing`, which pytest loads through its entry point."""

from __future__ import annotations

import pytest

# These files take a minute or more: several processes start with them, so that none ends alone with one.
LONG = (
    "tests/test_openapi_fuzz.py",
    "tests/durability",
    "tests/cli/test_setup.py",
    "tests/cli/test_cli_plugins.py",
    "tests/cli/test_cli_serve.py",
    "tests/cli/test_readme.py",
    "tests/kernel/jobs/test_worker_process.py",
    "tests/kernel/test_strangers.py",
    "tests/builtin_plugins/embeddings",
    "tests/builtin_plugins/manifest_webhooks/test_webhook_durability.py",
    "tests/builtin_plugins/tenancy/access/test_leak_matrix.py",
    "tests/builtin_plugins/tenancy/access/test_leak_fuzz.py",
    "tests/kernel/auth/test_identity_states.py",
    "tests/kernel/auth/test_revocation.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first; the order of the rest, and of the tests in a file, stays."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many examples the generating tests make; more of them find more, and take longer."""
    parser.addoption("--openapi-examples", type=int, default=5, help="Examples of each API operation.")
    parser.addoption("--identity-walks", type=int, default=8, help="Walks through the states of identity.")
    parser.addoption("--leak-steps", type=int, default=500, help="Steps of the leak fuzzer.")
    parser.addoption("--leak-seed", type=int, default=0, help="Seed of the leak fuzzer; 0 is a new one.")
