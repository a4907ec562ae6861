"""Add the last deliveries of each plugin."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLE = "manifest_webhooks_delivery"


def upgrade() -> None:
    big_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        TABLE,
        sa.Column("id", big_id, nullable=False),
        sa.Column("plugin", sa.String(length=64), nullable=False),
        sa.Column("proven", sa.Boolean(), nullable=False),
        sa.Column("received_at", UtcDateTime(), nullable=False),
        sa.Column("event_id", sa.String(length=256), nullable=True),
        sa.Column("event", sa.String(length=80), nullable=True),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=300), nullable=True),
        sa.Column("point_id", sa.String(length=36), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_manifest_webhooks_delivery")),
    )
    op.create_index(op.f("ix_manifest_webhooks_delivery_received_at"), TABLE, ["received_at"])
    op.create_index("ix_manifest_webhooks_delivery_plugin_proven_id", TABLE, ["plugin", "proven", "id"])


def downgrade() -> None:
    op.drop_table(TABLE)
