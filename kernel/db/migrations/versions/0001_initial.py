"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.db.base import UtcDateTime, json_type

revision = "0001"
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
        sa.Column("sso_subject", sa.String(length=512), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kernel_account")),
        sa.UniqueConstraint("email_key", name=op.f("uq_kernel_account_email_key")),
        sa.UniqueConstraint("sso_subject", name=op.f("uq_kernel_account_sso_subject")),
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
    with op.batch_alter_table("kernel_audit_entry", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_kernel_audit_entry_action"), ["action"], unique=False)
        batch_op.create_index(batch_op.f("ix_kernel_audit_entry_actor_id"), ["actor_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_kernel_audit_entry_created_at"), ["created_at"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_kernel_audit_entry_scope_org_id"), ["scope_org_id"], unique=False
        )
        batch_op.create_index(
            "ix_kernel_audit_entry_target_type_target_id", ["target_type", "target_id"], unique=False
        )

    op.create_table(
        "kernel_blob",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_kernel_blob")),
    )
    op.create_table(
        "kernel_collection",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("engine", sa.String(length=255), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("floor", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kernel_collection")),
        sa.UniqueConstraint("name", name=op.f("uq_kernel_collection_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "kernel_job",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("payload", json_type(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=True),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kernel_job")),
    )
    with op.batch_alter_table("kernel_job", schema=None) as batch_op:
        batch_op.create_index("ix_kernel_job_status_created_at", ["status", "created_at"], unique=False)

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
    with op.batch_alter_table("kernel_notice", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_kernel_notice_created_at"), ["created_at"], unique=False)

    op.create_table(
        "kernel_worker",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("seen_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kernel_worker")),
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
        "kernel_point",
        sa.Column(
            "label", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("collection_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("group_key", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("payload", json_type(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["kernel_collection.id"],
            name=op.f("fk_kernel_point_collection_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("label", name=op.f("pk_kernel_point")),
        sa.UniqueConstraint("collection_id", "id", name="uq_kernel_point_collection_id_id"),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("kernel_point", schema=None) as batch_op:
        batch_op.create_index(
            "ix_kernel_point_collection_id_group_key_position",
            ["collection_id", "group_key", "position"],
            unique=False,
        )
        batch_op.create_index(
            "ix_kernel_point_collection_id_version_label", ["collection_id", "version", "label"], unique=False
        )

    op.create_table(
        "kernel_tombstone",
        sa.Column("label", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("collection_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["kernel_collection.id"],
            name=op.f("fk_kernel_tombstone_collection_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("label", name=op.f("pk_kernel_tombstone")),
    )
    with op.batch_alter_table("kernel_tombstone", schema=None) as batch_op:
        batch_op.create_index(
            "ix_kernel_tombstone_collection_id_version", ["collection_id", "version"], unique=False
        )


def downgrade() -> None:
    with op.batch_alter_table("kernel_tombstone", schema=None) as batch_op:
        batch_op.drop_index("ix_kernel_tombstone_collection_id_version")

    op.drop_table("kernel_tombstone")
    with op.batch_alter_table("kernel_point", schema=None) as batch_op:
        batch_op.drop_index("ix_kernel_point_collection_id_version_label")
        batch_op.drop_index("ix_kernel_point_collection_id_group_key_position")

    op.drop_table("kernel_point")
    op.drop_table("kernel_blob_reference")
    op.drop_table("kernel_worker")
    with op.batch_alter_table("kernel_notice", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_kernel_notice_created_at"))

    op.drop_table("kernel_notice")
    with op.batch_alter_table("kernel_job", schema=None) as batch_op:
        batch_op.drop_index("ix_kernel_job_status_created_at")

    op.drop_table("kernel_job")
    op.drop_table("kernel_collection")
    op.drop_table("kernel_blob")
    with op.batch_alter_table("kernel_audit_entry", schema=None) as batch_op:
        batch_op.drop_index("ix_kernel_audit_entry_target_type_target_id")
        batch_op.drop_index(batch_op.f("ix_kernel_audit_entry_scope_org_id"))
        batch_op.drop_index(batch_op.f("ix_kernel_audit_entry_created_at"))
        batch_op.drop_index(batch_op.f("ix_kernel_audit_entry_actor_id"))
        batch_op.drop_index(batch_op.f("ix_kernel_audit_entry_action"))

    op.drop_table("kernel_audit_entry")
    op.drop_table("kernel_account")
