"""The caller as one value, with all that a service needs to decide, change and audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernel.auth.audit import Origin
from kernel.auth.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    from kernel.platform import Platform


@dataclass(frozen=True, slots=True)
class Caller:
    """A principal that acts on a platform. For a request, use `Context.caller`.

    `origin` is what audit entries say about the caller (account, address, user agent).
    """

    platform: Platform
    principal: Principal
    origin: Origin = field(default_factory=dict)

    @property
    def id(self) -> int | None:
        """The id of the account; None for a service or an anonymous caller."""
        return self.principal.id


def operator_of(platform: Platform, origin: Origin | None = None) -> Caller:
    """The operator on the server itself: nobody signed in, so this caller has no rights of its own."""
    return Caller(platform, ANONYMOUS, origin or {})
