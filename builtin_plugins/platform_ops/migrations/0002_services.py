"""Add registered services."""

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
        "platform_ops_service",
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("type", sa.String(length=120), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("port", sa.Integer(), nullable=False),
        sa.Column("health_path", sa.String(length=500), nullable=False),
        sa.Column("details", json_type(), nullable=False),
        sa.Column("health", sa.String(length=16), nullable=False),
        sa.Column("checked_at", UtcDateTime(), nullable=True),
        sa.Column("registered_at", UtcDateTime(), nullable=False),
        sa.Column("registered_by", sa.String(length=255), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_platform_ops_service")),
    )


def downgrade() -> None:
    op.drop_table("platform_ops_service")
