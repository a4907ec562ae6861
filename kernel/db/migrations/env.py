"""The one Alembic environment: owner, metadata and connection come through `config.attributes`."""

from __future__ import annotations

from typing import Any, Literal

from alembic import context
from sqlalchemy import JSON

from kernel.sdk import UtcDateTime

attributes = context.config.attributes


def render_item(kind: str, item: Any, autogen_context: Any) -> str | Literal[False]:
    """Render the platform's own types as an author writes them; False leaves other types to Alembic."""
    own = {UtcDateTime: "UtcDateTime", JSON: "json_type"}.get(type(item)) if kind == "type" else None
    if own is None:
        return False
    autogen_context.imports.add(f"from kernel.sdk import {own}")
    return f"{own}()"


context.configure(
    connection=attributes["connection"],
    target_metadata=attributes["target_metadata"],
    version_table=attributes["version_table"],
    include_name=attributes["include_name"],
    render_as_batch=True,
    render_item=render_item,
    compare_type=True,
    transaction_per_migration=False,
)
context.run_migrations()
