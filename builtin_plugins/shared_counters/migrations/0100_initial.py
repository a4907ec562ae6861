"""The counters, which the kernel had before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "shared_counters_window",
        sa.Column("key_hash", sa.String(length=32), nullable=False),
        sa.Column("window_end", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("key_hash", "window_end", name=op.f("pk_shared_counters_window")),
    )
    op.create_index(op.f("ix_shared_counters_window_window_end"), "shared_counters_window", ["window_end"])
