"""JSON-RPC messages to a server, in both eras of MCP."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from builtin_plugins.mcp_client.faults import ServerFault, ServerRefused

MODERN, LEGACY = "2026-07-28", "2025-11-25"
KNOWN_LEGACY = (LEGACY, "2025-06-18", "2025-03-26", "2024-11-05")
CLIENT = {"name": "platform", "version": "0.1.0"}
METHOD_NOT_FOUND = -32601
_META = "io.modelcontextprotocol/"
_LONGEST_SAID = 500


def request(number: int, method: str, params: Mapping[str, Any], *, modern: bool) -> dict[str, Any]:
    """A request in the form of the era."""
    sent = dict(params)
    if modern:
        capabilities: dict[str, Any] = {}
        sent["_meta"] = {
            f"{_META}protocolVersion": MODERN,
            f"{_META}clientInfo": CLIENT,
            f"{_META}clientCapabilities": capabilities,
        }
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": sent}


def notification(method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A JSON-RPC notification: a message without an answer."""
    return {"jsonrpc": "2.0", "method": method, **({"params": dict(params)} if params else {})}


def hello() -> dict[str, Any]:
    """The parameters of the older handshake."""
    return {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}


def check_hello(result: Mapping[str, Any]) -> None:
    """Raise ServerFault for an unknown version."""
    if result.get("protocolVersion") not in KNOWN_LEGACY:
        raise ServerFault("it speaks no MCP version that this platform supports")


def read(raw: bytes | str) -> dict[str, Any]:
    """One message, which can be sent on as JSON in UTF-8. Raises ServerFault."""
    try:
        message = json.loads(raw, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        raise ServerFault("it sent something that is not JSON") from None
    if not isinstance(message, dict):
        raise ServerFault("it sent something that is not a valid message")
    text = raw if isinstance(raw, str) else raw.decode(errors="replace")
    return _encodable(message) if "\\ud" in text.lower() else message


def _finite(text: str) -> float:
    """A finite number, as JSON has neither NaN nor infinity."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _encodable(message: dict[str, Any]) -> dict[str, Any]:
    """The same with '?' for halves of characters, in which a text may end that was cut off."""
    encoded: dict[str, Any] = json.loads(json.dumps(message, ensure_ascii=False).encode(errors="replace"))
    return encoded


def result_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """The result of an answer. Raises ServerRefused, ServerFault."""
    error, result = message.get("error"), message.get("result")
    if isinstance(error, dict):
        code = error.get("code")
        text = str(error.get("message", ""))[:_LONGEST_SAID]
        raise ServerRefused(code if isinstance(code, int) else 0, text)
    if not isinstance(result, dict):
        raise ServerFault("it sent an answer without a result")
    return result
