"""The one Alembic environment: owner, metadata and connection come through `config.attributes`."""

from __future__ import annotations

from alembic import context

attributes = context.config.attributes

context.configure(
    connection=attributes["connection"],
    target_metadata=attributes["target_metadata"],
    version_table=attributes["version_table"],
    include_name=attributes["include_name"],
    render_as_batch=True,
    compare_type=True,
    transaction_per_migration=False,
)
context.run_migrations()
