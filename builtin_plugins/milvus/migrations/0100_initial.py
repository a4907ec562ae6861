"""Marks of versions, and the identity of the database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "milvus_identity",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("identity", sa.String(length=16), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_milvus_identity")),
    )
    op.create_table(
        "milvus_mark",
        sa.Column("collection_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("mark", sa.String(length=16), nullable=False),
        sa.PrimaryKeyConstraint("collection_id", "version", name=op.f("pk_milvus_mark")),
    )
