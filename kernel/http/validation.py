"""Bodies and queries into models; the 422 array as existing clients read it (wire-facts 1.1).

A client that sends its body too slowly is refused: there is a limit on each pause, and a rate to keep up.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import math
import re
import typing
from collections.abc import Awaitable
from typing import Any, TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from kernel.errors import PayloadTooLarge, RequestTimeout, Unprocessable, UnsupportedMediaType
from kernel.libs.storable import first_unfit

T = TypeVar("T")

SLOWEST = 500
"""Bytes per second, on average, once the time for one pause is used up; any modem is faster.

Without this limit, a byte now and then would keep a connection open for months.
"""


class BodyClock:
    """Measures the time spent waiting for one request's body; the time spent processing it doesn't count."""

    def __init__(self, request: web.Request, silence: float) -> None:
        self._content = request.content
        self._silence = silence
        self._waited = 0.0

    async def wait(self, reading: Awaitable[T]) -> T:
        """The result of `reading`, which waits for more of the body. Raises RequestTimeout."""
        now = asyncio.get_running_loop().time
        began = now()
        left = self._silence + self._received() / SLOWEST - self._waited
        try:
            async with asyncio.timeout(min(self._silence, left)):
                return await reading
        except TimeoutError:
            raise RequestTimeout() from None
        finally:
            self._waited += now() - began

    def _received(self) -> int:
        """Bytes on the wire: counting decompressed ones could allow a thousand times as much time."""
        packed = getattr(self._content, "total_compressed_bytes", None)  # aiohttp's empty body lacks it
        return self._content.total_bytes if packed is None else packed


class Body(BaseModel):
    """What clients send. A field that is unknown is refused (422), as another one was meant."""

    model_config = ConfigDict(extra="forbid", defer_build=True)  # for all, it takes 35 ms of a start


def example(**fields: Any) -> ConfigDict:
    """The `model_config` for a body's model, with an example for the API documentation."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


_SECRET_WORDS = ("password", "secret", "token", "key", "code")
_INPUT_LIMIT = 200
_LARGEST_ECHO = 2**63
_MOST_VALUES = 1_000_000
"""Values in a JSON body. A value of two bytes takes fifty in memory, and parsing blocks the event loop."""
_MOST_PROBLEMS = 10_000
_SHOWN_PROBLEMS = 50
_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_LONGEST_INTEGER = 11
_MEDIA_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+")


async def read_body(
    request: web.Request, limit: int, silence: float, *, most_values: int | None = None
) -> bytes:
    """Read the whole body: at most `limit` bytes and, for JSON, about `most_values` values (else 413).

    Give up on a slow client as `iter_body` does.
    """
    if request.content_length is not None and request.content_length > limit:
        raise PayloadTooLarge(f"The body is larger than {limit} bytes")
    if not request.can_read_body:
        return b""
    chunks: list[bytes] = []
    size = 0
    async for chunk in iter_body(request, silence):
        size += len(chunk)
        if size > limit:
            raise PayloadTooLarge(f"The body is larger than {limit} bytes")
        chunks.append(chunk)
    raw = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    if most_values is not None:
        _refuse_many_values(raw, most_values)
    return raw


async def iter_body(request: web.Request, silence: float) -> typing.AsyncIterator[bytes]:
    """Read the body piece by piece. Raises RequestTimeout after `silence` seconds without data, and after
    that time if it averages less than 500 bytes per second.
    """
    clock = BodyClock(request, silence)
    while chunk := await clock.wait(request.content.readany()):
        yield chunk


def media_type(request: web.Request) -> str:
    """The body's media type in lower case, without its parameters; `application/octet-stream` if the request
    has no valid one (RFC 9110, section 8.3).

    aiohttp's own property parses the parameters too: 0.4 ms for each upload, whose boundary is always new.
    """
    named = request.headers.get("Content-Type", "").partition(";")[0].strip(" \t").lower()
    return named if _MEDIA_TYPE.fullmatch(named) else "application/octet-stream"


def parse_body(adapter: TypeAdapter[Any], request: web.Request, raw: bytes) -> Any:
    """`raw` as JSON of the adapter's type.

    Raises Unprocessable (422), UnsupportedMediaType (415) or PayloadTooLarge (413).
    """
    content_type = media_type(request)
    declared = "Content-Type" in request.headers
    if raw and declared and content_type != "application/json" and not content_type.endswith("+json"):
        raise UnsupportedMediaType(f"Send the body as application/json, not {content_type[:80]}")
    _refuse_many_values(raw, _MOST_VALUES)
    encoding = json.detect_encoding(raw)
    if not encoding.startswith("utf-8"):
        raise Unprocessable.field(("body",), f"is {encoding[:6].upper()}; send UTF-8")
    raw = raw.removeprefix(codecs.BOM_UTF8)
    if b"\\u0000" in raw:  # before the types' own validators, which may fail on one
        _require_storable(_read(raw), "body")
    try:
        body = adapter.validate_json(raw or b"null" if _optional(adapter) else raw)
    except ValidationError as error:
        raise Unprocessable(render_errors(error, "body")) from None
    _require_storable(body, "body")
    return body


def _refuse_many_values(raw: bytes, most: int) -> None:
    """Raise PayloadTooLarge for JSON with too many values to parse; the content of strings doesn't count."""
    if len(raw) <= most or _marks(raw) <= most:
        return
    plain = raw.replace(rb"\\", b"").replace(rb"\"", b"")
    if plain.count(b'"') <= 2 * most:  # otherwise the strings alone are too many
        plain = b"".join(plain.split(b'"')[::2])
    if _marks(plain) > most:
        raise PayloadTooLarge(f"The body has more than {most} values; send it in parts")


def _marks(raw: bytes) -> int:
    """An upper bound for the number of values: each but the first follows one of these."""
    return sum(map(raw.count, (b",", b"[", b"{")))


def _read(raw: bytes) -> Any:
    """The parsed JSON; None if it is invalid, which validation reports better."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _require_storable(value: Any, where: str) -> None:
    unfit = first_unfit(value)
    if unfit is not None:
        place, why = unfit
        raise Unprocessable.field((where, *place), why)


def _optional(adapter: TypeAdapter[Any]) -> bool:
    return bool(adapter.core_schema.get("type") == "nullable")


class QueryParser:
    """Turns the query string into one model; repeated keys become lists where the field is a list."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model
        self._lists = frozenset(
            field.alias or name for name, field in model.model_fields.items() if _is_list(field.annotation)
        )
        self._default: BaseModel | None = None

    def parse(self, request: web.Request) -> BaseModel:
        """The validated query. Raises Unprocessable (422)."""
        if not request.query_string:
            return self._without_query()
        query = request.query
        values = {key: query.getall(key) if key in self._lists else query.getall(key)[-1] for key in query}
        return self._validate(values)

    def _without_query(self) -> BaseModel:
        if self._default is None:
            self._default = self._validate({})
        return self._default

    def _validate(self, values: dict[str, Any]) -> BaseModel:
        _require_storable(values, "query")
        try:
            query = self._model.model_validate(values)
        except ValidationError as error:
            raise Unprocessable(render_errors(error, "query")) from None
        _require_storable(query, "query")  # a number's text may spell infinity
        return query


def _is_list(annotation: Any) -> bool:
    origins = {typing.get_origin(annotation), *(typing.get_origin(a) for a in typing.get_args(annotation))}
    return bool(origins & {list, tuple, set})


def render_errors(error: ValidationError, where: str) -> list[dict[str, Any]]:
    """pydantic's errors as clients read them; values that may be secret or huge are not echoed."""
    count = error.error_count()
    if count > _MOST_PROBLEMS:  # pydantic lists all or none, and a million take seconds
        message = f"has {count} problems, too many to list"
        return [{"type": "too_many_errors", "loc": [where], "msg": message, "input": None}]
    return [_render(item, where) for item in error.errors(include_url=False)[:_SHOWN_PROBLEMS]]


def _render(item: Any, where: str) -> dict[str, Any]:
    loc = [where, *item["loc"]]
    rendered = {"type": item["type"], "loc": loc, "msg": item["msg"], "input": _echo(loc, item)}
    if item.get("ctx"):
        rendered["ctx"] = {key: _plain(value) for key, value in item["ctx"].items()}
    return rendered


def _echo(loc: list[Any], item: Any) -> Any:
    if item["type"] in ("missing", "json_invalid") or any(map(_sounds_secret, loc)):
        return None
    if len(loc) == 1:
        # The whole body: what looks like an ordinary value may be a misplaced password.
        return f"<{type(item['input']).__name__}>"
    return _plain(item["input"])


def _sounds_secret(name: Any) -> bool:
    return any(word in str(name).lower() for word in _SECRET_WORDS)


def _plain(value: Any) -> Any:
    """`value` in a form that may be sent back: small, JSON, without anything that sounds secret."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < _LARGEST_ECHO else "<a huge number>"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value[:_INPUT_LIMIT]
    if isinstance(value, Exception):
        return str(value)[:_INPUT_LIMIT]
    return f"<{type(value).__name__}>"


def parse_int(text: str) -> int:
    """A path parameter that must be an integer id. Raises ValueError with a text for clients."""
    if not _INTEGER.fullmatch(text):
        raise ValueError("must be an integer")
    if len(text) > _LONGEST_INTEGER or not -(2**31) <= int(text) < 2**31:
        raise ValueError("is out of range")
    return int(text)
