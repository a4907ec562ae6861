"""Store the metadata of the wheel uploaded with a submission."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import json_type

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("marketplace_listing", schema=None) as batch_op:
        batch_op.add_column(sa.Column("wheel", json_type(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("marketplace_listing", schema=None) as batch_op:
        batch_op.drop_column("wheel")
