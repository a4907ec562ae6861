"""Let an order name its provider, and keep what its payment replaced."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("licensing_order") as batch:
        batch.add_column(sa.Column("provider", sa.String(length=50), nullable=True))
        batch.add_column(sa.Column("replaced", sa.JSON(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("licensing_order") as batch:
        batch.drop_column("replaced")
        batch.drop_column("provider")
