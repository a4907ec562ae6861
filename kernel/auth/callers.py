"""Who acts, in one value: what a service needs to decide, to change and to audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernel.auth.principals import Principal

if TYPE_CHECKING:
    from kernel.platform import Platform


@dataclass(frozen=True, slots=True)
class Caller:
    """A principal that acts on a platform. `Context.caller` makes it for a request.

    `origin` is what an audit entry says of the actor (account, address, user agent); the default is empty, as
    for an operator on the server itself.
    """

    platform: Platform
    principal: Principal
    origin: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> int | None:
        """The account's id; None for a service and for an anonymous caller."""
        return self.principal.id
