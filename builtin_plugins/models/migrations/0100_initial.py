"""Create the first tables."""

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
        "models_rule",
        sa.Column("model", sa.String(length=255), nullable=False),
        sa.Column("rate_limit", sa.Integer(), nullable=True),
        sa.Column("max_tokens", sa.Integer(), nullable=True),
        sa.Column("allowed_users", json_type(), nullable=True),
        sa.Column("allowed_roles", json_type(), nullable=True),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("model", name=op.f("pk_models_rule")),
    )
    op.create_table(
        "models_use",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("model", sa.String(length=255), nullable=False),
        sa.Column("part", sa.String(length=128), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("errors", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("tokens_unknown", sa.BigInteger(), nullable=False),
        sa.Column("total_ms", sa.BigInteger(), nullable=False),
        sa.Column("longest_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("day", "model", "part", name=op.f("pk_models_use")),
    )
    op.create_table(
        "models_pull",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("model", sa.String(length=255), nullable=False),
        sa.Column("runtime", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("requested_by", sa.Integer(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models_pull")),
    )
    op.create_index(op.f("ix_models_pull_model"), "models_pull", ["model"])
    op.create_index(op.f("ix_models_pull_status"), "models_pull", ["status"])
