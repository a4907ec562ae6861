"""Drop the error code of documents: nothing ever read it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("rag_document", "error_code")


def downgrade() -> None:
    op.add_column("rag_document", sa.Column("error_code", sa.String(length=64), nullable=True))
