"""Create the first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, json_type

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "plugin_registry_config",
        sa.Column("plugin", sa.String(length=255), nullable=False),
        sa.Column("field", sa.String(length=255), nullable=False),
        sa.Column("value", json_type(), nullable=True),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("plugin", "field", name=op.f("pk_plugin_registry_config")),
    )
    op.create_table(
        "plugin_registry_switched_off",
        sa.Column("plugin", sa.String(length=255), nullable=False),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.Column("changed_by", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("plugin", name=op.f("pk_plugin_registry_switched_off")),
    )


def downgrade() -> None:
    op.drop_table("plugin_registry_switched_off")
    op.drop_table("plugin_registry_config")
