"""The client's address: the peer's, unless the peer is a configured proxy."""

from __future__ import annotations

import ipaddress

from aiohttp import web

from kernel.settings_checks import split_list


class ClientAddresses:
    """Believes `X-Forwarded-For` only from `TRUSTED_PROXY_CIDRS`."""

    def __init__(self, cidrs: str) -> None:
        self._networks = [ipaddress.ip_network(item, strict=False) for item in split_list(cidrs)]

    def of(self, request: web.Request) -> str:
        """The sender's address: the last hop that is not a trusted proxy."""
        peer = request.remote or "unknown"
        if not self._networks or not self._trusted(peer):
            return peer
        hops = [
            hop.strip() for value in request.headers.getall("X-Forwarded-For", ()) for hop in value.split(",")
        ]
        for hop in reversed(hops):
            if not _is_address(hop):
                return peer
            peer = hop
            if not self._trusted(hop):
                return hop
        return peer

    def trusts(self, request: web.Request) -> bool:
        """Whether the peer is a configured proxy."""
        return bool(self._networks) and self._trusted(request.remote or "")

    def is_near(self, request: web.Request) -> bool:
        """Whether the peer is on this machine or is a configured proxy."""
        return _is_loopback(request.remote or "") or self.trusts(request)

    def _trusted(self, text: str) -> bool:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


def network_of(address: str) -> str:
    """The network by which an address is counted: one IPv6 client may use any address of its /64."""
    if ":" not in address:
        return address
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    return address if parsed.ipv4_mapped else str(ipaddress.IPv6Network((int(parsed), 64), strict=False))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_loopback(text: str) -> bool:
    return _is_address(text) and ipaddress.ip_address(text).is_loopback
