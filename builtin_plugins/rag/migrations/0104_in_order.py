"""Indexes in the order of the lists, so that a page far from the start sorts nothing."""

from __future__ import annotations

from alembic import op

revision = "0104"
down_revision = "0103"
branch_labels = None
depends_on = None


def upgrade() -> None:
    visible_by = ["owner_id", "visibility", "team_id", "organization_id"]
    order = ["created_at", "id", *visible_by]
    op.create_index("ix_rag_knowledge_base_in_order", "rag_knowledge_base", order)
    op.drop_index("ix_rag_knowledge_base_created_at", "rag_knowledge_base")
    order = ["knowledge_base_id", "uploaded_at", "id"]
    op.create_index("ix_rag_document_in_order", "rag_document", order)
    op.drop_index("ix_rag_document_knowledge_base_id_uploaded_at", "rag_document")
