"""The tables of 0.1.0."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.db.base import UtcDateTime, json_type

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "kernel_account",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("username", sa.String(length=64), nullable=False),
        sa.Column("username_key", sa.String(length=64), nullable=False),
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("email_key", sa.String(length=320), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("platform_admin", sa.Boolean(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("must_change_password", sa.Boolean(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("sso_issuer", sa.String(length=512), nullable=True),
        sa.Column("sso_subject", sa.String(length=512), nullable=True),
        sa.Column("linked_at", UtcDateTime(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("deleted_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kernel_account")),
        sa.UniqueConstraint("email_key", name=op.f("uq_kernel_account_email_key")),
        sa.UniqueConstraint("sso_issuer", "sso_subject", name="uq_kernel_account_sso_issuer_sso_subject"),
        sa.UniqueConstraint("username_key", name=op.f("uq_kernel_account_username_key")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "kernel_audit_entry",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("action", sa.String(length=128), nullable=False),
        sa.Column("target_type", sa.String(length=64), nullable=False),
        sa.Column("target_id", sa.String(length=255), nullable=True),
        sa.Column("actor_id", sa.Integer(), nullable=True),
        sa.Column("before_state", json_type(), nullable=True),
        sa.Column("after_state", json_type(), nullable=True),
        sa.Column("ip_address", sa.String(length=64), nullable=True),
        sa.Column("user_agent", sa.String(length=255), nullable=True),
        sa.Column("scope_org_id", sa.Integer(), nullable=True),
        sa.Column("scope_type", sa.String(length=32), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kernel_audit_entry")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_kernel_audit_entry_action"), "kernel_audit_entry", ["action"])
    op.create_index(op.f("ix_kernel_audit_entry_actor_id"), "kernel_audit_entry", ["actor_id"])
    op.create_index(op.f("ix_kernel_audit_entry_created_at"), "kernel_audit_entry", ["created_at"])
    op.create_index(op.f("ix_kernel_audit_entry_scope_org_id"), "kernel_audit_entry", ["scope_org_id"])
    op.create_index(
        "ix_kernel_audit_entry_target_type_target_id", "kernel_audit_entry", ["target_type", "target_id"]
    )
    op.create_table(
        "kernel_blob",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_kernel_blob")),
    )
    op.create_table(
        "kernel_job",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("payload", json_type(), nullable=False),
        sa.Column("lane", sa.String(length=16), server_default="standard", nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("faults", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("title", sa.String(length=128), nullable=True),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("subject", sa.String(length=64), nullable=True),
        sa.Column("done", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("done_before", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=True),
        sa.Column("unit", sa.String(length=32), server_default="", nullable=False),
        sa.Column("message", sa.Text(), server_default="", nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=True),
        sa.Column("progress_at", UtcDateTime(), nullable=True),
        sa.Column("cancel_requested_at", UtcDateTime(), nullable=True),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.Column("worker", sa.String(length=128), nullable=True),
        sa.Column("share", sa.String(length=64), nullable=True),
        sa.Column("weight", sa.Integer(), nullable=True),
        sa.Column("trace", sa.String(length=64), nullable=True),
        sa.Column("not_before", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kernel_job")),
    )
    op.create_index("ix_kernel_job_finished_at", "kernel_job", ["finished_at"])
    op.create_index("ix_kernel_job_name_subject", "kernel_job", ["name", "subject"])
    for name, columns, condition in (
        ("in_order", ["lane", "created_at", "id"], "status = 'queued' AND weight IS NULL"),
        (
            "in_turn",
            ["lane", "name", "owner_id", "share", "not_before", "created_at"],
            "status = 'queued' AND weight IS NOT NULL",
        ),
        ("worker", ["worker"], "worker IS NOT NULL"),
        ("not_before", ["not_before"], "not_before IS NOT NULL"),
    ):
        where = sa.text(condition)
        op.create_index(
            f"ix_kernel_job_{name}", "kernel_job", columns, sqlite_where=where, postgresql_where=where
        )
    op.create_index("ix_kernel_job_owner_id_created_at", "kernel_job", ["owner_id", "created_at"])
    op.create_index("ix_kernel_job_status_created_at", "kernel_job", ["status", "created_at"])
    op.create_table(
        "kernel_milestone",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("reached_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_kernel_milestone")),
    )
    op.create_table(
        "kernel_notice",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("topic", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kernel_notice")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_kernel_notice_created_at"), "kernel_notice", ["created_at"])
    op.create_table(
        "kernel_rate_window",
        sa.Column("key_hash", sa.String(length=32), nullable=False),
        sa.Column("window_end", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("key_hash", "window_end", name=op.f("pk_kernel_rate_window")),
    )
    op.create_index(op.f("ix_kernel_rate_window_window_end"), "kernel_rate_window", ["window_end"])
    op.create_table(
        "kernel_schedule",
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("cron", sa.String(length=128), nullable=False),
        sa.Column("next_at", UtcDateTime(), nullable=False),
        sa.Column("last_at", UtcDateTime(), nullable=True),
        sa.Column("job_id", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_kernel_schedule")),
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
        "kernel_worker",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("seen_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kernel_worker")),
    )
    op.create_table(
        "kernel_account_removal",
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("plugin", sa.String(length=255), nullable=False),
        sa.Column("removed_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["kernel_account.id"],
            name=op.f("fk_kernel_account_removal_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("account_id", "plugin", name=op.f("pk_kernel_account_removal")),
    )
    op.create_table(
        "kernel_blob_reference",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("holder", sa.String(length=255), nullable=False),
        sa.ForeignKeyConstraint(
            ["sha256"], ["kernel_blob.sha256"], name=op.f("fk_kernel_blob_reference_sha256")
        ),
        sa.PrimaryKeyConstraint("sha256", "holder", name=op.f("pk_kernel_blob_reference")),
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
        "kernel_owner_secret",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
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
        sa.UniqueConstraint("owner_kind", "owner_id", "name", name="uq_kernel_owner_secret_owner_name"),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_kernel_owner_secret_account_id"), "kernel_owner_secret", ["account_id"])
    op.create_index(op.f("ix_kernel_owner_secret_key_id"), "kernel_owner_secret", ["key_id"])
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
    op.create_index(op.f("ix_kernel_password_reset_account_id"), "kernel_password_reset", ["account_id"])
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
    postgresql = op.get_bind().dialect.name == "postgresql"
    for statement in _TRIGGERS_POSTGRESQL if postgresql else _TRIGGERS_SQLITE:
        op.execute(statement)


# Entries of the audit log are added, never altered or deleted. A later migration that rebuilds the table on
# SQLite drops its triggers, too, and must create them again.
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
    # Per statement, not per row: one notification for all notices of a unit, sent with the commit.
    """
CREATE FUNCTION kernel_wake() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('kernel_notice', '');
    RETURN NULL;
END
$$
""",
    "CREATE TRIGGER kernel_wake AFTER INSERT ON kernel_notice "
    "FOR EACH STATEMENT EXECUTE FUNCTION kernel_wake()",
]
