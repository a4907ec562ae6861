"""Which identity an approved link is for, if not for that with the account's name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("kernel_link_approval", sa.Column("identity", sa.String(length=512), nullable=True))
