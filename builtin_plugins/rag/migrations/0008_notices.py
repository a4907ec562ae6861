"""Store notices of what could not be read in completed documents; index those without a language."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rag_document", sa.Column("notice", sa.Text(), nullable=True))
    op.create_index(
        "ix_rag_document_untold",
        "rag_document",
        ["knowledge_base_id"],
        sqlite_where=sa.text("language_told IS 0"),
        postgresql_where=sa.text("language_told IS false"),
    )


def downgrade() -> None:
    op.drop_index("ix_rag_document_untold", "rag_document")
    op.drop_column("rag_document", "notice")
