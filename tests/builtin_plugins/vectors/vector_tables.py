"""The tables of vectors in a database that no platform has opened."""

from __future__ import annotations

from builtin_plugins.vectors.plugin import VectorsPlugin
from kernel.db import migrate
from kernel.db.engine import Database

OWNER = migrate.Owner("vectors", VectorsPlugin().register_tables())


async def make_tables(database: Database) -> None:
    """Make the tables that the database lacks."""
    await migrate.upgrade(database, OWNER, {})
