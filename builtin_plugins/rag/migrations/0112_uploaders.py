"""Who uploaded a version of a document, for whoever compares it with another."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0112"
down_revision = "0111"
branch_labels = None
depends_on = None

_TABLE = "rag_document"
_KNOWN = sa.text("uploaded_by IS NOT NULL")


def upgrade() -> None:
    op.add_column(_TABLE, sa.Column("uploaded_by", sa.Integer(), nullable=True))
    op.create_index(
        "ix_rag_document_uploaded_by",
        _TABLE,
        ["uploaded_by"],
        sqlite_where=_KNOWN,
        postgresql_where=_KNOWN,
    )
