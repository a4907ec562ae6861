"""Actions: what a plugin can do for people, programs and models, declared once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from kernel.auth.permissions import Permission
from kernel.http.routes import Access

if TYPE_CHECKING:
    from kernel.http.context import Context

Tier = Literal["free", "community", "pro", "enterprise"]


@dataclass(frozen=True)
class Action:
    """An action of a plugin (wire-facts 6.5, 6.6).

    `parameters` is validated before `handler(ctx, parameters)` is called; what it returns must be JSON or a
    pydantic model. A handler refuses a call with BadRequest or another PlatformError, whose text the caller
    sees; any other error is a plain 500. `owner` names the plugin that clients see, if that is not the
    declaring plugin. `tool` is its name among all tools; ``<plugin>_<name>`` if not given.

    `access` says who may call it: `AUTHENTICATED`, `permission(KEY)` with a key of the instance, another
    route access, or `PUBLIC`, which requires `read_only`. ``POST /v1/plugins/{plugin}/actions/{name}`` runs
    any action and always needs a token; ``GET`` runs those that are `read_only`, without a token if they are
    public.

    The other four tell people and models what a call does; they don't affect access. `read_only`: it changes
    nothing. `destructive`: it may overwrite or delete something; None means yes, unless it is read-only.
    `idempotent`: a second call with the same arguments changes nothing more. `open_world`: it reaches beyond
    the platform's own data.
    """

    name: str
    description: str
    parameters: type[BaseModel]
    handler: Callable[[Context, Any], Awaitable[Any]]
    access: Access = field(kw_only=True)
    read_only: bool = field(default=False, kw_only=True)
    destructive: bool | None = field(default=None, kw_only=True)
    idempotent: bool = field(default=False, kw_only=True)
    open_world: bool = field(default=True, kw_only=True)
    tier: Tier = field(default="community", kw_only=True)
    owner: str | None = field(default=None, kw_only=True)
    tool: str | None = field(default=None, kw_only=True)

    @property
    def annotations(self) -> dict[str, bool]:
        """What a call does, in the words of the Model Context Protocol."""
        destructive = not self.read_only if self.destructive is None else self.destructive
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": destructive,
            "idempotentHint": self.idempotent or self.read_only,
            "openWorldHint": self.open_world,
        }

    def problem(self, permissions: Mapping[str, Permission]) -> str | None:
        """What is wrong with the declaration, to complete a sentence that begins with the action."""
        if not isinstance(self.access, Access):
            return "does not say who may use it; write access=AUTHENTICATED, permission(KEY) or PUBLIC"
        if self.access.kind == "public" and not self.read_only:
            return "is public but not read-only; only what changes nothing may be called without a token"
        if self.read_only and self.destructive:
            return "is declared read-only and destructive; choose one"
        return self._permission_problem(permissions)

    def _permission_problem(self, permissions: Mapping[str, Permission]) -> str | None:
        key = self.access.permission
        if key is None:
            return None
        if key not in permissions:
            return f"needs '{key}', which no plugin declares; add it to register_permissions"
        if permissions[key].scope != "instance" or self.access.or_self:
            return f"needs '{key}' within one organization, team or account, which its path does not name"
        return None
