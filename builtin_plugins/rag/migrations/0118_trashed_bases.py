"""Knowledge bases in the trash."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, json_type

revision = "0118"
down_revision = "0117"
branch_labels = None
depends_on = None

_TABLE = "rag_trashed_base"


def upgrade() -> None:
    op.create_table(
        _TABLE,
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("document_count", sa.Integer(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("trashed_at", UtcDateTime(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("fields", json_type(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{_TABLE}")),
    )
    op.create_index(f"ix_{_TABLE}_owner_id", _TABLE, ["owner_id"])
    op.create_index(f"ix_{_TABLE}_trashed_at", _TABLE, ["trashed_at"])
