"""What a service made without an owner was open to everybody, whatever its visibility said."""

from __future__ import annotations

from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("rag_knowledge_base", "rag_pipeline"):
        op.execute(
            f"UPDATE {table} SET visibility = 'shared', team_id = NULL, organization_id = NULL"
            " WHERE owner_id IS NULL"
        )
