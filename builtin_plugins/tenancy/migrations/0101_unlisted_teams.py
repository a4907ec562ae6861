"""Teams that stand for the people with whom something is shared."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "tenancy_team",
        sa.Column("unlisted", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
