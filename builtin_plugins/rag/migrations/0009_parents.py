"""Record which document a document was extracted from; it is unknown for existing ones."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rag_document", sa.Column("parent_id", sa.String(36), nullable=True))
    op.create_index(
        "ix_rag_document_parent_id",
        "rag_document",
        ["parent_id"],
        sqlite_where=sa.text("parent_id IS NOT NULL"),
        postgresql_where=sa.text("parent_id IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_rag_document_parent_id", "rag_document")
    op.drop_column("rag_document", "parent_id")
