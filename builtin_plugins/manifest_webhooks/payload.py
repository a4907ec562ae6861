"""The body of a webhook as one object, and the text and metadata that a manifest makes of it.

Pure, and bounded by the body's size.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from email.utils import collapse_rfc2231_value
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import content_disposition_filename

from kernel.sdk.http import FORM_ENCODING, clean_name, form_disposition

from .manifest import Input, Manifest
from .problems import ROOT
from .proofs import Proof
from .templates import (
    MAX_RENDERED_CHARS,
    MissingValue,
    TemplateError,
    compile_template,
    look_up,
    render_metadata,
)

MAX_DEPTH = 100
MAX_FIELDS = 1000
_MAX_PART_HEADER = 8192
_MAX_BOUNDARY = 70


class PayloadError(ValueError):
    """A body that doesn't match its content type; `status` is the response's."""

    status = 400


def parse_payload(content_type: str | None, body: bytes) -> dict[str, Any]:
    """Read a body as an object; raises PayloadError.

    JSON where the content type begins with application/json or ends in +json; otherwise form fields as a flat
    map of texts, urlencoded (also when no type is given) or multipart. Of repeated fields the last one
    counts; a file becomes its file name, its content is dropped. A form whose only field is `payload`, with a
    JSON object in it, is that object, with the text as `payload` unless it has one of its own, as GitHub
    sends by default. The caller limits the body's size.
    """
    media, boundary = _media(content_type)
    if media.startswith("application/json") or media.endswith("+json"):
        return _json(body)
    if media == "multipart/form-data":
        form = _multipart(body, boundary)
    elif media in ("", "application/x-www-form-urlencoded"):
        form = _urlencoded(body)
    else:
        raise PayloadError(
            "The content type is not supported; send application/json, application/x-www-form-urlencoded or "
            "multipart/form-data."
        )
    return form | _inside(form["payload"]) if form.keys() == {"payload"} else form


def _media(content_type: str | None) -> tuple[str, str]:
    header = Message()
    header["Content-Type"] = content_type or ""
    boundary = header.get_param("boundary", "")
    media = (content_type or "").partition(";")[0].strip().lower()
    return media, collapse_rfc2231_value(boundary) if isinstance(boundary, (str, tuple)) else ""


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PayloadError(f"{what} is not UTF-8 text, at byte {error.start}.") from None


def _json(body: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(_text(body, "The body"), parse_constant=_constant)
    except PayloadError:
        raise
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise PayloadError(f"The body is not JSON: {error.msg}, {where}.") from None
    except RecursionError:
        raise PayloadError(f"The body is nested more than {MAX_DEPTH} levels deep.") from None
    except ValueError:
        raise PayloadError("The body contains a number with too many digits.") from None
    if not isinstance(payload, dict):
        raise PayloadError("The body is JSON, but not an object.")
    _check_depth(payload)
    return payload


def _constant(name: str) -> Any:
    raise PayloadError(f"The body is not JSON: {name} is not a JSON number.")


def _check_depth(payload: dict[str, Any]) -> None:
    level: list[Any] = [payload]
    for _ in range(MAX_DEPTH):
        level = [item for node in level for item in _children(node)]
        if not level:
            return
    raise PayloadError(f"The body is nested more than {MAX_DEPTH} levels deep.")


def _children(node: Any) -> list[Any]:
    items = node.values() if isinstance(node, dict) else node
    return [item for item in items if isinstance(item, (dict, list))]


def _urlencoded(body: bytes) -> dict[str, str]:
    if not body:
        return {}
    try:
        text = body.decode("utf-8")
        pairs = parse_qsl(text, True, strict_parsing=True, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError:
        raise PayloadError("The form is not UTF-8 text.") from None
    except ValueError:
        if text.lstrip()[:1] in ("{", "["):
            raise PayloadError(
                "The body looks like JSON, but is sent as a form; send it as Content-Type: application/json."
            ) from None
        raise PayloadError(f"The form must consist of at most {MAX_FIELDS} name=value pairs.") from None
    return dict(pairs)


def _inside(text: str) -> dict[str, Any]:
    try:
        return _json(text.encode(errors="surrogatepass"))
    except PayloadError:
        return {}


def _multipart(body: bytes, boundary: str) -> dict[str, str]:
    """Split a multipart form (RFC 7578) that is already in memory; nested multiparts stay texts."""
    if not boundary or len(boundary) > _MAX_BOUNDARY:
        raise PayloadError("The content type multipart/form-data has no boundary of 1 to 70 characters.")
    delimiter = b"\r\n--" + boundary.encode("utf-8", "replace")
    _, *parts = (b"\r\n" + body).split(delimiter, MAX_FIELDS + 2)
    if len(parts) > MAX_FIELDS + 1:
        raise PayloadError(f"The form has more than {MAX_FIELDS} fields.")
    if not parts or not parts[-1].startswith(b"--"):
        raise PayloadError("The form is cut short: its closing boundary is missing.")
    form = dict(_part(part) for part in parts[:-1])
    form.pop(FORM_ENCODING, None)
    return form


def _part(section: bytes) -> tuple[str, str]:
    padding, _, rest = section.partition(b"\r\n")
    head, separator, content = rest.partition(b"\r\n\r\n")
    if padding.strip(b" \t") or not separator or len(head) > _MAX_PART_HEADER:
        raise PayloadError("A part of the form has no valid header.")
    headers = HeaderParser().parsestr(_text(head, "The header of a form field"))
    _, parameters = form_disposition(headers.get("Content-Disposition"))
    name = parameters.get("name")
    if not name:
        raise PayloadError("A part of the form has no field name.")
    filename = content_disposition_filename(parameters, "filename")
    if filename is not None:
        return name, clean_name(filename) if filename else ""
    return name, _text(content, "A form field")


MOST_RECORDS = 500
_ITEM = "item"


@dataclass(frozen=True, slots=True)
class Record:
    """A text to store. `event_id` tells repeats apart; None if nothing does."""

    event_id: str | None
    text: str
    metadata: dict[str, Any]


def render(manifest: Manifest, proof: Proof, content_type: str | None, body: bytes) -> list[Record]:
    """Parse the body and fill in the templates: one record, or one for each item of the manifest's list.

    With `onMissing: skip`, items that lack a value are left out; MissingValue is raised if that leaves none.
    Raises PayloadError, TemplateError (MissingValue).
    """
    payload = parse_payload(content_type, body)
    source = manifest.store.input
    if source.for_each is None:
        text, metadata = _rendered(source, payload, MAX_RENDERED_CHARS)
        return [Record(proof.event_id, text, metadata)]
    records = {record.event_id: record for record in _records(source, payload, proof.event_id)}
    if not records:
        raise MissingValue(source.for_each, "no item of the list has what the templates ask for")
    return list(records.values())


def _records(source: Input, payload: Mapping[str, Any], event_id: str | None) -> Iterator[Record]:
    """A record for each item, whose texts together are as long as a single one may be."""
    room = MAX_RENDERED_CHARS
    for index, item in enumerate(_items(source.for_each or "", payload)):
        try:
            text, metadata = _rendered(source, {**payload, _ITEM: item}, room)
        except MissingValue:
            if source.on_missing == "error":
                raise
            continue
        content = json.dumps([text, metadata], sort_keys=True)
        room -= len(content)
        yield Record(_id_of(content if event_id is None else f"{event_id} {index}"), text, metadata)


def _items(path: str, payload: Mapping[str, Any]) -> list[Any]:
    items = look_up(payload, path.removeprefix("."))
    if not isinstance(items, list):
        raise TemplateError(path, "the value is not a list")
    if len(items) > MOST_RECORDS:
        raise TemplateError(path, f"the list has more than {MOST_RECORDS} items")
    return items


def _id_of(text: str) -> str:
    return f"item:{hashlib.sha256(text.encode()).hexdigest()}"


def _rendered(source: Input, payload: Mapping[str, Any], room: int) -> tuple[str, dict[str, Any]]:
    text = compile_template(source.text).render(payload, room)
    if not text.strip():
        raise MissingValue(ROOT, "the rendered text is empty")
    return text, render_metadata(source.metadata, payload, room)
