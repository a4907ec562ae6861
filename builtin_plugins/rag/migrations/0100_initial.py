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
        "rag_deletion",
        sa.Column("knowledge_base_id", sa.String(length=36), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("asked_until", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("knowledge_base_id", "sha256", name=op.f("pk_rag_deletion")),
    )
    op.create_table(
        "rag_document",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("knowledge_base_id", sa.String(length=36), nullable=False),
        sa.Column("filename", sa.String(length=255), nullable=False),
        sa.Column("content_type", sa.String(length=255), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("notice", sa.Text(), nullable=True),
        sa.Column("chunk_count", sa.Integer(), nullable=False),
        sa.Column("page_count", sa.Integer(), nullable=True),
        sa.Column("uploaded_at", UtcDateTime(), nullable=False),
        sa.Column("completed_at", UtcDateTime(), nullable=True),
        sa.Column("language_told", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("parent_id", sa.String(length=36), nullable=True),
        sa.Column("tree_wanted", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("tree_nodes", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tree_levels", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tree_built_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rag_document")),
        sa.UniqueConstraint("knowledge_base_id", "sha256", name="uq_rag_document_knowledge_base_id_sha256"),
    )
    op.create_index(
        "ix_rag_document_knowledge_base_id_filename", "rag_document", ["knowledge_base_id", "filename"]
    )
    op.create_index(
        "ix_rag_document_knowledge_base_id_uploaded_at", "rag_document", ["knowledge_base_id", "uploaded_at"]
    )
    op.create_index(
        "ix_rag_document_parent_id",
        "rag_document",
        ["parent_id"],
        unique=False,
        sqlite_where=sa.text("parent_id IS NOT NULL"),
        postgresql_where=sa.text("parent_id IS NOT NULL"),
    )
    op.create_index(
        "ix_rag_document_processing",
        "rag_document",
        ["knowledge_base_id", "uploaded_at"],
        unique=False,
        sqlite_where=sa.text("status = 'processing'"),
        postgresql_where=sa.text("status = 'processing'"),
    )
    op.create_index(
        "ix_rag_document_untold",
        "rag_document",
        ["knowledge_base_id"],
        unique=False,
        sqlite_where=sa.text("language_told IS 0"),
        postgresql_where=sa.text("language_told IS false"),
    )
    op.create_table(
        "rag_knowledge_base",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("embedding_model", sa.String(length=255), nullable=False),
        sa.Column("llm_model", sa.String(length=255), nullable=True),
        sa.Column("chunk_size", sa.Integer(), nullable=False),
        sa.Column("chunk_overlap", sa.Integer(), nullable=False),
        sa.Column("graph", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("revision", sa.Integer(), server_default="0", nullable=False),
        sa.Column("reembedding", sa.String(length=36), nullable=True),
        sa.Column("importing", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("visibility", sa.String(length=16), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=True),
        sa.Column("organization_id", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rag_knowledge_base")),
    )
    op.create_index(op.f("ix_rag_knowledge_base_created_at"), "rag_knowledge_base", ["created_at"])
    op.create_index(op.f("ix_rag_knowledge_base_organization_id"), "rag_knowledge_base", ["organization_id"])
    op.create_index(op.f("ix_rag_knowledge_base_owner_id"), "rag_knowledge_base", ["owner_id"])
    op.create_index(op.f("ix_rag_knowledge_base_team_id"), "rag_knowledge_base", ["team_id"])
    op.create_table(
        "rag_pipeline",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("retrieval_config", json_type(), nullable=False),
        sa.Column("generation_config", json_type(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("visibility", sa.String(length=16), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=True),
        sa.Column("organization_id", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rag_pipeline")),
    )
    op.create_index(op.f("ix_rag_pipeline_created_at"), "rag_pipeline", ["created_at"])
    op.create_index(op.f("ix_rag_pipeline_organization_id"), "rag_pipeline", ["organization_id"])
    op.create_index(op.f("ix_rag_pipeline_owner_id"), "rag_pipeline", ["owner_id"])
    op.create_index(op.f("ix_rag_pipeline_team_id"), "rag_pipeline", ["team_id"])
    op.create_table(
        "rag_pipeline_source",
        sa.Column("pipeline_id", sa.String(length=36), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("knowledge_base_id", sa.String(length=36), nullable=False),
        sa.ForeignKeyConstraint(
            ["pipeline_id"],
            ["rag_pipeline.id"],
            name=op.f("fk_rag_pipeline_source_pipeline_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("pipeline_id", "position", name=op.f("pk_rag_pipeline_source")),
    )
    op.create_index(
        op.f("ix_rag_pipeline_source_knowledge_base_id"), "rag_pipeline_source", ["knowledge_base_id"]
    )
