"""Who holds which content."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "shelf_holder",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("holder", sa.String(length=255), nullable=False),
        sa.PrimaryKeyConstraint("sha256", "holder", name=op.f("pk_shelf_holder")),
    )


def downgrade() -> None:
    op.drop_table("shelf_holder")
