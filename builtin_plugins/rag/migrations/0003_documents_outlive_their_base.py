"""Let a document's row outlive its knowledge base until a job removes it."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NAME = "fk_rag_document_knowledge_base_id"


def upgrade() -> None:
    with op.batch_alter_table("rag_document") as batch:
        batch.drop_constraint(NAME, type_="foreignkey")


def downgrade() -> None:
    op.execute("DELETE FROM rag_document WHERE knowledge_base_id NOT IN (SELECT id FROM rag_knowledge_base)")
    with op.batch_alter_table("rag_document") as batch:
        batch.create_foreign_key(
            NAME, "rag_knowledge_base", ["knowledge_base_id"], ["id"], ondelete="CASCADE"
        )
