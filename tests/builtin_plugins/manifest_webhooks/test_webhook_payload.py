"""Bodies of webhooks as objects."""

from __future__ import annotations

import time
from typing import Any

import pytest
from aiohttp import FormData, MultipartWriter
from aiohttp.payload import Payload
from hypothesis import given, settings
from hypothesis import strategies as st

from builtin_plugins.manifest_webhooks.payload import MAX_DEPTH, MAX_FIELDS, PayloadError, parse_payload

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        ("application/json", b'{"a": {"b": [1]}}', {"a": {"b": [1]}}),
        ("Application/JSON; charset=utf-8", '{"a": "ü"}'.encode(), {"a": "ü"}),
        ("application/json-seq", b'{"a": 1}', {"a": 1}),
        ("application/cloudevents+json", b'{"a": 1}', {"a": 1}),
        ("application/json", b"\xef\xbb\xbf{}", {}),
        (FORM, b"a=1&b=x+y%C3%BC&c=", {"a": "1", "b": "x yü", "c": ""}),
        (FORM + "; charset=utf-8", b"a=1&a=2", {"a": "2"}),
        (FORM, b"", {}),
        (FORM, b"payload=%7B%22a%22%3A+1%7D", {"a": 1, "payload": '{"a": 1}'}),
        (FORM, b"payload=%7B%22payload%22%3A+1%7D", {"payload": 1}),
        (FORM, b"payload=%7B%22a%22%3A+1%7D&b=2", {"payload": '{"a": 1}', "b": "2"}),
        (FORM, b"payload=%7B1", {"payload": "{1"}),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="payload"\r\n\r\n{"a": 1}\r\n--x--',
            {"a": 1, "payload": '{"a": 1}'},
        ),
        (None, b"a=1", {"a": "1"}),
        ("", b"a=1", {"a": "1"}),
    ],
)
def test_accepted(content_type: str | None, body: bytes, expected: dict[str, Any]) -> None:
    """JSON objects and urlencoded forms are read, also an object in a form's only field; a missing type means
    a form.
    """
    assert parse_payload(content_type, body) == expected


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        ("application/json", b"", "not JSON"),
        ("application/json", b"{", "line 1, column 2"),
        ("application/json", b"[1]", "not an object"),
        ("application/json", b'"text"', "not an object"),
        ("application/json", b'{"a": NaN}', "NaN"),
        ("application/json", b"\xff", "UTF-8"),
        ("application/json", b'{"a": ' + b"9" * 5000 + b"}", "digits"),
        ("application/json", b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), str(MAX_DEPTH)),
        ("application/json", b"[" * 500_000, str(MAX_DEPTH)),
        (FORM, b"just text", "name=value"),
        (FORM, b'{"a": 1}', "Content-Type: application/json"),
        (FORM, b"a=%ff", "UTF-8"),
        (FORM, b"\xff=1", "UTF-8"),
        (FORM, b"a=1&" * (MAX_FIELDS + 1), "1000"),
        ("text/plain", b"a=1", "not supported"),
        ("application/xml", b"<a/>", "not supported"),
        ("multipart/mixed; boundary=x", b"", "not supported"),
        ("multipart/form-data", b"--x--", "boundary"),
        ("multipart/form-data; boundary=" + "x" * 71, b"", "boundary"),
        ("multipart/form-data; boundary=x", b"", "cut short"),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1',
            "cut short",
        ),
        ("multipart/form-data; boundary=x", b"--x\r\nX: y\r\n\r\n1\r\n--x--", "no field name"),
        ("multipart/form-data; boundary=x", b"--x\r\nno blank line\r\n--x--", "header"),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\n" * (MAX_FIELDS + 5) + b"--x--", "fields"),
    ],
)
def test_refused(content_type: str, body: bytes, message: str) -> None:
    with pytest.raises(PayloadError, match=message) as caught:
        parse_payload(content_type, body)
    assert caught.value.status == 400


def test_deepest_json() -> None:
    assert parse_payload("application/json", b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH)


async def multipart(form: FormData) -> tuple[str, bytes]:
    """Encode a form as aiohttp's own client does."""
    payload = form()
    assert isinstance(payload, MultipartWriter | Payload)
    return payload.headers["Content-Type"], await payload.as_bytes()


async def test_multipart_of_a_real_client() -> None:
    form = FormData(default_to_multipart=True)
    form.add_field("subject", "Grüße")
    form.add_field("message", "two\r\nlines\r\n")
    form.add_field("empty", "")
    form.add_field("cv", b"\x00\xff\xfe", filename="cv.pdf", content_type="application/pdf")
    content_type, body = await multipart(form)
    assert parse_payload(content_type, body) == {
        "subject": "Grüße",
        "message": "two\r\nlines\r\n",
        "empty": "",
        "cv": "cv.pdf",
    }


def test_files_of_old_browsers() -> None:
    """A file's name comes without the sender's folders, as in uploads, and `_charset_` is no field."""
    sent = (
        ("_charset_", "", "utf-8"),
        ("cv", r'; filename="C:\Users\ada\h.txt"', "x"),
        ("none", '; filename=""', ""),
    )
    parts = (f'--x\r\nContent-Disposition: form-data; name="{n}"{file}\r\n\r\n{v}\r\n' for n, file, v in sent)
    body = ("".join(parts) + "--x--").encode()
    assert parse_payload("multipart/form-data; boundary=x", body) == {"cv": "h.txt", "none": ""}


def test_multipart_with_preamble_and_padding() -> None:
    body = b'hello\r\n--x \r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\nbye'
    assert parse_payload('multipart/form-data; boundary="x"', body) == {"a": "1"}


def test_multipart_of_many_boundaries_is_quick() -> None:
    started = time.process_time()
    with pytest.raises(PayloadError):
        parse_payload("multipart/form-data; boundary=x", b"\r\n--x" * 200_000)
    assert time.process_time() - started < 0.5


_types = st.sampled_from(
    ["application/json", FORM, "multipart/form-data; boundary=x", "multipart/form-data", "/", ";", None]
)


@settings(deadline=None)
@given(
    _types | st.text(max_size=30),
    st.binary(max_size=80) | st.text(alphabet='-x\r\n:;="abC', max_size=80).map(str.encode),
)
def test_no_body_crashes(content_type: str | None, body: bytes) -> None:
    """Whatever arrives, the answer is an object or a PayloadError."""
    try:
        assert isinstance(parse_payload(content_type, body), dict)
    except PayloadError as error:
        assert str(error)
