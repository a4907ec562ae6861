"""The sender of a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["anonymous", "user", "service"]
TokenScope = Literal["ask", "tools", "manage"]


@dataclass(frozen=True, slots=True)
class Principal:
    """A verified caller. `id` is the account id of a user; a service has a name and no id.

    `claims` come from the token; `role` and `platform_admin` come from the account itself. `scopes` are set
    for a personal access token, which can do less than its account, and `credential` names that token.
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
        """Whether this is a signed-in account."""
        return self.kind == "user"

    @property
    def is_service(self) -> bool:
        """Whether this is another part of the platform, with a service token."""
        return self.kind == "service"

    @property
    def is_admin(self) -> bool:
        """Whether this is an instance administrator (spec 5.7)."""
        return self.kind == "user" and self.role == "admin"

    def allows(self, *scopes: TokenScope) -> bool:
        """Whether the credential covers at least one of these scopes. A session covers all of them.

        ``manage`` includes ``ask``: whoever can change something can also read it.
        """
        grant = self.scopes
        return grant is None or not grant.isdisjoint(scopes) or ("ask" in scopes and "manage" in grant)


ANONYMOUS = Principal("anonymous", "")
