"""Responses of the browser flow: uncached redirects, and cookies that last five minutes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from http.cookies import CookieError
from typing import Final
from urllib.parse import quote, urlencode

from aiohttp import web

from builtin_plugins.oidc.flow import LIFETIME, Flow
from kernel.sdk import Context, PlatformError
from kernel.sdk.storage import store_error

_STATE: Final = "oidc_state"
_NONCE: Final = "oidc_nonce"
_FLOW: Final = "oidc_flow_"
_MOST_FLOWS: Final = 5  # a browser sends all of them with each request, and its headers are limited to 8 KB
_PRIVATE: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


class BrowserAnswers:
    """Makes the responses. `insecure` leaves out what browsers restrict to https://."""

    def __init__(self, client_url: str, *, insecure: bool) -> None:
        self._callback = f"{client_url}/auth/callback"
        self._secure = not insecure
        # The prefix keeps other hosts of the same domain from planting a sign-in of their own (RFC 6265bis).
        self._flow = _FLOW if insecure else f"__Host-{_FLOW}"

    def flow_cookie(self, state: str) -> str:
        """The name of the cookie of one sign-in: tabs that sign in at the same time have one each."""
        return f"{self._flow}{state}"

    def to_provider(self, ctx: Context, url: str, flow: Flow, sealed: str) -> web.Response:
        """Redirect to the provider."""
        response = _redirect(url)
        begun = [name for name in ctx.request.cookies if name.startswith(self._flow)]  # the oldest first
        self._forget(response, begun[: 1 - _MOST_FLOWS])
        cookies = {_STATE: flow.state, _NONCE: flow.nonce, self.flow_cookie(flow.state): sealed}
        for name, value in cookies.items():
            response.set_cookie(
                name, value, max_age=LIFETIME, path="/", httponly=True, secure=self._secure, samesite="Lax"
            )
        return response

    def signed_in(self, token: str, state: str) -> web.Response:
        """Redirect to the client, with the token where no server or log sees it."""
        return self._ended(_redirect(f"{self._callback}#token={token}"), state)

    def failed(self, ctx: Context, error: Exception, *, state: str | None = None) -> web.Response:
        """Redirect to the client's login page with the reason; raises it for callers that aren't browsers.

        `state` is that of the failed sign-in, if there is one.
        """
        cause = error if isinstance(error, PlatformError) else store_error(error, ctx.platform.disk)
        if cause is None:
            raise error
        cause.headers.update(_PRIVATE)
        if "text/html" not in ctx.request.headers.get("Accept", ""):
            raise cause
        reason = {"error": cause.code, "error_description": str(cause.detail)}
        response = _redirect(f"{self._callback}#{urlencode(reason, quote_via=quote)}")
        return response if state is None else self._ended(response, state)

    def _ended(self, response: web.Response, state: str) -> web.Response:
        self._forget(response, (_STATE, _NONCE, self.flow_cookie(state)))
        return response

    def _forget(self, response: web.Response, names: Sequence[str]) -> None:
        for name in names:
            with suppress(CookieError):  # a name that only the client itself can have made up
                response.del_cookie(name, path="/", httponly=True, secure=self._secure, samesite="Lax")


def _redirect(url: str) -> web.Response:
    return web.Response(status=302, headers={"Location": url, **_PRIVATE})
