"""Who watches a source, and why nobody does."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for column in (
        sa.Column("watcher", sa.String(36), nullable=True),
        sa.Column("watched_until", UtcDateTime(), nullable=True),
        sa.Column("watch_problem", sa.Text(), nullable=True),
    ):
        op.add_column("sources_source", column)
