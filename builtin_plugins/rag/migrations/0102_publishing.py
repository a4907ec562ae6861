"""Whether others than its owner may publish what a knowledge base says."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None


def upgrade() -> None:
    column = sa.Column("publishing", sa.String(length=16), server_default="owner", nullable=False)
    op.add_column("rag_knowledge_base", column)
