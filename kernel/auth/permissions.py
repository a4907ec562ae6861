"""Permission keys, and what may be said about an access (spec 2.6, 5.7)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal


class Decision(Enum):
    """An answer to `decide_access`."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True)
class Permission:
    """A key such as ``rag.kb.create``, with the sentence that explains it to an administrator.

    A key of the scope ``instance`` is held or not held for the whole platform: `granted_to` says by whom,
    every signed-in account (``user``), instance administrators (``admin``), or nobody. A key of the scope
    ``organization`` or ``team`` is held within one of them, which a route names by
    ``permission(key, within=<path parameter>)``; a plugin that knows memberships decides it. `org_roles` are
    the built-in roles that hold an organization's key; custom roles may hold it too.
    """

    key: str
    description: str
    granted_to: Literal["user", "admin", "nobody"] = "admin"
    scope: Literal["instance", "organization", "team"] = "instance"
    org_roles: tuple[Literal["owner", "admin", "member"], ...] = ("owner",)
