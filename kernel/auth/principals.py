"""Who sends a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["anonymous", "user", "service"]
TokenScope = Literal["ask", "tools", "manage"]


@dataclass(frozen=True, slots=True)
class Principal:
    """A verified caller. `id` is the account id of a user; a service has a name and no id.

    `claims` are those of the token; `role` and `platform_admin` come from the account itself. `scopes` are
    set for a personal access token, which opens less than its account does, and `credential` names it.
    """

    kind: Kind
    subject: str
    id: int | None = None
    username: str = ""
    role: str = ""
    platform_admin: bool = False
    claims: Mapping[str, Any] = field(default_factory=dict)
    scopes: frozenset[TokenScope] | None = None
    credential: str = ""

    @property
    def is_user(self) -> bool:
        """A signed-in account."""
        return self.kind == "user"

    @property
    def is_service(self) -> bool:
        """Another part of the platform, with a service token."""
        return self.kind == "service"

    @property
    def is_admin(self) -> bool:
        """An instance administrator (spec 5.7)."""
        return self.kind == "user" and self.role == "admin"

    def allows(self, *scopes: TokenScope) -> bool:
        """Whether the credential opens what one of these scopes opens; a session opens everything.

        ``manage`` includes ``ask``: who may change a thing may read it.
        """
        held = self.scopes
        return held is None or not held.isdisjoint(scopes) or ("ask" in scopes and "manage" in held)


ANONYMOUS = Principal("anonymous", "")
