"""Store the health of plugins, and what they collected."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, json_type

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "plugin_registry_health",
        sa.Column("plugin", sa.String(length=255), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("checked_at", UtcDateTime(), nullable=False),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("plugin", name=op.f("pk_plugin_registry_health")),
    )
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


def downgrade() -> None:
    op.drop_table("plugin_registry_collection")
    op.drop_table("plugin_registry_health")
