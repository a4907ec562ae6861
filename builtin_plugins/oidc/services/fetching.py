"""Calls to the identity provider: bounded in time and size, no redirects, JSON objects only."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from builtin_plugins.oidc.errors import ProviderFault
from builtin_plugins.oidc.settings import OidcSettings
from kernel.sdk import OutgoingClient, OutgoingError

log = logging.getLogger("platform.oidc")


class Fetcher:
    """Calls the provider at its issuer's address, or at an internal one on its behalf."""

    def __init__(self, client: OutgoingClient, settings: OidcSettings) -> None:
        self._client = client
        self._issuer = urlsplit(settings.issuer or "")
        self._internal = urlsplit(settings.internal_url) if settings.internal_url else None

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The JSON object at `url`. Raises ProviderFault."""
        return await self._call("GET", url, headers, None)

    async def post(self, url: str, form: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """The JSON object that answers an urlencoded `form`. Raises ProviderFault."""
        return await self._call("POST", url, headers, form)

    async def _call(
        self, method: str, url: str, headers: Mapping[str, str] | None, form: str | None
    ) -> dict[str, Any]:
        target, named = self._place(url)
        sent = {"Accept": "application/json", **named, **(headers or {})}
        try:
            async with await self._client.call(method, target, body=form, headers=sent) as reply:
                body = await reply.read()
        except OutgoingError as error:
            log.warning(
                "the identity provider can't be reached: %s %s: %s", method, urlsplit(url).path, error
            )
            raise ProviderFault("The identity provider can't be reached; try again later") from None
        return _json_of(body, reply.status, f"{method} {urlsplit(url).path}")

    def _place(self, url: str) -> tuple[str, dict[str, str]]:
        """Where to send a call, and the headers with the public address that it stands for."""
        parts = urlsplit(url)
        if self._internal is None or parts.netloc != self._issuer.netloc:
            return url, {}
        inside = parts._replace(scheme=self._internal.scheme, netloc=self._internal.netloc)
        named = {
            "Host": self._issuer.netloc,
            "X-Forwarded-Host": self._issuer.netloc,
            "X-Forwarded-Proto": self._issuer.scheme,
        }
        return urlunsplit(inside), named


def _json_of(body: bytes, status: int, call: str) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if status != 200 or not isinstance(value, dict):
        reason = value.get("error") if isinstance(value, dict) else None
        log.warning("the identity provider answered %s with %d (%.80r)", call, status, reason)
        raise ProviderFault()
    return value
