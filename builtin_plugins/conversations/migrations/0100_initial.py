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
        "conversations_thread",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("holder", sa.String(length=255), nullable=False),
        sa.Column("conversation_id", sa.String(length=255), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=True),
        sa.Column("shared_pipeline_id", sa.String(length=36), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("last_activity", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conversations_thread")),
        sa.UniqueConstraint(
            "holder", "conversation_id", name=op.f("uq_conversations_thread_holder_conversation_id")
        ),
        sa.UniqueConstraint(
            "shared_pipeline_id",
            "conversation_id",
            name=op.f("uq_conversations_thread_shared_pipeline_id_conversation_id"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_conversations_thread_last_activity"), "conversations_thread", ["last_activity"])
    op.create_table(
        "conversations_turn",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("thread_id", sa.Integer(), nullable=False),
        sa.Column("asked_by", sa.String(length=255), nullable=False),
        sa.Column("pipeline_id", sa.String(length=36), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("pieces", json_type(), nullable=False),
        sa.Column("withheld", sa.Boolean(), nullable=False),
        sa.Column("model_used", sa.String(length=255), nullable=False),
        sa.Column("method", sa.String(length=32), nullable=False),
        sa.Column("sources_count", sa.Integer(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("tokens_used", sa.Integer(), nullable=True),
        sa.Column("asked_at", UtcDateTime(), nullable=False),
        sa.Column("answered_at", UtcDateTime(), nullable=True),
        sa.Column("rating", sa.String(length=4), nullable=True),
        sa.Column("rating_comment", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["thread_id"],
            ["conversations_thread.id"],
            name=op.f("fk_conversations_turn_thread_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conversations_turn")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_conversations_turn_thread_id"), "conversations_turn", ["thread_id"])
    op.create_table(
        "conversations_citation",
        sa.Column("turn_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("document_id", sa.String(length=36), nullable=False),
        sa.Column("knowledge_base_id", sa.String(length=36), nullable=True),
        sa.Column("chunk_id", sa.String(length=255), nullable=False),
        sa.Column("source", sa.String(length=255), nullable=False),
        sa.Column("page", sa.Integer(), nullable=True),
        sa.Column("char_start", sa.Integer(), nullable=False),
        sa.Column("char_end", sa.Integer(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["turn_id"],
            ["conversations_turn.id"],
            name=op.f("fk_conversations_citation_turn_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("turn_id", "number", name=op.f("pk_conversations_citation")),
    )
    op.create_index(op.f("ix_conversations_citation_document_id"), "conversations_citation", ["document_id"])
