"""Requests that made something, for their retries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "openai_files_request",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("knowledge_base_id", sa.String(length=36), nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_openai_files_request")),
    )
    op.create_index("ix_openai_files_request_same", "openai_files_request", ["owner_id", "digest"])
    op.create_index(
        op.f("ix_openai_files_request_knowledge_base_id"), "openai_files_request", ["knowledge_base_id"]
    )
