"""Secrets of accounts, organizations and plugins."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.db.base import UtcDateTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLE = "kernel_owner_secret"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("owner_kind", sa.String(length=16), nullable=False),
        sa.Column("owner_id", sa.String(length=255), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=True),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("key_id", sa.String(length=16), nullable=False),
        sa.Column("nonce", sa.LargeBinary(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["kernel_account.id"],
            name=op.f("fk_kernel_owner_secret_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kernel_owner_secret")),
        sa.UniqueConstraint("owner_kind", "owner_id", "name", name=op.f("uq_kernel_owner_secret_owner_name")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table(TABLE, schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_kernel_owner_secret_account_id"), ["account_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_kernel_owner_secret_key_id"), ["key_id"], unique=False)
