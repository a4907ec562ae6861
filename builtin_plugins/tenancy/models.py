"""Tables of tenancy: organizations, teams, invites, roles. Ids of accounts are the kernel's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, ForeignKey, Index, Integer, String, Text, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, plugin_base, utc_now

Base: Any = plugin_base("tenancy")

CASCADE = "CASCADE"


class Organization(Base):
    """A tenant; with a parent, it is part of another one."""

    __tablename__ = "tenancy_organization"
    __table_args__ = {"sqlite_autoincrement": True}

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(String(255))
    slug: Mapped[str] = mapped_column(String(63), unique=True)
    parent_id: Mapped[int | None] = mapped_column(ForeignKey("tenancy_organization.id"), index=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class OrganizationAncestor(Base):
    """The closure of the tree: every organization with itself (distance 0) and all above it."""

    __tablename__ = "tenancy_organization_ancestor"

    organization_id: Mapped[int] = mapped_column(
        ForeignKey(Organization.id, ondelete=CASCADE), primary_key=True
    )
    ancestor_id: Mapped[int] = mapped_column(
        ForeignKey(Organization.id, ondelete=CASCADE), primary_key=True, index=True
    )
    distance: Mapped[int] = mapped_column(Integer)


class Membership(Base):
    """An account in an organization: `owner`, `admin` or `member`. A suspended one counts for nothing.

    `managed_since`: when the account agreed to be managed by the organization; None if it did not.
    """

    __tablename__ = "tenancy_membership"

    organization_id: Mapped[int] = mapped_column(
        ForeignKey(Organization.id, ondelete=CASCADE), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(Integer, primary_key=True, index=True)
    org_role: Mapped[str] = mapped_column(String(16))
    suspended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    joined_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    managed_since: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Team(Base):
    """Accounts that share things; `name_key` is the case-folded name. May belong to a tenant.

    One that is `unlisted` has no name, and was made by sharing something with people (`teams.people`).
    """

    __tablename__ = "tenancy_team"
    __table_args__ = {"sqlite_autoincrement": True}

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(String(255))
    name_key: Mapped[str] = mapped_column(String(255), unique=True)
    description: Mapped[str] = mapped_column(Text, default="")
    organization_id: Mapped[int | None] = mapped_column(
        ForeignKey(Organization.id, ondelete=CASCADE), index=True
    )
    unlisted: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class TeamMember(Base):
    """An account in a team: `team_admin` or `member`."""

    __tablename__ = "tenancy_team_member"

    team_id: Mapped[int] = mapped_column(ForeignKey(Team.id, ondelete=CASCADE), primary_key=True)
    user_id: Mapped[int] = mapped_column(Integer, primary_key=True, index=True)
    team_role: Mapped[str] = mapped_column(String(16))
    joined_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class Invite(Base):
    """An invitation to a team or to an organization (exactly one is set). Only the token's hash is kept.

    `email_key` is the case-folded address. `status` is `pending`, `accepted` (spent) or `revoked`;
    `expired` follows from `expires_at`. `email_sent`: the mail server accepted its e-mail.
    """

    __tablename__ = "tenancy_invite"
    __table_args__ = (
        Index("ix_tenancy_invite_team_id_created_at", "team_id", "created_at"),
        Index("ix_tenancy_invite_organization_id_created_at", "organization_id", "created_at"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    team_id: Mapped[int | None] = mapped_column(ForeignKey(Team.id, ondelete=CASCADE))
    organization_id: Mapped[int | None] = mapped_column(ForeignKey(Organization.id, ondelete=CASCADE))
    email: Mapped[str] = mapped_column(String(320))
    email_key: Mapped[str] = mapped_column(String(320))
    role: Mapped[str] = mapped_column(String(16))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    status: Mapped[str] = mapped_column(String(16), default="pending")
    max_uses: Mapped[int] = mapped_column(Integer, default=1)
    use_count: Mapped[int] = mapped_column(Integer, default=0)
    invited_by: Mapped[int | None] = mapped_column(Integer)
    email_sent: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class InviteUse(Base):
    """An account that can't use an invite again: it redeemed it, or was removed after it was sent."""

    __tablename__ = "tenancy_invite_use"

    invite_id: Mapped[int] = mapped_column(ForeignKey(Invite.id, ondelete=CASCADE), primary_key=True)
    user_id: Mapped[int] = mapped_column(Integer, primary_key=True)


class PermissionGroup(Base):
    """Permission keys under one name, defined in an organization, usable there and below; may be nested."""

    __tablename__ = "tenancy_permission_group"
    __table_args__ = (
        UniqueConstraint(
            "organization_id", "name_key", name="uq_tenancy_permission_group_organization_id_name_key"
        ),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey(Organization.id, ondelete=CASCADE))
    name: Mapped[str] = mapped_column(String(100))
    name_key: Mapped[str] = mapped_column(String(100))
    description: Mapped[str] = mapped_column(Text, default="")
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class GroupPermission(Base):
    """A key of a permission group."""

    __tablename__ = "tenancy_group_permission"

    group_id: Mapped[int] = mapped_column(ForeignKey(PermissionGroup.id, ondelete=CASCADE), primary_key=True)
    permission_key: Mapped[str] = mapped_column(String(128), primary_key=True)


class GroupChild(Base):
    """A permission group within another."""

    __tablename__ = "tenancy_group_child"

    group_id: Mapped[int] = mapped_column(ForeignKey(PermissionGroup.id, ondelete=CASCADE), primary_key=True)
    child_group_id: Mapped[int] = mapped_column(
        ForeignKey(PermissionGroup.id, ondelete=CASCADE), primary_key=True, index=True
    )


class Role(Base):
    """A named set of permissions. The three built-in ones belong to no organization and can't be changed."""

    __tablename__ = "tenancy_role"
    __table_args__ = (
        UniqueConstraint("organization_id", "name_key", name="uq_tenancy_role_organization_id_name_key"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    organization_id: Mapped[int | None] = mapped_column(ForeignKey(Organization.id, ondelete=CASCADE))
    name: Mapped[str] = mapped_column(String(100))
    name_key: Mapped[str] = mapped_column(String(100))
    description: Mapped[str] = mapped_column(Text, default="")
    is_builtin: Mapped[bool] = mapped_column(Boolean, default=False)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class RolePermission(Base):
    """A key of a role."""

    __tablename__ = "tenancy_role_permission"

    role_id: Mapped[int] = mapped_column(ForeignKey(Role.id, ondelete=CASCADE), primary_key=True)
    permission_key: Mapped[str] = mapped_column(String(128), primary_key=True)


class RoleGroup(Base):
    """A permission group of a role."""

    __tablename__ = "tenancy_role_group"

    role_id: Mapped[int] = mapped_column(ForeignKey(Role.id, ondelete=CASCADE), primary_key=True)
    group_id: Mapped[int] = mapped_column(
        ForeignKey(PermissionGroup.id, ondelete=CASCADE), primary_key=True, index=True
    )


class RoleAssignment(Base):
    """A role that a member of an organization has there and in those below it, optionally with an expiry."""

    __tablename__ = "tenancy_role_assignment"

    organization_id: Mapped[int] = mapped_column(
        ForeignKey(Organization.id, ondelete=CASCADE), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(Integer, primary_key=True, index=True)
    role_id: Mapped[int] = mapped_column(ForeignKey(Role.id, ondelete=CASCADE), primary_key=True, index=True)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    assigned_by: Mapped[int | None] = mapped_column(Integer)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
