"""A service in this process, reached by the paths of its own root, as a proxy reaches one on another machine.

The gateway binds a service's declared routes to their public paths. Anything else at its root (aliases,
`/health`, its API documentation) is served here, so that a prefix covers the same in both cases.
"""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from yarl import URL

from kernel.gateway.services import Mount
from kernel.http.application import Application
from kernel.http.context import Context


class LocalService:
    """The service's own application, made at the first request."""

    def __init__(self, make: Callable[[], Application]) -> None:
        self._make = make
        self._app: Application | None = None

    async def serve(self, mount: Mount, ctx: Context) -> web.StreamResponse:
        """Answer as the service does at the path that the public path maps to."""
        mount.require_token_for_writes(ctx)
        if self._app is None:
            self._app = self._make()
        path = URL(mount.target_of(ctx.request.rel_url), encoded=True)
        target, match = await self._app.router.resolve(ctx.request.clone(rel_url=path))
        ctx.match, ctx.error_format = match, target.error_format
        if target.serve is None:
            raise match.http_exception or web.HTTPNotFound()
        ctx.endpoint = mount.prefix + target.label.removeprefix(mount.root)
        return await target.serve(ctx)
