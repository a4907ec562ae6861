"""The caller in one value: what a service needs to decide, to change and to audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernel.auth.principals import Principal

if TYPE_CHECKING:
    from kernel.platform import Platform


@dataclass(frozen=True, slots=True)
class Caller:
    """A principal that acts on a platform. For a request, use `Context.caller`.

    `origin` is what audit entries say about the caller (account, address, user agent). It is empty by
    default, as for an operator on the server itself.
    """

    platform: Platform
    principal: Principal
    origin: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> int | None:
        """The id of the account; None for a service or an anonymous caller."""
        return self.principal.id
