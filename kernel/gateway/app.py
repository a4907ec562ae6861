"""Builds the applications of a platform: the gateway, and one for each service on its own port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial

from aiohttp import web
from yarl import URL

from kernel.errors import ANY_ERROR, StartupError, Unavailable
from kernel.gateway import handlers as gateway_handlers
from kernel.gateway.services import GATEWAY, REMOTE_SERVICES, Mount, Service
from kernel.hooks import hookspecs
from kernel.http.application import Application
from kernel.http.context import Context
from kernel.http.endpoint import Endpoint
from kernel.http.routes import Route
from kernel.platform import Platform
from kernel.plugins.collecting import OWN_ROUTES
from kernel.plugins.offers import OFFERS
from kernel.plugins.states import PLUGIN_STATES

PassOn = Callable[[Mount, Context], Awaitable[web.StreamResponse]]


def gateway_app(platform: Platform) -> Application:
    """The gateway: native routes, plugins' routes, services in process or forwarded (spec 4.5)."""
    app = Application(platform, is_gateway=True)
    _add(app, _gateway_endpoints(platform))
    documented = list(app.endpoints)
    _add_pages(app, platform, documented, "Platform")
    for service in platform.resource(OFFERS).all_services.values():
        _add_mounts(app, service, _passing_on(platform, service))
    _set_up(app, platform)
    return app


def service_app(platform: Platform, service: Service) -> Application:
    """One service at its own root, as on a dev port or on another machine."""
    app = Application(platform, is_gateway=False)
    _add(app, _service_endpoints(platform, service))
    documented = list(app.endpoints)
    operations = gateway_handlers.service_routes(service).routes
    _add(app, (Endpoint(platform, route, route.path, service=service.name) for route in operations))
    _add_pages(app, platform, documented, service.title or service.name)
    _set_up(app, platform)
    return app


def _set_up(app: Application, platform: Platform) -> None:
    """Let plugins add aiohttp's middlewares and signals; one that fails goes out of service."""
    for plugin, setup in list(platform.resource(OFFERS).app_setups):
        routes = len(app.web.router.routes())
        try:
            setup(app.web)
        except ANY_ERROR as error:  # boundary: another author's code
            why = f"its function for register_app_setups raised {type(error).__name__}: {error}"
            platform.resource(PLUGIN_STATES).fail(plugin, why)
            continue
        if len(app.web.router.routes()) != routes:
            why = "it adds routes to aiohttp's application; declare them in register_routes"
            raise StartupError(f"plugin {plugin}: {why}")


def _gateway_endpoints(platform: Platform) -> Iterator[Endpoint]:
    for table in OWN_ROUTES:
        yield from (Endpoint(platform, route, route.path, service=GATEWAY) for route in table.routes)
    services, remote = platform.resource(OFFERS).all_services, platform.resources.find(REMOTE_SERVICES)
    for plugin, table in list(platform.resource(OFFERS).route_tables):
        if table.service is None and platform.resource(PLUGIN_STATES).records[plugin].essential:
            yield from (Endpoint(platform, route, route.path, service=GATEWAY) for route in table.routes)
        elif table.service is None:
            for route in table.routes:
                yield Endpoint(platform, route, route.path, service=plugin, plugin=plugin)
        elif table.service not in services:
            states = platform.resource(PLUGIN_STATES)
            tell = states.note if table.optional else states.fail
            tell(plugin, f"it has routes for '{table.service}', a service that no plugin declares")
    for service in services.values():
        if remote is None or service.name not in remote.names:
            yield from _mounted(platform, service)


def _mounted(platform: Platform, service: Service) -> Iterator[Endpoint]:
    for plugin, route in _routes(platform, service.name):
        for mount in sorted(service.prefixes, key=lambda mount: -len(mount.root)):
            path = mount.public_path(route.path)
            if path is not None and route.method in mount.methods:
                yield Endpoint(platform, route, path, service=service.name, plugin=plugin, gated=mount.gated)
                break


def _service_endpoints(platform: Platform, service: Service) -> Iterator[Endpoint]:
    for plugin, route in _routes(platform, service.name):
        for prefix in ("", *service.aliases):
            if not prefix or not route.path.startswith(prefix + "/"):
                path = prefix + route.path
                yield Endpoint(platform, route, path, service=service.name, plugin=plugin, gated=True)


def _routes(platform: Platform, service: str) -> Iterator[tuple[str, Route]]:
    """The (plugin, route) pairs of a service: its own plugin's, then those that other plugins add to it."""
    offers = platform.resource(OFFERS)
    if service in offers.services:
        plugin, offered = offers.services[service]
        yield from ((plugin, route) for table in offered.tables for route in table.routes)
    for plugin, table in list(offers.route_tables):
        if table.service == service:
            yield from ((plugin, route) for route in table.routes)


def _add(app: Application, endpoints: Iterable[Endpoint]) -> None:
    for endpoint in endpoints:
        app.add_endpoint(endpoint)


def _add_pages(app: Application, platform: Platform, endpoints: list[Endpoint], title: str) -> None:
    for _plugin, pages in platform.hooks.ask_now(hookspecs.offer_pages, endpoints=endpoints, title=title):
        for path, serve in pages.items():
            app.router.add("GET", path, serve)


def _add_mounts(app: Application, service: Service, pass_on: PassOn) -> None:
    """Pass requests under the service's mounts that match no route of their own on to the service."""
    for mount in service.prefixes:
        serve = partial(pass_on, mount)
        for method in mount.methods:
            for path in (mount.prefix, mount.prefix + "/{path:.*}"):
                app.router.add(method, path, serve, error_format=mount.error_format)


def _passing_on(platform: Platform, service: Service) -> PassOn:
    """How to reach a service: on another machine, in this process, or (503) nowhere."""
    remote = platform.resources.find(REMOTE_SERVICES)
    if remote is not None and service.name in remote.names:
        return lambda mount, ctx: remote.forward(ctx, service, mount)
    offered = platform.resource(OFFERS).services.get(service.name)
    if offered is not None:
        return _LocalService(partial(service_app, platform, offered[1])).serve
    return partial(_absent, service)


async def _absent(service: Service, mount: Mount, ctx: Context) -> web.StreamResponse:
    mount.require_token_for_writes(ctx)
    raise Unavailable(f"{service.name} is unreachable: no plugin offers it here; see GET /v1/status")


class _LocalService:
    """A service in this process, reached by the paths of its own root, as a proxy reaches one elsewhere.

    The gateway binds a service's declared routes to their public paths. Anything else at its root (aliases,
    `/health`, its API documentation) is served by the service's own application, which is made at the first
    request, so that a prefix covers the same in both cases.
    """

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
