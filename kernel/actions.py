"""Actions: one declaration per thing a plugin can do for a person, a program or a model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

if TYPE_CHECKING:
    from kernel.http.context import Context

Tier = Literal["free", "community", "pro", "enterprise"]


@dataclass(frozen=True)
class Action:
    """An action of a plugin (wire-facts 6.5, 6.6).

    `parameters` is validated before `handler(ctx, parameters)` is called; what it returns must be JSON or a
    pydantic model. `read_only` actions answer ``GET /v1/plugins/{plugin}/actions/{name}`` without a token.
    `owner` names the plugin as clients see it, where it is not the declaring plugin (a manifest).
    """

    name: str
    description: str
    parameters: type[BaseModel]
    handler: Callable[[Context, Any], Awaitable[Any]]
    read_only: bool = False
    tier: Tier = "community"
    owner: str | None = None
