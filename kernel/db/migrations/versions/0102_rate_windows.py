"""The counters of rate limits belong to a plugin now; what they held lasts for days at most."""

from __future__ import annotations

from alembic import op

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("kernel_rate_window")
