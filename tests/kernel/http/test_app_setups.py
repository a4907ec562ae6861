"""aiohttp's own application in the hands of plugins: middlewares and signals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from kernel.errors import StartupError
from kernel.sdk import Plugin, hookimpl
from kernel.sdk.http import CONTEXT
from kernel.testing import Start
from tests.fakes.echo import EchoPlugin

Setup = Callable[[web.Application], None]


def plugin_with(*setups: Setup) -> Plugin:
    class Setting(Plugin):
        name = "setting"

        @hookimpl
        def register_app_setups(self) -> Sequence[Setup]:
            return setups

    return Setting()


@web.middleware
async def name_sender(request: web.Request, handler: Handler) -> web.StreamResponse:
    response = await handler(request)
    response.headers["X-Sender"] = request[CONTEXT].principal.kind
    return response


async def stamp(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers["X-Stamp"] = "seen"


async def test_a_middleware_and_a_signal(start_platform: Start) -> None:
    """A middleware knows the sender; a signal sees every response, refusals too."""
    running = await start_platform(
        EchoPlugin,
        plugin_with(
            lambda app: app.middlewares.append(name_sender), lambda app: app.on_response_prepare.append(stamp)
        ),
    )
    answer = await running.anonymous.get("/v1/echo/open")
    assert (answer.status, answer.headers["X-Sender"], answer.headers["X-Stamp"]) == (
        200,
        "anonymous",
        "seen",
    )
    refused = await running.anonymous.get("/v1/nowhere")
    assert (refused.status, refused.headers["X-Stamp"]) == (404, "seen")
    assert refused.json()["code"] == "not_found"


async def test_one_that_fails(start_platform: Start) -> None:
    """Its plugin goes out of service with the reason; the others keep working."""

    def fail(_app: web.Application) -> None:
        raise ValueError("no")

    running = await start_platform(EchoPlugin, plugin_with(fail))
    [record] = [record for record in running.platform.plugins if record.name == "setting"]
    assert (record.status, "ValueError: no" in (record.reason or "")) == ("failed", True)
    assert (await running.anonymous.get("/v1/echo/open")).status == 200


async def test_routes_past_the_platform(start_platform: Start) -> None:
    """A route without an access rule is no way in: it stops the start and names the plugin."""

    async def answer(_request: web.Request) -> web.Response:
        return web.Response()

    with pytest.raises(StartupError, match="setting"):
        await start_platform(
            EchoPlugin, plugin_with(lambda app: app.router.add_get("/open", answer) and None)
        )
