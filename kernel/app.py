"""From a platform to the applications that listen: the gateway, and each service on a port of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aiohttp import web

from kernel.collecting import OWN_ROUTES
from kernel.errors import Unavailable
from kernel.gateway import handlers as gateway_handlers
from kernel.gateway.services import GATEWAY, SLOTS, Mount, Service, Slot, slot_of
from kernel.http import docs_routes
from kernel.http.context import Context
from kernel.http.endpoint import Endpoint
from kernel.http.pipeline import CONTEXT, Pipeline
from kernel.http.routes import Route
from kernel.platform import Platform

PLATFORM: web.AppKey[Platform] = web.AppKey("platform", Platform)
ENDPOINTS: web.AppKey[list[Endpoint]] = web.AppKey("endpoints", list)


def gateway_app(platform: Platform) -> web.Application:
    """The gateway: native routes, plugins' routes, services in process or forwarded (spec 4.5)."""
    app = _application(platform, is_gateway=True)
    endpoints = list(_gateway_endpoints(platform))
    _add(app, endpoints)
    for slot in SLOTS:
        if slot.name in platform.settings.remote_services or slot.name not in platform.services:
            _forward(app, platform, slot)
    docs_routes.add(app, platform, endpoints, title="Platform", service=GATEWAY)
    return app


def service_app(platform: Platform, service: Service) -> web.Application:
    """One service at its own root, as on a dev port or on another machine."""
    app = _application(platform, is_gateway=False)
    endpoints = list(_service_endpoints(platform, service))
    _add(app, endpoints)
    _add(
        app,
        [
            _endpoint(platform, r, r.path, service.name)
            for r in gateway_handlers.service_routes(service).routes
        ],
    )
    docs_routes.add(app, platform, endpoints, title=service.title or service.name, service=service.name)
    return app


def _application(platform: Platform, *, is_gateway: bool) -> web.Application:
    pipeline = Pipeline(platform, is_gateway=is_gateway)
    app = web.Application(middlewares=[pipeline.middleware], client_max_size=0)
    app[PLATFORM] = platform
    app.on_response_prepare.append(pipeline.on_prepare)
    return app


def _gateway_endpoints(platform: Platform) -> Iterator[Endpoint]:
    for table in OWN_ROUTES:
        yield from (_endpoint(platform, route, route.path, GATEWAY) for route in table.routes)
    for plugin, table in list(platform.route_tables):
        if table.service is None:
            for route in table.routes:
                yield _endpoint(platform, route, route.path, plugin, plugin=plugin)
        elif slot_of(table.service) is None:
            platform.fail_plugin(plugin, f"it has routes for '{table.service}', which is not a service")
    for slot in SLOTS:
        if slot.name not in platform.settings.remote_services:
            yield from _mounted(platform, slot)


def _mounted(platform: Platform, slot: Slot) -> Iterator[Endpoint]:
    for plugin, route in _routes(platform, slot.name):
        for mount in slot.mounts:
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
    """(plugin, route) of a service: its own plugin's, then those that other plugins contribute to it."""
    if service in platform.services:
        plugin, offered = platform.services[service]
        yield from ((plugin, route) for table in offered.tables for route in table.routes)
    for plugin, table in list(platform.route_tables):
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


def _add(app: web.Application, endpoints: list[Endpoint]) -> None:
    app.setdefault(ENDPOINTS, []).extend(endpoints) if ENDPOINTS not in app else app[ENDPOINTS].extend(
        endpoints
    )
    for endpoint in endpoints:
        serve = _serve(endpoint)
        app.router.add_route(endpoint.route.method, endpoint.template.aiohttp, serve)
        if endpoint.route.method == "GET":
            app.router.add_route("HEAD", endpoint.template.aiohttp, serve)


def _serve(endpoint: Endpoint) -> Any:
    async def serve(request: web.Request) -> web.StreamResponse:
        return await endpoint(request[CONTEXT])

    serve.endpoint = endpoint  # type: ignore[attr-defined]  # the identity step asks it
    return serve


def _forward(app: web.Application, platform: Platform, slot: Slot) -> None:
    """Catch everything under the slot's mounts and pass it to where the service lives."""
    base = platform.settings.remote_services.get(slot.name)
    for mount in slot.mounts:
        handler = _forwarder(platform, slot, mount, base)
        for method in (*mount.methods, *(["HEAD"] if "GET" in mount.methods else [])):
            app.router.add_route(method, mount.prefix, handler)
            app.router.add_route(method, mount.prefix + "/{path:.*}", handler)


def _forwarder(platform: Platform, slot: Slot, mount: Mount, base: str | None) -> Any:
    async def forward(request: web.Request) -> web.StreamResponse:
        ctx: Context = request[CONTEXT]
        if base is None:
            return _absent(ctx, slot, mount)
        return await platform.proxy.forward(ctx, base, slot, mount)

    return forward


def _absent(ctx: Context, slot: Slot, mount: Mount) -> web.StreamResponse:
    gateway_handlers.require_token_for_writes(ctx, mount)
    raise Unavailable(f"{slot.name} is unreachable: no plugin offers it here; see GET /v1/status")
