"""The tables of 0.1.0."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, json_type

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "plugin_registry_collection",
        sa.Column("plugin", sa.String(length=255), nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.Column("result", json_type(), nullable=True),
        sa.Column("error", sa.String(length=2000), nullable=True),
        sa.PrimaryKeyConstraint("plugin", name=op.f("pk_plugin_registry_collection")),
    )
    op.create_table(
        "plugin_registry_config",
        sa.Column("plugin", sa.String(length=255), nullable=False),
        sa.Column("field", sa.String(length=255), nullable=False),
        sa.Column("value", json_type(), nullable=True),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("plugin", "field", name=op.f("pk_plugin_registry_config")),
    )
    op.create_table(
        "plugin_registry_health",
        sa.Column("plugin", sa.String(length=255), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("checked_at", UtcDateTime(), nullable=False),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("plugin", name=op.f("pk_plugin_registry_health")),
    )
    op.create_table(
        "plugin_registry_switch",
        sa.Column("plugin", sa.String(length=255), nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.Column("changed_by", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("plugin", name=op.f("pk_plugin_registry_switch")),
    )
