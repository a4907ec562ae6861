"""Find unpaid orders by their age."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_licensing_order_state_created_at", "licensing_order", ["state", "created_at"])


def downgrade() -> None:
    op.drop_index("ix_licensing_order_state_created_at", "licensing_order")
