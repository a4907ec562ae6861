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
    for column in ("status", "requested_at"):
        op.create_index(op.f(f"ix_platform_ops_backup_job_{column}"), "platform_ops_backup_job", [column])


def downgrade() -> None:
    op.drop_table("platform_ops_backup_job")
