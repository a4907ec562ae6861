"""Questions, refusals and ratings per day and knowledge base."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0117"
down_revision = "0116"
branch_labels = None
depends_on = None

_TABLE = "rag_question_day"


def upgrade() -> None:
    op.create_table(
        _TABLE,
        sa.Column("knowledge_base_id", sa.String(36), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("questions", "refused", "up", "down")),
        sa.PrimaryKeyConstraint("knowledge_base_id", "day", name=op.f(f"pk_{_TABLE}")),
    )
