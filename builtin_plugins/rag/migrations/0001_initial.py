"""Create the first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, json_type

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rag_knowledge_base",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("embedding_model", sa.String(length=255), nullable=False),
        sa.Column("llm_model", sa.String(length=255), nullable=True),
        sa.Column("chunk_size", sa.Integer(), nullable=False),
        sa.Column("chunk_overlap", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("visibility", sa.String(length=16), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=True),
        sa.Column("organization_id", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rag_knowledge_base")),
    )
    with op.batch_alter_table("rag_knowledge_base", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_rag_knowledge_base_created_at"), ["created_at"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_rag_knowledge_base_organization_id"), ["organization_id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_rag_knowledge_base_owner_id"), ["owner_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_rag_knowledge_base_team_id"), ["team_id"], unique=False)

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
    with op.batch_alter_table("rag_pipeline", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_rag_pipeline_created_at"), ["created_at"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_rag_pipeline_organization_id"), ["organization_id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_rag_pipeline_owner_id"), ["owner_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_rag_pipeline_team_id"), ["team_id"], unique=False)

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
        sa.Column("error_code", sa.String(length=64), nullable=True),
        sa.Column("chunk_count", sa.Integer(), nullable=False),
        sa.Column("page_count", sa.Integer(), nullable=True),
        sa.Column("uploaded_at", UtcDateTime(), nullable=False),
        sa.Column("completed_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["knowledge_base_id"],
            ["rag_knowledge_base.id"],
            name=op.f("fk_rag_document_knowledge_base_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rag_document")),
        sa.UniqueConstraint("knowledge_base_id", "sha256", name="uq_rag_document_knowledge_base_id_sha256"),
    )
    with op.batch_alter_table("rag_document", schema=None) as batch_op:
        batch_op.create_index(
            "ix_rag_document_knowledge_base_id_filename", ["knowledge_base_id", "filename"], unique=False
        )
        batch_op.create_index(
            "ix_rag_document_knowledge_base_id_uploaded_at",
            ["knowledge_base_id", "uploaded_at"],
            unique=False,
        )

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
    with op.batch_alter_table("rag_pipeline_source", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_rag_pipeline_source_knowledge_base_id"), ["knowledge_base_id"], unique=False
        )


def downgrade() -> None:
    with op.batch_alter_table("rag_pipeline_source", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_rag_pipeline_source_knowledge_base_id"))

    op.drop_table("rag_pipeline_source")
    with op.batch_alter_table("rag_document", schema=None) as batch_op:
        batch_op.drop_index("ix_rag_document_knowledge_base_id_uploaded_at")
        batch_op.drop_index("ix_rag_document_knowledge_base_id_filename")

    op.drop_table("rag_document")
    with op.batch_alter_table("rag_pipeline", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_rag_pipeline_team_id"))
        batch_op.drop_index(batch_op.f("ix_rag_pipeline_owner_id"))
        batch_op.drop_index(batch_op.f("ix_rag_pipeline_organization_id"))
        batch_op.drop_index(batch_op.f("ix_rag_pipeline_created_at"))

    op.drop_table("rag_pipeline")
    with op.batch_alter_table("rag_knowledge_base", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_rag_knowledge_base_team_id"))
        batch_op.drop_index(batch_op.f("ix_rag_knowledge_base_owner_id"))
        batch_op.drop_index(batch_op.f("ix_rag_knowledge_base_organization_id"))
        batch_op.drop_index(batch_op.f("ix_rag_knowledge_base_created_at"))

    op.drop_table("rag_knowledge_base")
