"""Addresses that somebody has proven to be an account's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None

_TABLE = "accounts_verified_address"


def upgrade() -> None:
    op.create_table(
        _TABLE,
        sa.Column("account_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("email_key", sa.String(320), nullable=False),
        sa.Column("proof", sa.String(16), nullable=False),
        sa.Column("verified_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", name=op.f(f"pk_{_TABLE}")),
    )
    op.create_index(op.f(f"ix_{_TABLE}_email_key"), _TABLE, ["email_key"])
