"""The further documents of questions that were made from several."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None

_TABLE = "evaluation_question_document"


def upgrade() -> None:
    op.create_table(
        _TABLE,
        sa.Column("question_id", sa.Integer(), nullable=False),
        sa.Column("document_id", sa.String(length=36), nullable=False),
        sa.ForeignKeyConstraint(
            ["question_id"],
            ["evaluation_question.id"],
            name=op.f(f"fk_{_TABLE}_question_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("question_id", "document_id", name=op.f(f"pk_{_TABLE}")),
    )
    op.create_index(op.f(f"ix_{_TABLE}_document_id"), _TABLE, ["document_id"])
