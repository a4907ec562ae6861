"""Documents that can be taken back after their deletion."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime

revision = "0111"
down_revision = "0110"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rag_trashed_document",
        sa.Column("document_id", sa.String(36), nullable=False),
        sa.Column("main_id", sa.String(36), nullable=False),
        sa.Column("knowledge_base_id", sa.String(36), nullable=False),
        sa.Column("audience_id", sa.String(36), nullable=True),
        sa.Column("trashed_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["rag_document.id"],
            name=op.f("fk_rag_trashed_document_document_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("document_id", name=op.f("pk_rag_trashed_document")),
    )
    op.create_index(
        "ix_rag_trashed_document_in_order", "rag_trashed_document", ["knowledge_base_id", "trashed_at"]
    )
    op.create_index(op.f("ix_rag_trashed_document_main_id"), "rag_trashed_document", ["main_id"])
    op.create_index(op.f("ix_rag_trashed_document_trashed_at"), "rag_trashed_document", ["trashed_at"])
