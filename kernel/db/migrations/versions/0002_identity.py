"""Sign-in through a provider, password resets, setup codes for Platform Admins; shared rate limits."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.db.base import UtcDateTime, utc_now

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
    op.create_table(
        "kernel_rate_window",
        sa.Column("key_hash", sa.String(length=32), nullable=False),
        sa.Column("window_end", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("key_hash", "window_end", name=op.f("pk_kernel_rate_window")),
    )
    with op.batch_alter_table("kernel_rate_window", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_kernel_rate_window_window_end"), ["window_end"], unique=False)

    with op.batch_alter_table("kernel_account", schema=None) as batch_op:
        batch_op.add_column(sa.Column("sso_issuer", sa.String(length=512), nullable=True))
        batch_op.add_column(sa.Column("linked_at", UtcDateTime(), nullable=True))
        batch_op.drop_constraint(batch_op.f("uq_kernel_account_sso_subject"), type_="unique")
        batch_op.create_unique_constraint(
            "uq_kernel_account_sso_issuer_sso_subject", ["sso_issuer", "sso_subject"]
        )
    _remember_administrators()
    _keep_the_audit_log()


def _remember_administrators() -> None:
    """An install with administrators isn't a fresh one: nobody becomes Platform Admin by signing in."""
    connection = op.get_bind()
    account = sa.table("kernel_account", sa.column("role"), sa.column("platform_admin"))
    milestone = sa.table("kernel_milestone", sa.column("name"), sa.column("reached_at", UtcDateTime()))
    past = {"upgraded": account.c.role == "admin", "platform_admin": account.c.platform_admin.is_(True)}
    for name, happened in past.items():
        if connection.scalar(sa.select(sa.literal(1)).select_from(account).where(happened).limit(1)):
            op.execute(milestone.insert().values(name=name, reached_at=utc_now()))


def _keep_the_audit_log() -> None:
    """Entries are added, never altered or deleted. A later migration that rebuilds the table on SQLite drops
    its triggers, too, and must create them again.
    """
    postgresql = op.get_bind().dialect.name == "postgresql"
    for statement in _TRIGGERS_POSTGRESQL if postgresql else _TRIGGERS_SQLITE:
        op.execute(statement)


_TRIGGERS_SQLITE = [
    f"CREATE TRIGGER kernel_audit_entry_{name} BEFORE {name.upper()} ON kernel_audit_entry "
    "BEGIN SELECT RAISE(ABORT, 'entries of the audit log are never altered or deleted'); END"
    for name in ("update", "delete")
]
_TRIGGERS_POSTGRESQL = [
    "CREATE FUNCTION kernel_audit_entry_keep() RETURNS trigger LANGUAGE plpgsql AS "
    "'BEGIN RAISE EXCEPTION ''entries of the audit log are never altered or deleted''; END'",
    "CREATE TRIGGER kernel_audit_entry_rows BEFORE UPDATE OR DELETE ON kernel_audit_entry "
    "FOR EACH ROW EXECUTE FUNCTION kernel_audit_entry_keep()",
    "CREATE TRIGGER kernel_audit_entry_table BEFORE TRUNCATE ON kernel_audit_entry "
    "FOR EACH STATEMENT EXECUTE FUNCTION kernel_audit_entry_keep()",
]
