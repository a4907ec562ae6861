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
        "manifest_webhooks_event",
        sa.Column("plugin", sa.String(length=64), nullable=False),
        sa.Column("event_id", sa.String(length=256), nullable=False),
        sa.Column("collection", sa.String(length=64), nullable=False),
        sa.Column("point_id", sa.String(length=36), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("plugin", "event_id", name=op.f("pk_manifest_webhooks_event")),
    )
    with op.batch_alter_table("manifest_webhooks_event", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_manifest_webhooks_event_created_at"), ["created_at"], unique=False
        )

    op.create_table(
        "manifest_webhooks_plugin",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("collections", json_type(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_manifest_webhooks_plugin")),
    )


def downgrade() -> None:
    op.drop_table("manifest_webhooks_plugin")
    with op.batch_alter_table("manifest_webhooks_event", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_manifest_webhooks_event_created_at"))

    op.drop_table("manifest_webhooks_event")
