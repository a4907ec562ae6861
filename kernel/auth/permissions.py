"""Permission keys, and decisions on access (spec 2.6, 5.7)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal


class Decision(Enum):
    """A plugin's answer to `decide_access`."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True)
class Permission:
    """A key such as ``shelf.book.create``, with a sentence that explains it to administrators.

    A key with the scope ``instance`` applies to the whole platform; `granted_to` says who has it: every
    signed-in account (``user``), instance administrators (``admin``), or nobody. A key with the scope
    ``organization`` or ``team`` applies within one of them; a route names it with ``permission(key,
    within=<path parameter>)``, and a plugin that knows the memberships decides. `org_roles` are the built-in
    roles that include an organization's key; custom roles may include it too.
    """

    key: str
    description: str
    granted_to: Literal["user", "admin", "nobody"] = "admin"
    scope: Literal["instance", "organization", "team"] = "instance"
    org_roles: tuple[Literal["owner", "admin", "member"], ...] = ("owner",)
