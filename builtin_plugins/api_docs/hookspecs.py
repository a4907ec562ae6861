"""What the page at the gateway's root asks of plugins."""

from __future__ import annotations

from aiohttp import web

from kernel.sdk import PROMPTLY, Context, hookspec


@hookspec.first(failing="skip", seconds=PROMPTLY)
def find_start_page(ctx: Context) -> web.StreamResponse | None:
    """What a browser gets at the gateway's `/`. Without an answer, a plain page with links to the API's
    documents. Programs get JSON, in which `client` is where a redirect would lead.
    """


@hookspec.first(failing="skip", seconds=PROMPTLY)
def find_client_address(ctx: Context) -> str | None:
    """The address of a web client, as the requesting browser reaches it.

    The gateway's `/` links to it if no start page redirects and `PLATFORM_CLIENT_BASE_URL` is not set.
    """
