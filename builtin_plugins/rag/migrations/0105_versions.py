"""Versions of a document: what identifies it, which version it is, and since when a newer one answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime

revision = "0105"
down_revision = "0104"
branch_labels = None
depends_on = None

_TABLE = "rag_document"
_UNNAMED = sa.text("identity IS NULL")
_SUPERSEDED = sa.text("superseded_at IS NOT NULL")


def upgrade() -> None:
    with op.batch_alter_table(_TABLE) as table:
        table.add_column(sa.Column("identity", sa.String(512), nullable=True))
        table.add_column(sa.Column("version", sa.Integer(), server_default="1", nullable=False))
        table.add_column(sa.Column("superseded_at", UtcDateTime(), nullable=True))
        table.drop_constraint("uq_rag_document_knowledge_base_id_sha256", type_="unique")
    same = ["knowledge_base_id", "sha256"]
    op.create_index("ix_rag_document_knowledge_base_id_sha256", _TABLE, same)
    op.create_index(
        "uq_rag_document_unnamed",
        _TABLE,
        same,
        unique=True,
        sqlite_where=_UNNAMED,
        postgresql_where=_UNNAMED,
    )
    of_one = ["knowledge_base_id", "identity", "version"]
    op.create_index("uq_rag_document_version", _TABLE, of_one, unique=True)
    op.create_index(
        "ix_rag_document_superseded_at",
        _TABLE,
        ["superseded_at"],
        sqlite_where=_SUPERSEDED,
        postgresql_where=_SUPERSEDED,
    )
