"""A payment provider on a real socket, and the plugin that an operator would install for it.

The provider signs its notices as Standard Webhooks says, and sends one twice or late when told to.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from builtin_plugins.licensing import api as licensing
from kernel.sdk import OUTGOING, BadRequest, Platform, Plugin, Unauthorized, hookimpl

SECRET = b"a secret that provider and plugin share"


@dataclass
class Provider:
    """What the provider knows: the orders that it was told of, by their ids."""

    url: str = ""
    orders: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def send(
        self,
        target: str,
        order_id: str,
        state: str,
        *,
        event: str,
        secret: bytes = SECRET,
        provider: str = "tillwise",
    ) -> tuple[int, Any]:
        """Send a notice of an order; returns what the platform answered."""
        body = json.dumps({"order": order_id, "state": state}).encode()
        stamp = str(int(time.time()))
        headers = {
            "webhook-id": event,
            "webhook-timestamp": stamp,
            "webhook-signature": sign(secret, event, stamp, body),
        }
        address = f"{target}/v1/marketplace/checkout/{provider}/notices"
        async with (
            aiohttp.ClientSession() as session,
            session.post(address, data=body, headers=headers) as answer,
        ):
            return answer.status, await answer.json()


def sign(secret: bytes, event: str, stamp: str, body: bytes) -> str:
    """The signature of Standard Webhooks 1.0.0."""
    made = hmac.new(secret, f"{event}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(made).decode()}"


@asynccontextmanager
async def checkout_provider() -> AsyncIterator[Provider]:
    """Serve on a free port of this machine."""
    provider = Provider()

    async def open_session(request: web.Request) -> web.Response:
        order = await request.json()
        provider.orders[order["id"]] = order
        return web.json_response({"url": f"{provider.url}/pay/{order['id']}"}, status=201)

    app = web.Application()
    app.router.add_post("/sessions", open_session)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    provider.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield provider
    finally:
        await runner.cleanup()


def provider_plugin(url: str, called: str = "tillwise") -> Plugin:
    """The plugin of the provider at `url`; with an empty address it is not configured."""

    class Tillwise(Plugin):
        """Sells through Tillwise."""

        name = called
        version = "1.0"

        @hookimpl
        async def start_checkout(
            self, platform: Platform, order: licensing.CheckoutOrder
        ) -> licensing.CheckoutPage | None:
            if not url:
                return None
            told = {"id": order.id, "product": f"{order.plugin_name} {order.tier}"}
            async with platform.resource(OUTGOING).client(called, named=[url]) as client:
                reply = await client.call("POST", f"{url}/sessions", json=told)
                async with reply:
                    url_to_pay = str(json.loads(await reply.read())["url"])
                    return licensing.CheckoutPage(called, url_to_pay)

        @hookimpl
        def read_checkout_notice(
            self, provider: str, headers: Mapping[str, str], body: bytes
        ) -> licensing.CheckoutNotice | None:
            if provider != called:
                return None
            event, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
            if not hmac.compare_digest(
                sign(SECRET, event, stamp, body), headers.get("webhook-signature", "")
            ):
                raise Unauthorized("The signature of the notice is wrong")
            try:
                told = json.loads(body)
            except ValueError:
                raise BadRequest("The notice is not JSON") from None
            return licensing.CheckoutNotice(told["order"], event, told["state"])

    return Tillwise()
