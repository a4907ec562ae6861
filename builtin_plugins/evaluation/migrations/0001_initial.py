"""Create the first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, json_type

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_MEASURES = (
    "ndcg_10",
    "recall_5",
    "mrr",
    "contains",
    "refused_right",
    "refused_wrong",
    "citations_supported",
)
_COSTS = ("latency_ms", "tokens", "model_calls")


def upgrade() -> None:
    op.create_table(
        "evaluation_set",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("knowledge_base_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation_set")),
    )
    op.create_index(op.f("ix_evaluation_set_knowledge_base_id"), "evaluation_set", ["knowledge_base_id"])

    op.create_table(
        "evaluation_question",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("set_id", sa.String(length=36), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("documents", json_type(), nullable=False),
        sa.Column("passages", json_type(), nullable=False),
        sa.Column("answers", json_type(), nullable=False),
        sa.Column("unanswerable", sa.Boolean(), nullable=False),
        sa.Column("origin", sa.String(length=16), nullable=False),
        sa.Column("document_id", sa.String(length=36), nullable=True),
        _reference("evaluation_question", "set_id", "evaluation_set"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation_question")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_evaluation_question_set_id"), "evaluation_question", ["set_id"])
    op.create_index(op.f("ix_evaluation_question_document_id"), "evaluation_question", ["document_id"])

    op.create_table(
        "evaluation_run",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("set_id", sa.String(length=36), nullable=False),
        sa.Column("knowledge_base_id", sa.String(length=36), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=True),
        sa.Column("configurations", json_type(), nullable=False),
        sa.Column("last_question", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("choices", json_type(), nullable=True),
        sa.Column("job_id", sa.String(length=64), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        _reference("evaluation_run", "set_id", "evaluation_set"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation_run")),
    )
    op.create_index(op.f("ix_evaluation_run_set_id"), "evaluation_run", ["set_id"])
    op.create_index(op.f("ix_evaluation_run_knowledge_base_id"), "evaluation_run", ["knowledge_base_id"])

    op.create_table(
        "evaluation_result",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("configuration", sa.Integer(), nullable=False),
        sa.Column("question_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("quality", sa.Float(), nullable=False),
        *(sa.Column(name, sa.Float(), nullable=True) for name in _MEASURES),
        *(sa.Column(name, sa.Float(), nullable=False) for name in _COSTS),
        _reference("evaluation_result", "run_id", "evaluation_run"),
        _reference("evaluation_result", "question_id", "evaluation_question"),
        sa.PrimaryKeyConstraint("run_id", "configuration", "question_id", name=op.f("pk_evaluation_result")),
    )
    op.create_index(op.f("ix_evaluation_result_question_id"), "evaluation_result", ["question_id"])


def _reference(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"{target}.id"], name=op.f(f"fk_{table}_{column}"), ondelete="CASCADE"
    )


def downgrade() -> None:
    for table in ("result", "run", "question", "set"):
        op.drop_table(f"evaluation_{table}")
