"""Let readers rate answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("conversations_turn", sa.Column("rating", sa.String(length=4), nullable=True))


def downgrade() -> None:
    op.drop_column("conversations_turn", "rating")
