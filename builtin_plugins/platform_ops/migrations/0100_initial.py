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
        "platform_ops_backup_job",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("archive", sa.String(length=64), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("phase", sa.String(length=16), nullable=False),
        sa.Column("requested_by", sa.String(length=255), nullable=False),
        sa.Column("requested_at", UtcDateTime(), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=True),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("folders", json_type(), nullable=True),
        sa.Column("output", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_platform_ops_backup_job")),
    )
    op.create_index(
        op.f("ix_platform_ops_backup_job_requested_at"), "platform_ops_backup_job", ["requested_at"]
    )
    op.create_index(op.f("ix_platform_ops_backup_job_status"), "platform_ops_backup_job", ["status"])
    op.create_table(
        "platform_ops_bundle",
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("changed_by", sa.String(length=255), nullable=False),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_platform_ops_bundle")),
    )
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
