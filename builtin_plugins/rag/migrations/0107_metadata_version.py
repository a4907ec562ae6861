"""A number for each knowledge base that counts the changes of its documents' fields."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0107"
down_revision = "0106"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rag_metadata_version",
        sa.Column("knowledge_base_id", sa.String(36), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("knowledge_base_id", name=op.f("pk_rag_metadata_version")),
    )
