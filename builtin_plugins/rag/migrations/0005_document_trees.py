"""Record the state of each document's summary tree."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "rag_document", sa.Column("tree_wanted", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column("rag_document", sa.Column("tree_nodes", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("rag_document", sa.Column("tree_levels", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("rag_document", sa.Column("tree_built_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    for name in ("tree_built_at", "tree_levels", "tree_nodes", "tree_wanted"):
        op.drop_column("rag_document", name)
