"""Create the first tables."""

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
        "news_library",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("knowledge_base_id", sa.String(length=36), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_news_library")),
    )
    op.create_table(
        "news_feed",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("title", sa.String(length=255), nullable=False),
        sa.Column("etag", sa.String(length=1000), nullable=True),
        sa.Column("modified", sa.String(length=255), nullable=True),
        sa.Column("checked_at", UtcDateTime(), nullable=True),
        sa.Column("error", sa.String(length=500), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_news_feed")),
    )
    op.create_table(
        "news_item",
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("title", sa.String(length=500), nullable=False),
        sa.Column("link", sa.Text(), nullable=False),
        sa.Column("published_at", UtcDateTime(), nullable=False),
        sa.Column("document_id", sa.String(length=36), nullable=False),
        sa.PrimaryKeyConstraint("feed", "key", name=op.f("pk_news_item")),
    )
    op.create_index("ix_news_item_feed_published_at", "news_item", ["feed", "published_at"])
