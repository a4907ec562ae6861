"""The trace that a job belongs to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("kernel_job", schema=None) as batch_op:
        batch_op.add_column(sa.Column("trace", sa.String(length=64), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("kernel_job", schema=None) as batch_op:
        batch_op.drop_column("trace")
