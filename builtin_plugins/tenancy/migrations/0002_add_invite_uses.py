"""Record which accounts can't use an invite again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tenancy_invite_use",
        sa.Column("invite_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["invite_id"],
            ["tenancy_invite.id"],
            name=op.f("fk_tenancy_invite_use_invite_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("invite_id", "user_id", name=op.f("pk_tenancy_invite_use")),
    )


def downgrade() -> None:
    op.drop_table("tenancy_invite_use")
