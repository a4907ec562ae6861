"""The report of contradictions: when it was made, and the places of sentences that contradict each other."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime

revision = "0110"
down_revision = "0109"
branch_labels = None
depends_on = None

_REPORT = "rag_contradiction_report"
_PAIR = "rag_contradicting_pair"


def upgrade() -> None:
    op.create_table(
        _REPORT,
        sa.Column("knowledge_base_id", sa.String(36), nullable=False),
        sa.Column("made_at", UtcDateTime(), nullable=False),
        sa.Column("is_complete", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("knowledge_base_id", name=op.f(f"pk_{_REPORT}")),
    )
    op.create_table(
        _PAIR,
        sa.Column("knowledge_base_id", sa.String(36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("document_id", sa.String(36), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("char_start", sa.Integer(), nullable=False),
        sa.Column("char_end", sa.Integer(), nullable=False),
        sa.Column("other_id", sa.String(36), nullable=False),
        sa.Column("other_position", sa.Integer(), nullable=False),
        sa.Column("other_start", sa.Integer(), nullable=False),
        sa.Column("other_end", sa.Integer(), nullable=False),
        *(_reference(column) for column in ("document_id", "other_id")),
        sa.PrimaryKeyConstraint("knowledge_base_id", "number", name=op.f(f"pk_{_PAIR}")),
    )
    for column in ("document_id", "other_id"):
        op.create_index(f"ix_{_PAIR}_{column}", _PAIR, [column])


def _reference(column: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{_PAIR}_{column}")
    return sa.ForeignKeyConstraint([column], ["rag_document.id"], name=name, ondelete="CASCADE")
