"""What knowledge bases took up on each day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0119"
down_revision = "0118"
branch_labels = None
depends_on = None

_TABLE = "rag_storage_day"


def upgrade() -> None:
    op.create_table(
        _TABLE,
        sa.Column("knowledge_base_id", sa.String(36), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("knowledge_base_id", "day", name=op.f(f"pk_{_TABLE}")),
    )
