"""The first table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "bookmarks_bookmark",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("address", sa.String(length=2000), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bookmarks_bookmark")),
        sa.UniqueConstraint("address", name=op.f("uq_bookmarks_bookmark_address")),
    )


def downgrade() -> None:
    op.drop_table("bookmarks_bookmark")
