"""Where the present pace of a job began: the time left is estimated from there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.db.base import UtcDateTime

revision = "0103"
down_revision = "0102"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("kernel_job", sa.Column("paced_from", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("kernel_job", sa.Column("paced_since", UtcDateTime(), nullable=True))
