"""When a job that was tried before may run again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.db.base import UtcDateTime

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("kernel_job", sa.Column("not_before", UtcDateTime(), nullable=True))
    op.create_index(
        "ix_kernel_job_not_before",
        "kernel_job",
        ["not_before"],
        sqlite_where=sa.text("not_before IS NOT NULL"),
        postgresql_where=sa.text("not_before IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_kernel_job_not_before", "kernel_job")
    op.drop_column("kernel_job", "not_before")
