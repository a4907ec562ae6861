"""Files, vector stores and batches of files."""

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
        "openai_files_file",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("filename", sa.String(length=255), nullable=False),
        sa.Column("purpose", sa.String(length=32), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("visibility", sa.String(length=16), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=True),
        sa.Column("organization_id", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_openai_files_file")),
    )
    for column in ("owner_id", "team_id", "organization_id"):
        op.create_index(op.f(f"ix_openai_files_file_{column}"), "openai_files_file", [column])
    op.create_index("ix_openai_files_file_in_order", "openai_files_file", ["owner_id", "created_at", "id"])
    op.create_table(
        "openai_files_store",
        sa.Column("knowledge_base_id", sa.String(length=36), nullable=False),
        sa.Column("labels", json_type(), nullable=False),
        sa.PrimaryKeyConstraint("knowledge_base_id", name=op.f("pk_openai_files_store")),
    )
    op.create_table(
        "openai_files_batch",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("knowledge_base_id", sa.String(length=36), nullable=False),
        sa.Column("file_ids", json_type(), nullable=False),
        sa.Column("refused", json_type(), nullable=False),
        sa.Column("cancelled", json_type(), nullable=False),
        sa.Column("is_cancelled", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_openai_files_batch")),
    )
    op.create_index(
        op.f("ix_openai_files_batch_knowledge_base_id"), "openai_files_batch", ["knowledge_base_id"]
    )
