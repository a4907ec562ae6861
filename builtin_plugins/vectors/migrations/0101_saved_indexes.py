"""Which search indexes were saved from this database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "vectors_saved_index",
        sa.Column("token", sa.String(length=32), nullable=False),
        sa.Column("collection_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["vectors_collection.id"],
            name=op.f("fk_vectors_saved_index_collection_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_vectors_saved_index")),
    )
    op.create_index(
        "ix_vectors_saved_index_collection_id_number", "vectors_saved_index", ["collection_id", "number"]
    )
