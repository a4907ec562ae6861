"""An index of the documents that are found while they are being read, which every search asks for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0116"
down_revision = "0115"
branch_labels = None
depends_on = None

_EARLY = sa.text("searchable_count > 0")


def upgrade() -> None:
    op.create_index(
        "ix_rag_document_early",
        "rag_document",
        ["knowledge_base_id"],
        sqlite_where=_EARLY,
        postgresql_where=_EARLY,
    )
