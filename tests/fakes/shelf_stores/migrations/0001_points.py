"""Collections and their points."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import json_type

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "shelf_collection",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("engine", sa.String(length=255), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_shelf_collection")),
    )
    op.create_table(
        "shelf_point",
        sa.Column("collection", sa.String(length=255), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("group_key", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("payload", json_type(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column("published", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("collection", "id", name=op.f("pk_shelf_point")),
    )


def downgrade() -> None:
    op.drop_table("shelf_point")
    op.drop_table("shelf_collection")
