"""The files of the synchronizer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "oikb_sync_file",
        sa.Column("knowledge_base_id", sa.String(length=36), nullable=False),
        sa.Column("path", sa.String(length=1024), nullable=False),
        sa.Column("checksum", sa.String(length=255), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("document_id", sa.String(length=36), nullable=False),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("knowledge_base_id", "path", name=op.f("pk_oikb_sync_file")),
    )
    op.create_index(op.f("ix_oikb_sync_file_document_id"), "oikb_sync_file", ["document_id"])
