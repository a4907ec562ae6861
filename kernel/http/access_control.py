"""Whether a caller may use a route: the hook `decide_access` decides; one veto is enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernel import hookspecs
from kernel.auth.identity import Identity
from kernel.auth.permissions import Decision
from kernel.auth.principals import TokenScope
from kernel.errors import Forbidden, Unauthorized
from kernel.hooks import Hooks
from kernel.http.context import Context
from kernel.http.identification import unidentified
from kernel.http.routes import Access, Route
from kernel.resource_keys import ResourceKey


class ScopeMissing(Forbidden):
    """A personal access token lacks the required scope; the account itself may have access."""

    code = "token_scope_missing"

    def __init__(self, needed: Sequence[TokenScope]) -> None:
        names = " or ".join(f"'{name}'" for name in needed)
        super().__init__(
            f"This needs a personal access token with the scope {names}"
            if needed
            else "A personal access token can't do this; sign in"
        )


class AccessControl:
    """Enforces the access that each route declares."""

    def __init__(self, hooks: Hooks, identity: Identity) -> None:
        self._hooks = hooks
        self._identity = identity

    async def check(self, ctx: Context, route: Route, params: Mapping[str, int | str]) -> None:
        """Raise Unauthorized or Forbidden unless the caller may use the route with these parameters."""
        if ctx.principal.scopes is not None and (
            route.access.kind != "public" or route.access.better_with_token
        ):
            require_token_scope(ctx, *route.token_scopes)
        if route.access.kind != "public" or len(self._hooks.implementations(hookspecs.decide_access)) > 1:
            await self.require(ctx, route.access, params)

    async def require(self, ctx: Context, access: Access, params: Mapping[str, int | str]) -> None:
        """Raise Unauthorized, PluginTooSlow or Forbidden unless the caller has `access`."""
        decisions = await self._decisions(ctx, access, params)
        if Decision.DENY not in decisions and Decision.ALLOW in decisions:
            return
        if ctx.principal.kind == "anonymous":
            raise unidentified(ctx.request, Unauthorized())
        raise Forbidden(f"This needs: {access.description or access}")

    async def _decisions(
        self, ctx: Context, access: Access, params: Mapping[str, int | str]
    ) -> Sequence[Decision | None]:
        """The answers of all implementations; the kernel's alone is asked without going through the hooks."""
        judges = self._hooks.implementations(hookspecs.decide_access)
        if access.kind != "platform_admin" and len(judges) == 1:
            return (self._identity.decide(ctx.principal, access, params),)
        return await self._hooks.ask(
            hookspecs.decide_access, ctx=ctx, principal=ctx.principal, access=access, params=params
        )


ACCESS_CONTROL: ResourceKey[AccessControl] = ResourceKey("access_control")


def require_token_scope(ctx: Context, *scopes: TokenScope) -> None:
    """Raise ScopeMissing if the caller's personal access token has none of these scopes.

    For what only the handler knows, such as whether a chat runs tools; a session has every scope.
    """
    if not ctx.principal.allows(*scopes):
        raise ScopeMissing(scopes)


async def require_access(ctx: Context, access: Access) -> None:
    """Raise Unauthorized or Forbidden unless the caller has `access`, which refers to no path parameter.

    For access that only the handler knows, such as that of an action named in the path.
    """
    await ctx.resource(ACCESS_CONTROL).require(ctx, access, {})
