"""Ways to sign in through a provider, to reset a password, and to become Platform Admin."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.db.base import UtcDateTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "kernel_milestone",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("reached_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_kernel_milestone")),
    )
    op.create_table(
        "kernel_setup_code",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("code_hash", sa.String(length=64), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=False),
        sa.Column("consumed_at", UtcDateTime(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kernel_setup_code")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "kernel_link_approval",
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["kernel_account.id"],
            name=op.f("fk_kernel_link_approval_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_kernel_link_approval")),
    )
    op.create_table(
        "kernel_password_reset",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["kernel_account.id"],
            name=op.f("fk_kernel_password_reset_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_kernel_password_reset")),
    )
    with op.batch_alter_table("kernel_password_reset", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_kernel_password_reset_account_id"), ["account_id"], unique=False)

    op.create_table(
        "kernel_setup_attempt",
        sa.Column("code_id", sa.Integer(), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("wrong", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["kernel_account.id"],
            name=op.f("fk_kernel_setup_attempt_account_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["code_id"],
            ["kernel_setup_code.id"],
            name=op.f("fk_kernel_setup_attempt_code_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("code_id", "account_id", name=op.f("pk_kernel_setup_attempt")),
    )
    with op.batch_alter_table("kernel_account", schema=None) as batch_op:
        batch_op.add_column(sa.Column("sso_issuer", sa.String(length=512), nullable=True))
        batch_op.add_column(sa.Column("linked_at", UtcDateTime(), nullable=True))
        batch_op.drop_constraint(batch_op.f("uq_kernel_account_sso_subject"), type_="unique")
        batch_op.create_unique_constraint(
            "uq_kernel_account_sso_issuer_sso_subject", ["sso_issuer", "sso_subject"]
        )
