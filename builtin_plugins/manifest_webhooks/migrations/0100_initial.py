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
        "manifest_webhooks_claim",
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("value", sa.String(length=100), nullable=False),
        sa.Column("file", sa.String(length=1020), nullable=False),
        sa.PrimaryKeyConstraint("kind", "value", name=op.f("pk_manifest_webhooks_claim")),
    )
    op.create_table(
        "manifest_webhooks_delivery",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
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
    op.create_index(
        "ix_manifest_webhooks_delivery_plugin_proven_id",
        "manifest_webhooks_delivery",
        ["plugin", "proven", "id"],
    )
    op.create_index(
        op.f("ix_manifest_webhooks_delivery_received_at"), "manifest_webhooks_delivery", ["received_at"]
    )
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
    op.create_index(op.f("ix_manifest_webhooks_event_created_at"), "manifest_webhooks_event", ["created_at"])
    op.create_table(
        "manifest_webhooks_plugin",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("collections", json_type(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_manifest_webhooks_plugin")),
    )
