"""Mark listings that installed plugins created for themselves."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("marketplace_listing", schema=None) as batch_op:
        batch_op.add_column(sa.Column("self_listed", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    with op.batch_alter_table("marketplace_listing", schema=None) as batch_op:
        batch_op.drop_column("self_listed")
