"""On whose behalf code runs: set when a request reaches its endpoint and when an attempt of a job begins.

For code that needs it wherever it is called from, such as limits on the use of a model. Code that decides on
access takes the caller as an argument instead.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from kernel.auth.principals import Principal


@dataclass(frozen=True, slots=True)
class Acting:
    """`part` is the service that serves the request, or the kind of the job.

    A job has no principal, only the `account_id` of its owner, if it has one.
    """

    part: str
    principal: Principal | None = None
    account_id: int | None = None

    @property
    def in_background(self) -> bool:
        """Whether nobody waits for the answer."""
        return self.principal is None


acting_var: ContextVar[Acting | None] = ContextVar("platform_acting", default=None)


def acting() -> Acting | None:
    """Whose request or job this is; None for the platform's own work."""
    return acting_var.get()
