"""Answers of the browser flow: redirects that are kept nowhere, and cookies that live five minutes."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlencode

from aiohttp import web

from builtin_plugins.oidc.flow import LIFETIME, Flow
from kernel.sdk import Context, PlatformError, store_error

STATE: Final = "oidc_state"
NONCE: Final = "oidc_nonce"
_FLOW: Final = "oidc_flow"
_PRIVATE: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


class BrowserAnswers:
    """Makes them. `insecure` leaves out what a browser keeps for https:// alone."""

    def __init__(self, client_url: str, *, insecure: bool) -> None:
        self._callback = f"{client_url}/auth/callback"
        self._secure = not insecure
        # The prefix keeps other hosts of the same domain from planting a sign-in of their own (RFC 6265bis).
        self.flow_cookie = _FLOW if insecure else f"__Host-{_FLOW}"

    def to_provider(self, url: str, flow: Flow, sealed: str) -> web.Response:
        """Off to the provider."""
        response = _redirect(url)
        for name, value in self._cookies(flow, sealed):
            response.set_cookie(
                name, value, max_age=LIFETIME, path="/", httponly=True, secure=self._secure, samesite="Lax"
            )
        return response

    def signed_in(self, token: str) -> web.Response:
        """Back to the client, with the token where no server and no log sees it."""
        return self._forgetting(_redirect(f"{self._callback}#token={token}"))

    def failed(self, ctx: Context, error: Exception, *, forget: bool = True) -> web.Response:
        """Back to the client's login page with the reason; raises it for callers that aren't browsers."""
        known = error if isinstance(error, PlatformError) else store_error(error, ctx.platform.disk)
        if known is None:
            raise error
        known.headers.update(_PRIVATE)
        if "text/html" not in ctx.request.headers.get("Accept", ""):
            raise known
        reason = {"error": known.code, "error_description": str(known.detail)}
        response = _redirect(f"{self._callback}#{urlencode(reason, quote_via=quote)}")
        return self._forgetting(response) if forget else response

    def _cookies(self, flow: Flow, sealed: str) -> tuple[tuple[str, str], ...]:
        return (STATE, flow.state), (NONCE, flow.nonce), (self.flow_cookie, sealed)

    def _forgetting(self, response: web.Response) -> web.Response:
        for name in (STATE, NONCE, self.flow_cookie):
            response.del_cookie(name, path="/", httponly=True, secure=self._secure, samesite="Lax")
        return response


def _redirect(url: str) -> web.Response:
    return web.Response(status=302, headers={"Location": url, **_PRIVATE})
