"""Models compared with the database, and the migrations that make up the difference: for plugin authors."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.db.migrate import Owner, alembic_config, include_name, known_revisions

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from kernel.db.engine import Database


async def drift(database: Database, owner: Owner) -> Sequence[str]:
    """Differences between the owner's models and the database (Alembic's comparison), one line each."""
    return await database.read(lambda session: _drift(session.connection(), owner))


def _drift(connection: Connection, owner: Owner) -> list[str]:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    options = {
        "include_name": include_name(owner, connection),
        "compare_type": True,
        "version_table": owner.version_table,
    }
    if not owner.tables.base.metadata.tables:  # Alembic would reflect every table of the database
        return []
    context = MigrationContext.configure(connection, opts=options)
    return [str(difference) for difference in compare_metadata(context, owner.tables.base.metadata)]


async def write_revision(database: Database, owner: Owner, message: str) -> Path:
    """Write the owner's next numbered migration, from the differences between its models and the database.

    Alembic creates the owner's version table if it doesn't exist.
    """
    async with database.schema_change() as connection:
        return await connection.run_sync(_write_revision, owner, message)


def _write_revision(connection: Connection, owner: Owner, message: str) -> Path:
    from alembic import command

    number = f"{int(max(known_revisions(owner), default='0')) + 1:04d}"
    config = alembic_config(owner, connection)
    config.cmd_opts = Namespace(quiet=True)  # keeps Alembic's messages out of the command's output
    config.set_main_option("file_template", "%%(rev)s_%%(slug)s")
    folder = str(owner.tables.migrations)
    script = command.revision(config, message, autogenerate=True, rev_id=number, version_path=folder)
    assert script is not None and not isinstance(script, list)
    return Path(script.path)
