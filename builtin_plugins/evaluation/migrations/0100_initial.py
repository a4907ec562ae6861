"""The tables of 0.1.0."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, json_type

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


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
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("set_id", sa.String(length=36), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("documents", json_type(), nullable=False),
        sa.Column("passages", json_type(), nullable=False),
        sa.Column("answers", json_type(), nullable=False),
        sa.Column("unanswerable", sa.Boolean(), nullable=False),
        sa.Column("origin", sa.String(length=16), nullable=False),
        sa.Column("document_id", sa.String(length=36), nullable=True),
        sa.ForeignKeyConstraint(
            ["set_id"], ["evaluation_set.id"], name=op.f("fk_evaluation_question_set_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation_question")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_evaluation_question_document_id"), "evaluation_question", ["document_id"])
    op.create_index(op.f("ix_evaluation_question_set_id"), "evaluation_question", ["set_id"])
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
        sa.ForeignKeyConstraint(
            ["set_id"], ["evaluation_set.id"], name=op.f("fk_evaluation_run_set_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation_run")),
    )
    op.create_index(op.f("ix_evaluation_run_knowledge_base_id"), "evaluation_run", ["knowledge_base_id"])
    op.create_index(op.f("ix_evaluation_run_set_id"), "evaluation_run", ["set_id"])
    op.create_table(
        "evaluation_result",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("configuration", sa.Integer(), nullable=False),
        sa.Column("question_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("quality", sa.Float(), nullable=False),
        sa.Column("ndcg_10", sa.Float(), nullable=True),
        sa.Column("recall_5", sa.Float(), nullable=True),
        sa.Column("mrr", sa.Float(), nullable=True),
        sa.Column("contains", sa.Float(), nullable=True),
        sa.Column("refused_right", sa.Float(), nullable=True),
        sa.Column("refused_wrong", sa.Float(), nullable=True),
        sa.Column("citations_supported", sa.Float(), nullable=True),
        sa.Column("failed", sa.Float(), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("latency_ms", sa.Float(), nullable=False),
        sa.Column("tokens", sa.Float(), nullable=False),
        sa.Column("model_calls", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["question_id"],
            ["evaluation_question.id"],
            name=op.f("fk_evaluation_result_question_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["evaluation_run.id"], name=op.f("fk_evaluation_result_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "configuration", "question_id", name=op.f("pk_evaluation_result")),
    )
    op.create_index(op.f("ix_evaluation_result_question_id"), "evaluation_result", ["question_id"])
