"""Remember documents that are deleted while an archive or import that contains them is under way."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rag_deletion",
        sa.Column("knowledge_base_id", sa.String(36), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("asked_until", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("knowledge_base_id", "sha256", name="pk_rag_deletion"),
    )
    op.add_column(
        "rag_knowledge_base", sa.Column("importing", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.create_index(
        "ix_rag_document_processing",
        "rag_document",
        ["knowledge_base_id", "uploaded_at"],
        sqlite_where=sa.text("status = 'processing'"),
        postgresql_where=sa.text("status = 'processing'"),
    )


def downgrade() -> None:
    op.drop_index("ix_rag_document_processing", "rag_document")
    op.drop_column("rag_knowledge_base", "importing")
    op.drop_table("rag_deletion")
