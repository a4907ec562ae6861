"""The one Alembic environment: owner, metadata and connection come through `config.attributes`."""

from __future__ import annotations

from typing import Any

from alembic import context

attributes = context.config.attributes


def _ours(name: str | None, kind: str, _parents: Any) -> bool:
    mine = bool(name and name.startswith(attributes["prefix"]) and name not in attributes["derived"])
    return kind != "table" or mine


context.configure(
    connection=attributes["connection"],
    target_metadata=attributes["target_metadata"],
    version_table=attributes["version_table"],
    include_name=_ours,
    render_as_batch=True,
    compare_type=True,
    transaction_per_migration=False,
)
context.run_migrations()
