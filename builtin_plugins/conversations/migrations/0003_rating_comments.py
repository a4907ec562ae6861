"""Let readers say why they rate an answer as they do."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("conversations_turn", sa.Column("rating_comment", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("conversations_turn", "rating_comment")
