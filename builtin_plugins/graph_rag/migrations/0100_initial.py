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
        "graph_rag_graph",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("maker", sa.String(length=255), nullable=False),
        sa.Column("document_id", sa.String(length=255), nullable=False),
        sa.Column("knowledge_base_id", sa.String(length=255), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("details", json_type(), nullable=False),
        sa.Column("engine", sa.String(length=64), nullable=False),
        sa.Column("relationships", sa.Boolean(), nullable=False),
        sa.Column("entity_count", sa.Integer(), nullable=False),
        sa.Column("relation_count", sa.Integer(), nullable=False),
        sa.Column("stamp", sa.String(length=32), nullable=False),
        sa.Column("seal", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_graph_rag_graph")),
        sa.UniqueConstraint("maker", "document_id", name=op.f("uq_graph_rag_graph_maker_document_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_graph_rag_graph_document_id"), "graph_rag_graph", ["document_id"])
    op.create_index(op.f("ix_graph_rag_graph_knowledge_base_id"), "graph_rag_graph", ["knowledge_base_id"])
    op.create_table(
        "graph_rag_alias",
        sa.Column("graph_id", sa.Integer(), nullable=False),
        sa.Column("alias", sa.String(length=255), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("reason", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("end", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["graph_id"], ["graph_rag_graph.id"], name=op.f("fk_graph_rag_alias_graph_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("graph_id", "alias", name=op.f("pk_graph_rag_alias")),
    )
    op.create_index(op.f("ix_graph_rag_alias_alias"), "graph_rag_alias", ["alias"])
    op.create_index(op.f("ix_graph_rag_alias_key"), "graph_rag_alias", ["key"])
    op.create_table(
        "graph_rag_entity",
        sa.Column("graph_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("label", sa.String(length=32), nullable=False),
        sa.Column("mentions", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["graph_id"],
            ["graph_rag_graph.id"],
            name=op.f("fk_graph_rag_entity_graph_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("graph_id", "key", name=op.f("pk_graph_rag_entity")),
    )
    op.create_index(op.f("ix_graph_rag_entity_key"), "graph_rag_entity", ["key"])
    op.create_table(
        "graph_rag_passage",
        sa.Column("graph_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("passage_id", sa.String(length=64), nullable=False),
        sa.Column("page", sa.Integer(), nullable=True),
        sa.Column("char_start", sa.Integer(), nullable=False),
        sa.Column("char_end", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("mentions", json_type(), nullable=False),
        sa.ForeignKeyConstraint(
            ["graph_id"],
            ["graph_rag_graph.id"],
            name=op.f("fk_graph_rag_passage_graph_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("graph_id", "position", name=op.f("pk_graph_rag_passage")),
    )
    op.create_table(
        "graph_rag_relation",
        sa.Column("graph_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("predicate", sa.String(length=255), nullable=False),
        sa.Column("object", sa.String(length=255), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("end", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["graph_id"],
            ["graph_rag_graph.id"],
            name=op.f("fk_graph_rag_relation_graph_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("graph_id", "number", name=op.f("pk_graph_rag_relation")),
    )
    op.create_index("ix_graph_rag_relation_object", "graph_rag_relation", ["object"])
    op.create_index("ix_graph_rag_relation_subject", "graph_rag_relation", ["subject"])
