"""Checks of single settings: addresses, networks, keys, time zones. A ValueError says what is expected."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, SecretStr


@dataclass(frozen=True)
class ExistingFolder:
    """Marks a setting that names a folder: ``Annotated[Path | None, ExistingFolder()]``.

    If it isn't there, the plugin stays in service; the start logs it, and `platformctl doctor` shows it.
    """


@dataclass(frozen=True)
class WrittenFolder:
    """Marks a setting that names a folder which the plugin writes to, or an address such as ``s3://bucket``.

    `platformctl service` lets the service write there.
    """


def split_list(text: str) -> list[str]:
    """The trimmed, non-empty items of a comma-separated list."""
    return [item.strip() for item in text.split(",") if item.strip()]


def long_enough(value: SecretStr | None) -> SecretStr | None:
    """Check the length of a key or token that must not be guessed, if given."""
    if value is not None and len(value.get_secret_value().encode()) < 32:
        raise ValueError("must be at least 32 bytes long; try: openssl rand -hex 32")
    return value


def base_address(value: str) -> str:
    """The address of a page, without a trailing slash; empty for none."""
    value = value.strip()
    parts = urlsplit(value)
    if value and (
        parts.scheme not in ("http", "https") or not parts.hostname or parts.query or _bad_port(parts)
    ):
        raise ValueError("expected http://host[:port][/path] or https://…")
    return value.partition("#")[0].rstrip("/")


def origins(value: str) -> str:
    """Origins of pages, separated by commas, or ``*``; browsers send them without a trailing slash."""
    listed = [item.removesuffix("/") for item in split_list(value)]
    for item in listed:
        parts = urlsplit(item)
        if item not in ("*", "null") and f"{parts.scheme}://{parts.netloc}" != item:
            raise ValueError("expected origins such as https://app.example.org, separated by commas, or *")
    return ",".join(listed)


def redis_address(value: SecretStr | None) -> SecretStr | None:
    """The address of a Redis server, if any."""
    parts = urlsplit(value.get_secret_value() if value else "redis://host")
    if (
        parts.scheme not in ("redis", "rediss", "unix")
        or not (parts.netloc or parts.path)
        or _bad_port(parts)
    ):
        raise ValueError("expected redis://[user:password@]host[:port][/number], rediss://… or unix://…")
    return value


def database_address(value: SecretStr | None) -> SecretStr | None:
    """The address of a PostgreSQL database or of an SQLite file, if any."""
    address = value.get_secret_value() if value else "sqlite:///file"
    parts = urlsplit(address)
    kind = address.partition("://")[0].partition("+")[0]
    in_file = parts.path.strip("/") not in ("", ":memory:")
    if _bad_port(parts) or not (kind in ("postgresql", "postgres") or (kind == "sqlite" and in_file)):
        raise ValueError("expected postgresql://user:password@host:port/name or sqlite:////path/to/file")
    return value


def networks(value: str) -> str:
    """IP networks, separated by commas."""
    for item in split_list(value):
        ipaddress.ip_network(item, strict=False)
    return value


def host_name(value: str) -> str:
    """The name or IP address of a host, without a port; empty for none."""
    try:
        if not re.fullmatch(r"[\w.-]*", value):
            ipaddress.IPv6Address(value)
    except ValueError:
        raise ValueError("expected a host such as mail.example.org, without a scheme or a port") from None
    return value


def hosts_and_networks(value: str) -> str:
    """Hosts (`wiki.corp`, `*.corp`) and IP networks, separated by commas."""
    if value:
        from kernel.libs.outgoing.destinations import Destinations  # it imports the HTTP client

        Destinations(within=split_list(value))
    return value


def _bad_port(parts: SplitResult) -> bool:
    try:
        return parts.port == 0
    except ValueError:
        return True


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is not a time zone; write one such as Europe/Berlin or UTC") from None
    return name


TimeZone = Annotated[str, AfterValidator(_time_zone)]
