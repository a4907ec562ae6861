"""Builds the applications of a platform: the gateway, and one for each service on its own port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial

from aiohttp import web

from kernel.collecting import OWN_ROUTES
from kernel.errors import Unavailable
from kernel.gateway import handlers as gateway_handlers
from kernel.gateway.local import LocalService, require_token_for_writes
from kernel.gateway.proxy import PROXY
from kernel.gateway.services import GATEWAY, SLOTS, Mount, Service, Slot, slot_of
from kernel.http.application import Application
from kernel.http.context import Context
from kernel.http.docs_routes import docs_routes
from kernel.http.endpoint import Endpoint
from kernel.http.routes import Route
from kernel.offers import OFFERS
from kernel.platform import Platform
from kernel.plugin_states import PLUGIN_STATES

PassOn = Callable[[Mount, Context], Awaitable[web.StreamResponse]]


def gateway_app(platform: Platform) -> Application:
    """The gateway: native routes, plugins' routes, services in process or forwarded (spec 4.5)."""
    app = Application(platform, is_gateway=True)
    _add(app, _gateway_endpoints(platform))
    documented = list(app.endpoints)
    _add_docs(app, platform, documented, "Platform")
    for slot in SLOTS:
        _add_mounts(app, slot, _passing_on(platform, slot))
    return app


def service_app(platform: Platform, service: Service) -> Application:
    """One service at its own root, as on a dev port or on another machine."""
    app = Application(platform, is_gateway=False)
    _add(app, _service_endpoints(platform, service))
    documented = list(app.endpoints)
    operations = gateway_handlers.service_routes(service).routes
    _add(app, (_endpoint(platform, route, route.path, service.name) for route in operations))
    _add_docs(app, platform, documented, service.title or service.name)
    return app


def _gateway_endpoints(platform: Platform) -> Iterator[Endpoint]:
    for table in OWN_ROUTES:
        yield from (_endpoint(platform, route, route.path, GATEWAY) for route in table.routes)
    for plugin, table in list(platform.resource(OFFERS).route_tables):
        if table.service is None:
            for route in table.routes:
                yield _endpoint(platform, route, route.path, plugin, plugin=plugin)
        elif slot_of(table.service) is None:
            why = f"it has routes for '{table.service}', which is not a service"
            platform.resource(PLUGIN_STATES).fail(plugin, why)
    for slot in SLOTS:
        if slot.name not in platform.settings.remote_services:
            yield from _mounted(platform, slot)


def _mounted(platform: Platform, slot: Slot) -> Iterator[Endpoint]:
    for plugin, route in _routes(platform, slot.name):
        for mount in sorted(slot.mounts, key=lambda mount: -len(mount.target)):
            path = mount.public_path(route.path)
            if path is not None and route.method in mount.methods:
                yield _endpoint(platform, route, path, slot.name, plugin=plugin, gated=mount.gated)
                break


def _service_endpoints(platform: Platform, service: Service) -> Iterator[Endpoint]:
    for plugin, route in _routes(platform, service.name):
        for prefix in ("", *service.aliases):
            if not prefix or not route.path.startswith(prefix + "/"):
                path = prefix + route.path
                yield _endpoint(platform, route, path, service.name, plugin=plugin, gated=True)


def _routes(platform: Platform, service: str) -> Iterator[tuple[str, Route]]:
    """The (plugin, route) pairs of a service: its own plugin's, then those that other plugins add to it."""
    offers = platform.resource(OFFERS)
    if service in offers.services:
        plugin, offered = offers.services[service]
        yield from ((plugin, route) for table in offered.tables for route in table.routes)
    for plugin, table in list(offers.route_tables):
        if table.service == service:
            yield from ((plugin, route) for route in table.routes)


def _endpoint(
    platform: Platform,
    route: Route,
    path: str,
    service: str,
    *,
    plugin: str | None = None,
    gated: bool = False,
) -> Endpoint:
    return Endpoint(platform, route, path, gated=gated, service=service, plugin=plugin)


def _add(app: Application, endpoints: Iterable[Endpoint]) -> None:
    for endpoint in endpoints:
        app.add_endpoint(endpoint)


def _add_docs(app: Application, platform: Platform, endpoints: list[Endpoint], title: str) -> None:
    for path, serve in docs_routes(platform, endpoints, title).items():
        app.add("GET", path, serve)


def _add_mounts(app: Application, slot: Slot, pass_on: PassOn) -> None:
    """Pass requests under the slot's mounts that match no route of their own on to the service."""
    for mount in slot.mounts:
        serve = partial(pass_on, mount)
        for method in mount.methods:
            for path in (mount.prefix, mount.prefix + "/{path:.*}"):
                app.add(method, path, serve, error_format=mount.error_format)


def _passing_on(platform: Platform, slot: Slot) -> PassOn:
    """How to reach a service: on another machine, in this process, or (503) nowhere."""
    base = platform.settings.remote_services.get(slot.name)
    if base is not None:
        proxy = platform.resource(PROXY)
        return lambda mount, ctx: proxy.forward(ctx, base, slot, mount)
    offered = platform.resource(OFFERS).services.get(slot.name)
    if offered is not None:
        return LocalService(partial(service_app, platform, offered[1])).serve
    return partial(_absent, slot)


async def _absent(slot: Slot, mount: Mount, ctx: Context) -> web.StreamResponse:
    require_token_for_writes(ctx, mount)
    raise Unavailable(f"{slot.name} is unreachable: no plugin offers it here; see GET /v1/status")
