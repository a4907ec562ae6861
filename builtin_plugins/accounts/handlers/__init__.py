"""Routes under `/v1/auth`, a module for each topic, and the list of permissions."""

from builtin_plugins.accounts.handlers import (
    accounts,
    audit,
    first_account,
    password_reset,
    permissions,
    platform_admin,
    users,
)

TABLES = (
    accounts.routes,
    first_account.routes,
    password_reset.routes,
    users.routes,
    platform_admin.routes,
    audit.routes,
    permissions.routes,
)
