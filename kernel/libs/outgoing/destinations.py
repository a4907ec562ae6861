"""Where calls may go: to public addresses, and to those that an operator named."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from typing import Final, TypeAlias

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver
from yarl import URL

from kernel.libs.outgoing.errors import DestinationRefused

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_REMEDY: Final = "an operator can name it in PLATFORM_OUTGOING_ALLOWED"
# A public number, but answered by a virtual machine's host (Azure's platform services).
_HOST_SERVICES: Final = ipaddress.ip_address("168.63.129.16")
# Reserved for protocols, and site-local; some supported versions of Python call them public.
_NOT_PUBLIC: Final = (ipaddress.ip_network("192.0.0.0/24"), ipaddress.ip_network("fec0::/10"))
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
# Metadata services that give virtual machines their keys, in addition to the link-local ones.
_METADATA: Final = frozenset(
    ipaddress.ip_address(address)
    for address in ("168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")
)


def is_public(address: Address) -> bool:
    """Whether an address is public, even as IPv4 wrapped in IPv6."""
    inside = _unwrapped(address)
    if inside is not address:
        return is_public(inside)
    if isinstance(address, ipaddress.IPv6Address) and address.teredo is not None:
        return False
    if any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address == _HOST_SERVICES
    )


def is_machine(address: Address) -> bool:
    """Whether an address can be a server's: not link-local, metadata, multicast or unspecified."""
    inside = _unwrapped(address)
    if inside is not address:
        return is_machine(inside)
    return not (
        address.is_link_local or address.is_multicast or address.is_unspecified or address in _METADATA
    )


class Destinations:
    """Which hosts and addresses calls may reach.

    `named` are base addresses from an operator's settings: their hosts may be anywhere, but only on those
    ports. `allowed` is an operator's list of networks and hosts (``10.0.0.0/8``, ``wiki.corp``, ``*.corp``)
    inside which calls may go as well. `hosts`, if given, lists all other hosts that may be called, in the
    same spelling. `within`, if given, is the only list that counts: a call reaches the hosts and networks on
    it and nothing else, and even there no link-local or metadata address. Raises ValueError for an entry of
    `allowed` or `within` that is neither a host nor a network.
    """

    def __init__(
        self,
        named: Iterable[str] = (),
        allowed: Iterable[str] = (),
        hosts: Iterable[str] | None = None,
        within: Iterable[str] | None = None,
    ) -> None:
        urls = [URL(base) for base in named]
        self._named = {(_spelled(url.host or ""), url.port) for url in urls}
        self._networks: list[Network] = []
        self._private_hosts: list[str] = []
        self._is_closed = within is not None
        for entry in allowed if within is None else within:
            self._allow(entry)
        self._hosts = None if hosts is None else [_spelled(host) for host in hosts]

    def check(self, url: URL) -> None:
        """Raise DestinationRefused for a URL that may not be called, as far as DNS isn't needed."""
        host = _spelled(url.host or "")
        if url.scheme not in ("http", "https") or not host:
            raise DestinationRefused("only http:// and https:// addresses with a host can be called")
        if self._is_closed:
            self._check_closed(host, url.port or 0)
            return
        if self._is_named(host, url.port):
            return
        if self._hosts is not None and not _fits(host, self._hosts):
            raise DestinationRefused(f"{host} is not on the list of hosts that may be called")
        literal = _literal(host)
        if literal is not None and not self.permits(host, url.port or 0, literal):
            raise DestinationRefused(f"{host} is not a public address; {_REMEDY}")

    def permits(self, host: str, port: int, address: Address) -> bool:
        """Whether a connection for `host` may go to `address`."""
        host = _spelled(host)
        if self._is_closed:
            return is_machine(address) and (_fits(host, self._private_hosts) or self._is_inside(address))
        if is_public(address) or self._is_named(host, port) or _fits(host, self._private_hosts):
            return True
        return self._is_inside(address)

    def _check_closed(self, host: str, port: int) -> None:
        literal = _literal(host)
        if literal is not None:
            permitted = self.permits(host, port, literal)
        else:
            permitted = bool(self._networks) or _fits(host, self._private_hosts)
        if not permitted:
            raise DestinationRefused(f"{host} is not on the list of hosts and networks that may be called")

    def _is_inside(self, address: Address) -> bool:
        inside = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return any((inside or address) in network for network in self._networks)

    def refusal(self, host: str) -> str:
        """Why no address of a host may be called."""
        if self._is_closed:
            return f"no address of {host} is on the list of hosts and networks that may be called"
        return f"{host} has no public address; {_REMEDY}"

    def _is_named(self, host: str, port: int | None) -> bool:
        return (host, port) in self._named

    def _allow(self, entry: str) -> None:
        try:
            self._networks.append(ipaddress.ip_network(entry, strict=False))
        except ValueError:
            if "/" in entry or ":" in entry or not entry.strip("*."):
                raise ValueError(f"'{entry}' is neither a host nor a network such as 10.0.0.0/8") from None
            self._private_hosts.append(_spelled(entry))


class CheckedResolver(AbstractResolver):
    """Resolves a host once per connection, and returns only addresses that the call may reach.

    The connection goes to exactly the addresses that were checked, so a name that changes between the check
    and the connection (DNS rebinding) gains nothing.
    """

    def __init__(self, destinations: Destinations, inner: AbstractResolver | None = None) -> None:
        self._destinations = destinations
        self._inner = inner or DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The permitted addresses of a host. Raises DestinationRefused if there are none."""
        results = await self._inner.resolve(host, port, family)
        good = [item for item in results if self._is_good(host, port, item["host"])]
        if results and not good:
            raise DestinationRefused(self._destinations.refusal(host))
        return good

    async def close(self) -> None:
        """Close the underlying resolver."""
        await self._inner.close()

    def _is_good(self, host: str, port: int, text: str) -> bool:
        address = _literal(text)
        return address is not None and self._destinations.permits(host, port, address)


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 address wraps, if it does; otherwise the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inside = address.ipv4_mapped or address.sixtofour
    if inside is None and address in _NAT64:
        inside = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return inside or address


def _spelled(host: str) -> str:
    return host.lower().rstrip(".")


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _fits(host: str, entries: Iterable[str]) -> bool:
    """Whether a host is one of the entries or a subdomain of one that begins with ``*.``."""
    return any(host == entry or (entry.startswith("*.") and host.endswith(entry[1:])) for entry in entries)
