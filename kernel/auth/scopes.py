"""What a caller may read, as told by the plugin that knows teams and organizations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kernel.auth.ownership import Scope
from kernel.auth.principals import Principal
from kernel.hooks import hookspecs

if TYPE_CHECKING:
    from kernel.platform import Platform


async def scope_of(platform: Platform, principal: Principal) -> Scope:
    """The caller's scope, from the hook `find_scope`. Without an answer: the caller's own rows and shared
    ones.

    The claims of a token grant nothing, because they may be out of date. Administrators and services see
    everything; an administrator's own teams still limit what can be shared with.
    """
    if principal.kind == "anonymous":
        return Scope(None, nothing=True)
    hooks, plugin_scope = platform.hooks, None
    if principal.is_user:
        plugin_scope = await hooks.ask(hookspecs.find_scope, platform=platform, principal=principal)
    scope = plugin_scope or Scope(principal.id)
    return replace(scope, everything=True) if principal.is_service or principal.is_admin else scope
