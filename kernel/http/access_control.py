"""Who sends a request, and whether they may use its route.

The hook `identify_actor` names the sender; `decide_access` decides, and one veto is enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from aiohttp import hdrs, web

from kernel.auth.identity import Identity
from kernel.auth.permissions import Decision
from kernel.auth.principals import ANONYMOUS, Principal, TokenScope
from kernel.errors import BadRequest, Forbidden, PlatformError, PluginTooSlow, Unauthorized, UnknownCredential
from kernel.hooks import hookspecs
from kernel.hooks.calling import Hooks
from kernel.http.context import Context
from kernel.http.routes import Access, Route
from kernel.http.wire import TOO_LATE
from kernel.platform import Platform
from kernel.plugins.resource_keys import ResourceKey


class AccessControl:
    """Finds the verified sender of each request, and enforces the access that its route declares."""

    def __init__(self, hooks: Hooks, identity: Identity) -> None:
        self._hooks = hooks
        self._identity = identity

    async def identify(
        self,
        platform: Platform,
        request: web.Request,
        *,
        judge: bool = True,
        attempts: AbstractAsyncContextManager[None] | None = None,
    ) -> Principal:
        """The verified sender.

        A credential that isn't remembered is compared within `attempts`.

        Raises BadRequest (two headers), Unauthorized (a bad credential), or PluginTooSlow (a plugin that
        may know the credential).

        Without `judge`, the sender stays anonymous: the handler checks the credential itself.
        """
        sent = request.headers.getall(hdrs.AUTHORIZATION, ())
        if len(sent) > 1:
            raise BadRequest("Send one Authorization header, not two")
        if not judge:
            return ANONYMOUS
        authorization = sent[0] if sent else None
        if authorization is not None:
            principal = self._identity.recall(authorization) or self._hooks.ask_now(
                hookspecs.recall_actor, platform=platform, authorization=authorization
            )
            if principal is not None:
                return principal
        async with attempts or nullcontext():
            try:
                principal = await self._hooks.ask(
                    hookspecs.identify_actor, platform=platform, request=request, authorization=authorization
                )
            except UnknownCredential as error:
                raise unidentified(request, error) from None
            if principal is None:
                raise unidentified(request, Unauthorized("The Authorization header must be 'Bearer <token>'"))
            return principal

    async def check(self, ctx: Context, route: Route, params: Mapping[str, int | str]) -> None:
        """Raise Unauthorized or Forbidden unless the caller may use the route with these parameters."""
        needs_scope = route.access.kind != "public" or route.access.better_with_token
        if needs_scope and not ctx.principal.allows(*route.token_scopes):
            raise ScopeMissing(route.token_scopes)
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


def unidentified(request: web.Request, error: Unauthorized) -> PlatformError:
    """The error for an unknown sender; PluginTooSlow if a plugin that was too late might know it."""
    late = request.get(TOO_LATE)
    return error if late is None else PluginTooSlow(late, hookspecs.identify_actor.name)


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


async def require_access(ctx: Context, access: Access) -> None:
    """Raise Unauthorized or Forbidden unless the caller has `access`, which refers to no path parameter.

    For access that only the handler knows, such as that of an action named in the path.
    """
    await ctx.resource(ACCESS_CONTROL).require(ctx, access, {})
