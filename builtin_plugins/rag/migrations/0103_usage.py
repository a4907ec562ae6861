"""An index from which the bytes that an account stores are summed with each upload."""

from __future__ import annotations

from alembic import op

revision = "0103"
down_revision = "0102"
branch_labels = None
depends_on = None


def upgrade() -> None:
    columns = ["knowledge_base_id", "size_bytes"]
    op.create_index("ix_rag_document_knowledge_base_id_size_bytes", "rag_document", columns)
