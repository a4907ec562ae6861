"""The tables of 0.1.0."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "licensing_license",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=True),
        sa.Column("organization_id", sa.Integer(), nullable=True),
        sa.Column("plugin_id", sa.String(length=100), nullable=False),
        sa.Column("tier", sa.String(length=16), nullable=False),
        sa.Column("key_hash", sa.String(length=64), nullable=False),
        sa.Column("key_end", sa.String(length=4), nullable=False),
        sa.Column("valid_from", UtcDateTime(), nullable=False),
        sa.Column("valid_until", UtcDateTime(), nullable=False),
        sa.Column("trial_expires_at", UtcDateTime(), nullable=True),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("seats", sa.Integer(), nullable=True),
        sa.Column("activated_by", sa.String(length=255), nullable=True),
        sa.Column("usage_count", sa.Integer(), nullable=False),
        sa.Column("last_used_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_licensing_license")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_licensing_license_key_hash")),
        sa.UniqueConstraint(
            "organization_id", "plugin_id", name=op.f("uq_licensing_license_organization_id_plugin_id")
        ),
        sa.UniqueConstraint("user_id", "plugin_id", name=op.f("uq_licensing_license_user_id_plugin_id")),
    )
    op.create_index(op.f("ix_licensing_license_plugin_id"), "licensing_license", ["plugin_id"])
    op.create_table(
        "licensing_order",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("plugin_id", sa.String(length=100), nullable=False),
        sa.Column("tier", sa.String(length=16), nullable=False),
        sa.Column("provider", sa.String(length=50), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("replaced", sa.JSON(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_licensing_order")),
    )
    op.create_index("ix_licensing_order_state_created_at", "licensing_order", ["state", "created_at"])
    op.create_index(op.f("ix_licensing_order_subject"), "licensing_order", ["subject"])
    op.create_table(
        "licensing_plugin_tier",
        sa.Column("plugin", sa.String(length=100), nullable=False),
        sa.Column("tier", sa.String(length=16), nullable=False),
        sa.Column("key_hash", sa.String(length=64), nullable=True),
        sa.Column("key_end", sa.String(length=4), nullable=True),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("plugin", name=op.f("pk_licensing_plugin_tier")),
    )
    op.create_table(
        "licensing_notice",
        sa.Column("provider", sa.String(length=50), nullable=False),
        sa.Column("event_id", sa.String(length=255), nullable=False),
        sa.Column("order_id", sa.String(length=36), nullable=False),
        sa.Column("received_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["order_id"],
            ["licensing_order.id"],
            name=op.f("fk_licensing_notice_order_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("provider", "event_id", name=op.f("pk_licensing_notice")),
    )
    op.create_table(
        "licensing_seat",
        sa.Column("license_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("assigned_at", UtcDateTime(), nullable=False),
        sa.Column("assigned_by", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["license_id"],
            ["licensing_license.id"],
            name=op.f("fk_licensing_seat_license_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("license_id", "user_id", name=op.f("pk_licensing_seat")),
    )
    op.create_index(op.f("ix_licensing_seat_user_id"), "licensing_seat", ["user_id"])
