"""Let a knowledge base say whether a graph is built from its documents; none had one so far."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    column: sa.Column[bool] = sa.Column("graph", sa.Boolean(), nullable=False, server_default=sa.false())
    op.add_column("rag_knowledge_base", column)


def downgrade() -> None:
    op.drop_column("rag_knowledge_base", "graph")
