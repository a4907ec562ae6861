"""Create the first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "oidc_session",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_oidc_session")),
    )
    with op.batch_alter_table("oidc_session", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_oidc_session_expires_at"), ["expires_at"], unique=False)

    op.create_table(
        "oidc_used",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_oidc_used")),
    )
    with op.batch_alter_table("oidc_used", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_oidc_used_expires_at"), ["expires_at"], unique=False)
