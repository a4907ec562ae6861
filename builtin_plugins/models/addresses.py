"""Addresses of model servers, in the forms in which people write them."""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, urlsplit

OLLAMA_PORT: Final = 11434
_EVERYWHERE: Final = ("", "0.0.0.0", "::")


def server_address(given: str, default_port: int | None = None) -> str:
    """`given` as an http:// or https:// address without a slash at its end.

    A bare host gets `default_port`, as Ollama's own programs do; an address that a server listens on
    everywhere becomes this machine. Raises ValueError for anything else.
    """
    bare = "://" not in given
    parts = urlsplit(f"http://{given}" if bare else given)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError("must be an http:// or https:// address, such as http://127.0.0.1:11434")
    port = parts.port or (default_port if bare else None)
    host = "127.0.0.1" if (parts.hostname or "") in _EVERYWHERE else parts.hostname
    return f"{parts.scheme}://{_netloc(parts, str(host), port)}{parts.path}".rstrip("/")


def _netloc(parts: SplitResult, host: str, port: int | None) -> str:
    user, at, _ = parts.netloc.rpartition("@")
    shown = f"[{host}]" if ":" in host else host
    return user + at + (shown if port is None else f"{shown}:{port}")
