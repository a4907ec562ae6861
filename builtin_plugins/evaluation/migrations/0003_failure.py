"""Let results record why an answer failed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("evaluation_result", sa.Column("failure", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("evaluation_result", "failure")
