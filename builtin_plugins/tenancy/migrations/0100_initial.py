"""The tables of 0.1.0."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, utc_now

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tenancy_organization",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("slug", sa.String(length=63), nullable=False),
        sa.Column("parent_id", sa.Integer(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["tenancy_organization.id"], name=op.f("fk_tenancy_organization_parent_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenancy_organization")),
        sa.UniqueConstraint("slug", name=op.f("uq_tenancy_organization_slug")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_tenancy_organization_parent_id"), "tenancy_organization", ["parent_id"])
    op.create_table(
        "tenancy_membership",
        sa.Column("organization_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("org_role", sa.String(length=16), nullable=False),
        sa.Column("suspended_at", UtcDateTime(), nullable=True),
        sa.Column("joined_at", UtcDateTime(), nullable=False),
        sa.Column("managed_since", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["tenancy_organization.id"],
            name=op.f("fk_tenancy_membership_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("organization_id", "user_id", name=op.f("pk_tenancy_membership")),
    )
    op.create_index(op.f("ix_tenancy_membership_user_id"), "tenancy_membership", ["user_id"])
    op.create_table(
        "tenancy_organization_ancestor",
        sa.Column("organization_id", sa.Integer(), nullable=False),
        sa.Column("ancestor_id", sa.Integer(), nullable=False),
        sa.Column("distance", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["ancestor_id"],
            ["tenancy_organization.id"],
            name=op.f("fk_tenancy_organization_ancestor_ancestor_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["tenancy_organization.id"],
            name=op.f("fk_tenancy_organization_ancestor_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "organization_id", "ancestor_id", name=op.f("pk_tenancy_organization_ancestor")
        ),
    )
    op.create_index(
        op.f("ix_tenancy_organization_ancestor_ancestor_id"), "tenancy_organization_ancestor", ["ancestor_id"]
    )
    op.create_table(
        "tenancy_permission_group",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("organization_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("name_key", sa.String(length=100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["tenancy_organization.id"],
            name=op.f("fk_tenancy_permission_group_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenancy_permission_group")),
        sa.UniqueConstraint(
            "organization_id", "name_key", name="uq_tenancy_permission_group_organization_id_name_key"
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "tenancy_role",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("organization_id", sa.Integer(), nullable=True),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("name_key", sa.String(length=100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("is_builtin", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["tenancy_organization.id"],
            name=op.f("fk_tenancy_role_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenancy_role")),
        sa.UniqueConstraint("organization_id", "name_key", name="uq_tenancy_role_organization_id_name_key"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "tenancy_team",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("name_key", sa.String(length=255), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Integer(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["tenancy_organization.id"],
            name=op.f("fk_tenancy_team_organization_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenancy_team")),
        sa.UniqueConstraint("name_key", name=op.f("uq_tenancy_team_name_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_tenancy_team_organization_id"), "tenancy_team", ["organization_id"])
    op.create_table(
        "tenancy_group_child",
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("child_group_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["child_group_id"],
            ["tenancy_permission_group.id"],
            name=op.f("fk_tenancy_group_child_child_group_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["tenancy_permission_group.id"],
            name=op.f("fk_tenancy_group_child_group_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("group_id", "child_group_id", name=op.f("pk_tenancy_group_child")),
    )
    op.create_index(op.f("ix_tenancy_group_child_child_group_id"), "tenancy_group_child", ["child_group_id"])
    op.create_table(
        "tenancy_group_permission",
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("permission_key", sa.String(length=128), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["tenancy_permission_group.id"],
            name=op.f("fk_tenancy_group_permission_group_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("group_id", "permission_key", name=op.f("pk_tenancy_group_permission")),
    )
    op.create_table(
        "tenancy_invite",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=True),
        sa.Column("organization_id", sa.Integer(), nullable=True),
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("email_key", sa.String(length=320), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("max_uses", sa.Integer(), nullable=False),
        sa.Column("use_count", sa.Integer(), nullable=False),
        sa.Column("invited_by", sa.Integer(), nullable=True),
        sa.Column("email_sent", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["tenancy_organization.id"],
            name=op.f("fk_tenancy_invite_organization_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["team_id"], ["tenancy_team.id"], name=op.f("fk_tenancy_invite_team_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenancy_invite")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_tenancy_invite_token_hash")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_tenancy_invite_organization_id_created_at", "tenancy_invite", ["organization_id", "created_at"]
    )
    op.create_index("ix_tenancy_invite_team_id_created_at", "tenancy_invite", ["team_id", "created_at"])
    op.create_table(
        "tenancy_role_assignment",
        sa.Column("organization_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("role_id", sa.Integer(), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=True),
        sa.Column("assigned_by", sa.Integer(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["tenancy_organization.id"],
            name=op.f("fk_tenancy_role_assignment_organization_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["role_id"],
            ["tenancy_role.id"],
            name=op.f("fk_tenancy_role_assignment_role_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "organization_id", "user_id", "role_id", name=op.f("pk_tenancy_role_assignment")
        ),
    )
    op.create_index(op.f("ix_tenancy_role_assignment_role_id"), "tenancy_role_assignment", ["role_id"])
    op.create_index(op.f("ix_tenancy_role_assignment_user_id"), "tenancy_role_assignment", ["user_id"])
    op.create_table(
        "tenancy_role_group",
        sa.Column("role_id", sa.Integer(), nullable=False),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["tenancy_permission_group.id"],
            name=op.f("fk_tenancy_role_group_group_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["role_id"], ["tenancy_role.id"], name=op.f("fk_tenancy_role_group_role_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("role_id", "group_id", name=op.f("pk_tenancy_role_group")),
    )
    op.create_index(op.f("ix_tenancy_role_group_group_id"), "tenancy_role_group", ["group_id"])
    op.create_table(
        "tenancy_role_permission",
        sa.Column("role_id", sa.Integer(), nullable=False),
        sa.Column("permission_key", sa.String(length=128), nullable=False),
        sa.ForeignKeyConstraint(
            ["role_id"],
            ["tenancy_role.id"],
            name=op.f("fk_tenancy_role_permission_role_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("role_id", "permission_key", name=op.f("pk_tenancy_role_permission")),
    )
    op.create_table(
        "tenancy_team_member",
        sa.Column("team_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("team_role", sa.String(length=16), nullable=False),
        sa.Column("joined_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["team_id"], ["tenancy_team.id"], name=op.f("fk_tenancy_team_member_team_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("team_id", "user_id", name=op.f("pk_tenancy_team_member")),
    )
    op.create_index(op.f("ix_tenancy_team_member_user_id"), "tenancy_team_member", ["user_id"])
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
    _add_builtin_roles()


def _add_builtin_roles() -> None:
    roles = sa.table(
        "tenancy_role",
        *(sa.column(name) for name in ("id", "name", "name_key", "description")),
        sa.column("is_builtin", sa.Boolean()),
        sa.column("created_at", UtcDateTime()),
    )
    builtin = [
        (1, "owner", "Everything in the organization and in those below it."),
        (2, "admin", "Members, settings and the audit log of the organization and of those below it."),
        (3, "member", "Sees the organization and what its members share."),
    ]
    op.bulk_insert(
        roles,
        [
            {"id": i, "name": n, "name_key": n, "description": d, "is_builtin": True, "created_at": utc_now()}
            for i, n, d in builtin
        ],
    )
    if op.get_bind().dialect.name == "postgresql":  # explicit ids don't advance the sequence
        op.execute("SELECT setval('tenancy_role_id_seq', 3)")
