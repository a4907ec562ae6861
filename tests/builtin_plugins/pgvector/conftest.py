"""The database that the units of a test are of."""

from __future__ import annotations

import pytest

from kernel.db.engine import Database


@pytest.fixture
def database(databases: tuple[Database, Database]) -> Database:
    """One of the two that are opened on it."""
    return databases[0]
