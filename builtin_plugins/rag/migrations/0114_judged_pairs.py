"""What a model says of two sentences, and how many pairs it judged for a report of contradictions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0114"
down_revision = "0113"
branch_labels = None
depends_on = None

_TABLE = "rag_judged_pair"
_KEY = ("document_id", "char_start", "other_id", "other_start", "model")


def upgrade() -> None:
    op.create_table(
        _TABLE,
        sa.Column("document_id", sa.String(36), nullable=False),
        sa.Column("char_start", sa.Integer(), nullable=False),
        sa.Column("other_id", sa.String(36), nullable=False),
        sa.Column("other_start", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(255), nullable=False),
        sa.Column("contradicts", sa.Boolean(), nullable=False),
        *(_reference(column) for column in ("document_id", "other_id")),
        sa.PrimaryKeyConstraint(*_KEY, name=op.f(f"pk_{_TABLE}")),
    )
    op.create_index(f"ix_{_TABLE}_other_id", _TABLE, ["other_id"])
    op.add_column(
        "rag_contradicting_pair",
        sa.Column("by_model", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    op.add_column(
        "rag_contradiction_report",
        sa.Column("judged_pairs", sa.Integer(), server_default="0", nullable=False),
    )


def _reference(column: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{_TABLE}_{column}")
    return sa.ForeignKeyConstraint([column], ["rag_document.id"], name=name, ondelete="CASCADE")
