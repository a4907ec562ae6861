"""What a knowledge base says about the dates of its documents."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0109"
down_revision = "0108"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rag_knowledge_base", sa.Column("date_field", sa.String(64), nullable=True))
    op.add_column(
        "rag_knowledge_base",
        sa.Column("accept_dates", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
