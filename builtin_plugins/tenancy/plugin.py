"""Tenancy: organizations, teams, invites, roles and permissions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from builtin_plugins.tenancy.models import Base
from builtin_plugins.tenancy.permissions import PERMISSIONS
from kernel.sdk import Permission, Plugin, Tables, hookimpl


class TenancyPlugin(Plugin):
    """Who belongs together, and who may do what there."""

    name = "tenancy"
    version = "0.1.0"
    description = "Organizations, teams, invites, roles and permissions"
    author = "Platform"

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_permissions(self) -> Sequence[Permission]:
        return PERMISSIONS
