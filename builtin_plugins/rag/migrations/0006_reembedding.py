"""Let knowledge bases change their embedding model."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "rag_knowledge_base", sa.Column("revision", sa.Integer(), nullable=False, server_default="0")
    )
    op.add_column("rag_knowledge_base", sa.Column("reembedding", sa.String(36), nullable=True))


def downgrade() -> None:
    op.drop_column("rag_knowledge_base", "reembedding")
    op.drop_column("rag_knowledge_base", "revision")
