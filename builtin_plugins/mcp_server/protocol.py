"""What goes over the wire: JSON-RPC 2.0 messages of MCP, in both of its eras.

Modern (2026-07-28): each request stands alone, and carries its version in `_meta` and in a header. Legacy
(2025-11-25 and before): a client begins with `initialize`; no session is kept, so any process can answer.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic_core import from_json

from kernel.sdk import PlatformError

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26")
SUPPORTED = (MODERN, *LEGACY)

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022
LEGACY_NOT_FOUND = -32002

_STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
_META = "io.modelcontextprotocol/"
_VERSION_KEY, _CAPABILITIES_KEY = f"{_META}protocolVersion", f"{_META}clientCapabilities"
SERVER_INFO_KEY = f"{_META}serverInfo"
_NAMED = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}

Era = Literal["modern", "legacy"]


class RpcError(Exception):
    """An error that the client reads as a JSON-RPC error response."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    @classmethod
    def of(cls, error: PlatformError) -> RpcError:
        """A platform error, with its HTTP status as the code, outside what JSON-RPC and MCP reserve."""
        return cls(error.status, str(error.detail), {"code": error.code})


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """One request of a client. `id` is None for a notification, which is not answered."""

    id: str | int | None
    method: str
    params: Mapping[str, Any]
    era: Era


def read_call(raw: bytes, headers: Mapping[str, str]) -> RpcRequest:
    """The message of a POST, checked against its headers. Raises Unreadable."""
    message = _message(raw)
    number, method, params = message.get("id"), message.get("method"), message.get("params", {})
    try:
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str) or not _is_id(message):
            raise RpcError(INVALID_REQUEST, "This is not a JSON-RPC 2.0 request or notification")
        if not isinstance(params, dict) or not isinstance(params.get("_meta", {}), dict):
            raise RpcError(INVALID_PARAMS, "'params' and its '_meta' must be objects")
        era = _era(method, params, headers, is_notification=number is None)
        if era == "modern" and number is not None:
            _check_modern(method, params, headers)
    except RpcError as error:
        raise Unreadable(error, number if _is_id(message) else None) from None
    return RpcRequest(number, method, params, era)


class Unreadable(Exception):
    """A message that can't be served, and the id that its sender waits for."""

    def __init__(self, error: RpcError, number: str | int | None) -> None:
        super().__init__(error.message)
        self.error, self.id = error, number


def _message(raw: bytes) -> dict[str, Any]:
    try:
        # Stricter than Python's own: an answer with half a character can't be encoded in UTF-8.
        message = from_json(raw, allow_inf_nan=False)
    except ValueError:
        raise Unreadable(RpcError(PARSE_ERROR, "The body is not JSON"), None) from None
    if not isinstance(message, dict):
        what = "Batches are not supported" if isinstance(message, list) else "The body must be an object"
        raise Unreadable(RpcError(INVALID_REQUEST, what), None)
    return message


def _is_id(message: Mapping[str, Any]) -> bool:
    """A string or a whole number, or none at all; null isn't an id."""
    number = message.get("id", "")
    return isinstance(number, str | int) and not isinstance(number, bool)


def _era(method: str, params: Mapping[str, Any], headers: Mapping[str, str], *, is_notification: bool) -> Era:
    version = headers.get("MCP-Protocol-Version")
    if _VERSION_KEY in params.get("_meta", {}):
        return "modern"
    if method == "initialize" or version is None or version in LEGACY:
        return "legacy"
    if version != MODERN:
        raise unsupported(version)
    if is_notification:
        return "modern"
    raise RpcError(INVALID_PARAMS, f"'_meta' must hold '{_VERSION_KEY}'")


def unsupported(version: str) -> RpcError:
    """The refusal of a version, with the versions that are supported."""
    return RpcError(
        UNSUPPORTED_VERSION,
        "Unsupported protocol version",
        {"supported": list(SUPPORTED), "requested": version[:100]},
    )


def _check_modern(method: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    meta = params["_meta"]
    version = meta[_VERSION_KEY]
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"'{_VERSION_KEY}' must be a string")
    _match("MCP-Protocol-Version", headers, version)
    if version != MODERN:
        raise unsupported(version)
    if not isinstance(meta.get(_CAPABILITIES_KEY), dict):
        raise RpcError(INVALID_PARAMS, f"'_meta' must hold '{_CAPABILITIES_KEY}', an object")
    _match("Mcp-Method", headers, method)
    source = _NAMED.get(method)
    if source is not None:
        value = params.get(source)
        if not isinstance(value, str):
            raise RpcError(INVALID_PARAMS, f"'{source}' must be a string")
        _match("Mcp-Name", headers, value)


def _match(name: str, headers: Mapping[str, str], value: str) -> None:
    """Check that a header agrees with the body, as intermediaries may have trusted it."""
    header = headers.get(name)
    if header is None:
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} is missing")
    if (_decoded(header) if name == "Mcp-Name" else header) != value:
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} differs from the body")


def _decoded(value: str) -> str | None:
    """A header value that may be wrapped in Base64, as names beyond ASCII are."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def result_message(call: RpcRequest, result: dict[str, Any], server: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request."""
    if call.era == "modern":
        meta = {**result.get("_meta", {}), SERVER_INFO_KEY: server}
        result = {"resultType": "complete", **result, "_meta": meta}
    return {"jsonrpc": "2.0", "id": call.id, "result": result}


def error_message(error: RpcError, number: str | int | None) -> dict[str, Any]:
    """The answer to a failed request; without an id if none could be read."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return {"jsonrpc": "2.0", **({} if number is None else {"id": number}), "error": body}


def status_of(error: RpcError, era: Era | None) -> int:
    """The HTTP status of an error. Older clients expect a method's error in a response with status 200."""
    if era == "legacy" and error.code not in (PARSE_ERROR, INVALID_REQUEST):
        return 200
    return _STATUS.get(error.code, 200)
