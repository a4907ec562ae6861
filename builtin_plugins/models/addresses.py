"""Addresses of model servers, in the forms that people use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import SecretStr

OLLAMA_PORT: Final = 11434
LOCAL: Final = "local"
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_EVERYWHERE: Final = ("", "0.0.0.0", "::")


Kind = Literal["ollama", "openai"]


@dataclass(frozen=True)
class NamedRuntime:
    """A model server as configured by an operator."""

    name: str
    kind: Kind
    url: str
    key: SecretStr | None

    @property
    def is_here(self) -> bool:
        """Whether it runs on this machine."""
        host = urlsplit(self.url).hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


def is_server_name(name: str) -> bool:
    """Whether a server may have this name: a short word in lower case, not that of this machine's files."""
    return _NAME.fullmatch(name) is not None and name != LOCAL


def named_runtimes(text: str, keys: SecretStr | None) -> list[NamedRuntime]:
    """The servers of ``name=kind+address, …``. Raises ValueError for what can't be read."""
    keys_by_name = (
        dict(_pairs(keys.get_secret_value(), "name=key in PLATFORM_MODELS_RUNTIME_KEYS")) if keys else {}
    )
    runtimes = [_named(name, address, keys_by_name.pop(name, None)) for name, address in _pairs(text, _FORM)]
    if keys_by_name and text:
        raise ValueError("a key of PLATFORM_MODELS_RUNTIME_KEYS names a server that is not configured")
    return runtimes


_FORM: Final = "name=ollama+http://host:11434 or name=openai+https://host"


def _pairs(text: str, form: str) -> list[tuple[str, str]]:
    pairs = [entry.strip().partition("=") for entry in text.split(",") if entry.strip()]
    if any(not name or not equals or not value for name, equals, value in pairs):
        raise ValueError(f"each entry must have the form {form}")
    return [(name, value) for name, _, value in pairs]


def _named(name: str, address: str, key: str | None) -> NamedRuntime:
    kind, plus, url = address.partition("+")
    if not is_server_name(name):
        raise ValueError("the name of a server is a short word in lower case, other than 'local'")
    if not plus or kind not in ("ollama", "openai"):
        raise ValueError(f"each entry must have the form {_FORM}")
    port = OLLAMA_PORT if kind == "ollama" else None
    runtime_kind: Kind = "ollama" if kind == "ollama" else "openai"
    return NamedRuntime(
        name, runtime_kind, server_address(url, port), None if key is None else SecretStr(key)
    )


def server_address(address: str, default_port: int | None = None) -> str:
    """`address` as an http:// or https:// address without a trailing slash.

    A bare host gets `default_port`, as in Ollama's own programs; a listen-on-all-interfaces address becomes
    this machine. Raises ValueError for anything else.
    """
    bare = "://" not in address
    parts = urlsplit(f"http://{address}" if bare else address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError("must be an http:// or https:// address, such as http://127.0.0.1:11434")
    port = parts.port or (default_port if bare else None)
    host = "127.0.0.1" if (parts.hostname or "") in _EVERYWHERE else parts.hostname
    return f"{parts.scheme}://{_netloc(parts, str(host), port)}{parts.path}".rstrip("/")


def _netloc(parts: SplitResult, host: str, port: int | None) -> str:
    user, at, _ = parts.netloc.rpartition("@")
    bracketed = f"[{host}]" if ":" in host else host
    return user + at + (bracketed if port is None else f"{bracketed}:{port}")
