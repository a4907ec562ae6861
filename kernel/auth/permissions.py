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

    `granted_to` says who has it where nobody assigns roles: every signed-in account (``user``), instance
    administrators (``admin``), or nobody.
    """

    key: str
    description: str
    granted_to: Literal["user", "admin", "nobody"] = "admin"
