"""Identifies the sender of a request: by the hook `identify_actor`, or a remembered answer of it."""

from __future__ import annotations

from aiohttp import hdrs, web

from kernel import hookspecs
from kernel.auth.identity import Identity
from kernel.auth.principals import ANONYMOUS, Principal
from kernel.errors import BadRequest, PlatformError, PluginTooSlow, Unauthorized, UnknownCredential
from kernel.hooks import Hooks
from kernel.http.wire import TOO_LATE
from kernel.platform import Platform
from kernel.resource_keys import ResourceKey


class Identification:
    """Finds the verified sender of each request."""

    def __init__(self, hooks: Hooks, identity: Identity) -> None:
        self._hooks = hooks
        self._identity = identity

    async def identify(self, platform: Platform, request: web.Request, *, judge: bool = True) -> Principal:
        """The verified sender.

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
            known = self._identity.recall(authorization)
            if known is not None:
                return known
        try:
            principal = await self._hooks.ask(
                hookspecs.identify_actor, platform=platform, request=request, authorization=authorization
            )
        except UnknownCredential as error:
            raise unidentified(request, error) from None
        if principal is None:
            raise unidentified(request, Unauthorized("The Authorization header must be 'Bearer <token>'"))
        return principal


def unidentified(request: web.Request, error: Unauthorized) -> PlatformError:
    """The error for an unknown sender; PluginTooSlow if a plugin that was too late might know it."""
    late = request.get(TOO_LATE)
    return error if late is None else PluginTooSlow(late, hookspecs.identify_actor.name)


IDENTIFICATION: ResourceKey[Identification] = ResourceKey("identification")
