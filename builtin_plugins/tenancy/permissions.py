"""Permission keys of tenancy: each is held within one organization or one team."""

from __future__ import annotations

from kernel.sdk import Permission

ORG_LIST = Permission("org.list", "See all organizations of the instance; Platform Admins can, too.")
ORG_VIEW = Permission(
    "org.view",
    "See an organization and its members.",
    granted_to="nobody",
    scope="organization",
    org_roles=("owner", "admin", "member"),
)
MEMBERS_MANAGE = Permission(
    "org.members.manage",
    "Invite, add, suspend and remove members; reset and deactivate their accounts.",
    granted_to="nobody",
    scope="organization",
    org_roles=("owner", "admin"),
)
ROLES_MANAGE = Permission(
    "org.roles.manage",
    "Define and assign roles and permission groups; act on administrators of the organization.",
    granted_to="nobody",
    scope="organization",
)
BILLING_MANAGE = Permission(
    "org.billing.manage",
    "Manage licenses and billing of the organization.",
    granted_to="nobody",
    scope="organization",
)
SETTINGS_MANAGE = Permission(
    "org.settings.manage",
    "Rename the organization, create sub-organizations, export and import it.",
    granted_to="nobody",
    scope="organization",
    org_roles=("owner", "admin"),
)
AUDIT_READ = Permission(
    "org.audit.read",
    "Read the audit log of the organization and of those below it.",
    granted_to="nobody",
    scope="organization",
    org_roles=("owner", "admin"),
)
TEAM_MANAGE = Permission(
    "team.manage",
    "Change a team, its members and its invites; export and import it.",
    granted_to="nobody",
    scope="team",
)

PERMISSIONS = (
    ORG_LIST,
    ORG_VIEW,
    MEMBERS_MANAGE,
    ROLES_MANAGE,
    BILLING_MANAGE,
    SETTINGS_MANAGE,
    AUDIT_READ,
    TEAM_MANAGE,
)
