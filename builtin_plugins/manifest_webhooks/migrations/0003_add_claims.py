"""Record which file holds a name or a webhook path."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLE = "manifest_webhooks_claim"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("value", sa.String(length=100), nullable=False),
        sa.Column("file", sa.String(length=1020), nullable=False),
        sa.PrimaryKeyConstraint("kind", "value", name=op.f("pk_manifest_webhooks_claim")),
    )


def downgrade() -> None:
    op.drop_table(TABLE)
