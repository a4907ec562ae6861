"""How much of a document is found while it is being read."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0115"
down_revision = "0114"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "rag_document", sa.Column("searchable_count", sa.Integer(), server_default="0", nullable=False)
    )
