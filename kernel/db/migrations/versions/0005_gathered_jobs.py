"""Jobs that are taken up in turns, many at a time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("kernel_job", schema=None) as batch_op:
        batch_op.add_column(sa.Column("gathered", sa.String(length=192), nullable=True))
        batch_op.add_column(sa.Column("share", sa.String(length=64), nullable=True))
        batch_op.add_column(sa.Column("weight", sa.Integer(), nullable=False, server_default="1"))
        batch_op.create_index("ix_kernel_job_gathered_status", ["gathered", "status"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("kernel_job", schema=None) as batch_op:
        batch_op.drop_index("ix_kernel_job_gathered_status")
        for name in ("gathered", "share", "weight"):
            batch_op.drop_column(name)
