"""Which accounts are deleted, and which plugins have removed what belonged to them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.db.base import UtcDateTime

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("kernel_account", sa.Column("deleted_at", UtcDateTime(), nullable=True))
    op.create_table(
        "kernel_account_removal",
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("plugin", sa.String(255), nullable=False),
        sa.Column("removed_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["kernel_account.id"],
            name="fk_kernel_account_removal_account_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("account_id", "plugin", name="pk_kernel_account_removal"),
    )


def downgrade() -> None:
    op.drop_table("kernel_account_removal")
    op.drop_column("kernel_account", "deleted_at")
