"""A tool: something callable, with what a client or a model must know about it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from kernel.sdk import AUTHENTICATED
from kernel.sdk.accounts import TokenScope
from kernel.sdk.http import Access
from kernel.sdk.operations import Tier

if TYPE_CHECKING:
    from kernel.sdk import Context

Run = Callable[["Context", Mapping[str, Any]], Awaitable[Any]]

LONGEST_NAME = 64
_HASH = 8


@dataclass(frozen=True)
class Tool:
    """One tool.

    `name` is unique in a catalog: letters, digits, ``_`` and ``-``, at most 64 of them (OpenAI, Open
    WebUI). `parameters` is a JSON Schema of type object, without references. ``run(ctx, arguments)`` calls it
    for the sender of the request: it checks the arguments and raises BadRequest for invalid ones, or another
    PlatformError, whose text the caller sees; what it returns must be JSON or a pydantic model. Only
    `Tools.call` calls it, after checking `access`.

    A personal access token needs one of `token_scopes`. `plugin` offers it, `action` is its name there.
    `endpoint` and `method` are the route that does the same. `kind` distinguishes tools of different origin.
    `seconds` bounds one call, `per_minute` the calls of one caller. `extra` are further facts for the
    definition's `metadata`.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Run
    plugin: str
    action: str = field(default="", kw_only=True)
    kind: str = field(default="action", kw_only=True)
    access: Access = field(default=AUTHENTICATED, kw_only=True)
    token_scopes: tuple[TokenScope, ...] = field(default=("tools",), kw_only=True)
    tier: Tier = field(default="community", kw_only=True)
    endpoint: str = field(default="", kw_only=True)
    method: Literal["GET", "POST"] = field(default="POST", kw_only=True)
    read_only: bool = field(default=False, kw_only=True)
    destructive: bool = field(default=True, kw_only=True)
    idempotent: bool = field(default=False, kw_only=True)
    open_world: bool = field(default=True, kw_only=True)
    seconds: float = field(default=60, kw_only=True)
    per_minute: int | None = field(default=None, kw_only=True)
    extra: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def annotations(self) -> dict[str, bool]:
        """What a call does, in the words of the Model Context Protocol."""
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive and not self.read_only,
            "idempotentHint": self.idempotent or self.read_only,
            "openWorldHint": self.open_world,
        }


def tool_name(*parts: str) -> str:
    """The parts joined, as letters, digits and underscores, at most 64; a longer name ends in a hash."""
    name = re.sub(r"\W+", "_", "_".join(parts), flags=re.ASCII)
    return name if len(name) <= LONGEST_NAME else distinct_name(name, "/".join(parts))


def distinct_name(name: str, identity: str) -> str:
    """Another name for a tool whose plain one is taken: it ends in a hash of its identity."""
    digest = hashlib.sha256(identity.encode()).hexdigest()[:_HASH]
    return f"{name[: LONGEST_NAME - _HASH - 1]}_{digest}"
