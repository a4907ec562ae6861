"""Record which installed plugins came with the package of a listing."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "marketplace_installed_plugin",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("plugin_id", sa.String(length=36), nullable=False),
        sa.ForeignKeyConstraint(
            ["plugin_id"],
            ["marketplace_listing.id"],
            name=op.f("fk_marketplace_installed_plugin_plugin_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_marketplace_installed_plugin")),
    )
    with op.batch_alter_table("marketplace_installed_plugin", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_marketplace_installed_plugin_plugin_id"), ["plugin_id"], unique=False
        )


def downgrade() -> None:
    op.drop_table("marketplace_installed_plugin")
