"""Bodies, queries and paths that do not fit: the 422 array, and nothing a client sends makes a 500."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from yarl import URL

from kernel.testing import Reply, Running, platforms
from tests.fakes.echo import EchoPlugin

together = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with platforms(tmp_path_factory.mktemp("validation")) as start:
        yield await start(EchoPlugin)


async def send(
    running: Running, body: io.BytesIO | bytes | str, content_type: str = "application/json"
) -> Reply:
    data = body.encode() if isinstance(body, str) else body
    return await running.anonymous.post("/v1/echo/body", data=data, headers={"Content-Type": content_type})


def problems(answer: Reply) -> list[dict[str, Any]]:
    assert answer.status == 422, answer.body
    body = answer.json()
    assert body["code"] == "validation_error"
    for item in body["detail"]:
        assert {"type", "loc", "msg", "input"} <= set(item) <= {"type", "loc", "msg", "input", "ctx"}
        assert isinstance(item["msg"], str) and all(isinstance(part, str | int) for part in item["loc"])
    return list(body["detail"])


@together
class TestBody:
    async def test_each_problem_is_named(self, shared: Running) -> None:
        """Every field that does not fit is in the array, with its place, a text and what was sent."""
        found = problems(await send(shared, '{"name": "", "size": 99, "tags": ["a", 5]}'))
        assert [(item["loc"], item["type"], item["input"]) for item in found] == [
            (["body", "name"], "string_too_short", ""),
            (["body", "size"], "less_than_equal", 99),
            (["body", "tags", 1], "string_type", 5),
        ]
        assert found[1]["ctx"] == {"le": 10}

    async def test_values_without_end(self, shared: Running) -> None:
        """Reading a body holds up everybody, so there is an end to its values; commas in a text are none."""
        many = "1," * 1_010_000
        answer = await send(shared, io.BytesIO(f'{{"name": "a", "more": [{many}1]}}'.encode()))
        assert (answer.status, answer.json()["code"]) == (413, "payload_too_large")
        found = problems(await send(shared, io.BytesIO(f'{{"name": "\\"{many}\\\\"}}'.encode())))
        assert [item["type"] for item in found] == ["string_too_long"]

    async def test_problems_without_end(self, shared: Running) -> None:
        """The first 50 are named. Listing hundreds of thousands would hold up everybody: they are counted."""
        found = problems(await send(shared, f'{{"name": "a", "tags": [{"1," * 9_999}1]}}'))
        assert [item["loc"] for item in found] == [["body", "tags", at] for at in range(50)]
        found = problems(await send(shared, f'{{"name": "a", "tags": [{"1," * 10_000}1]}}'))
        assert [(item["type"], item["loc"], item["input"]) for item in found] == [
            ("too_many_errors", ["body"], None)
        ]
        assert "10001" in found[0]["msg"]

    async def test_a_missing_field(self, shared: Running) -> None:
        found = problems(await send(shared, "{}"))
        assert [(item["loc"], item["type"], item["input"]) for item in found] == [
            (["body", "name"], "missing", None)
        ]

    @pytest.mark.parametrize(
        "body", ["", "{", "nonsense", "{'name': 1}", "[1,", '{"name": "a"} x', b"\xff\xfe", "NaN"]
    )
    async def test_what_is_no_json(self, shared: Running, body: bytes | str) -> None:
        """A body that is not JSON is a 422 about the body, with nothing of it repeated."""
        found = problems(await send(shared, body))
        assert found[0]["loc"][0] == "body"
        assert found[0]["input"] is None or body in ("NaN",)

    @pytest.mark.parametrize(
        "content_type",
        [
            *("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"),
            *("+json", "json", "a/b/c+json", "application/json, text/plain"),
        ],
    )
    async def test_another_content_type(self, shared: Running, content_type: str) -> None:
        """A body of another type is 415 and names the one that is expected."""
        answer = await send(shared, '{"name": "a"}', content_type)
        assert (answer.status, answer.json()["code"]) == (415, "unsupported_media_type")
        assert "application/json" in answer.detail

    async def test_a_stray_byte_in_the_content_type(self, shared: Running) -> None:
        """What can't be written as Unicode is not repeated: the answer is JSON that any client reads."""
        host, _, port = shared.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = b"POST /v1/echo/body HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n"
        writer.write(head + b"Content-Type: application/json\xa0\r\n\r\n{}")
        answer = await reader.read()
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.split()[1] == b"415" and json.loads(body)["detail"].isprintable()

    @pytest.mark.parametrize(
        "content_type", ["application/json; charset=utf-8", "application/merge-patch+json"]
    )
    async def test_kinds_of_json(self, shared: Running, content_type: str) -> None:
        assert (await send(shared, '{"name": "a"}', content_type)).status == 200

    async def test_a_byte_order_mark(self, shared: Running) -> None:
        """What editors on Windows write before UTF-8 isn't part of the JSON."""
        assert (await send(shared, b'\xef\xbb\xbf{"name": "a"}')).status == 200

    @pytest.mark.parametrize(
        ("body", "secret"),
        [
            ('{"name": "a", "password": "hunter2"}', "hunter2"),
            ('{"name": "a", "password": ["hunter22-in-a-list"]}', "hunter22"),
            ('["name", "hunter22"]', "hunter22"),
            ('"hunter22"', "hunter22"),
            ('{"name": {"password": "hunter22"}}', "hunter22"),
            ('{"name": [{"api_key": "hunter22"}]}', "hunter22"),
        ],
    )
    async def test_no_secret_is_repeated(self, shared: Running, body: str, secret: str) -> None:
        """What may be a password is not sent back, wherever in the body it stands."""
        answer = await send(shared, body)
        assert answer.status == 422
        assert secret.encode() not in answer.body

    async def test_no_login_is_repeated(self, shared: Running) -> None:
        """The same for a real route: a password in the wrong place stays out of the answer."""
        for body in (["ana", "hunter22"], {"username": {"password": "hunter22"}, "password": 7}, "hunter22"):
            answer = await shared.anonymous.post("/v1/auth/login", json=body)
            assert answer.status == 422
            assert b"hunter22" not in answer.body

    async def test_long_input_is_cut(self, shared: Running) -> None:
        answer = await send(shared, json.dumps({"name": "x" * 100_000}))
        assert answer.status == 422
        assert len(answer.body) < 1000

    @pytest.mark.parametrize(
        "number", ["1e999", "-1e999", "9" * 400, "9" * 5000, "-" + "9" * 5000, "1" + "0" * 20000]
    )
    async def test_huge_numbers(self, shared: Running, number: str) -> None:
        """Numbers of any size are refused where they do not fit, and never break the server."""
        answer = await send(shared, f'{{"name": "a", "size": {number}}}')
        assert problems(answer)[0]["loc"][0] == "body"
        assert (await send(shared, f'{{"name": "a", "anything": {number}}}')).status in (200, 422)

    @pytest.mark.parametrize("opening", ["[", '{"a":'])
    @pytest.mark.parametrize("depth", [100, 500, 50_000])
    async def test_deep_nesting(self, shared: Running, opening: str, depth: int) -> None:
        """Nesting of any depth is answered, not a crash of the stack."""
        closing = "]" if opening == "[" else "}"
        value = opening * depth + "1" + closing * depth
        assert (await send(shared, f'{{"name": "a", "anything": {value}}}')).status in (200, 422)
        assert (await send(shared, f'{{"name": {value}}}')).status == 422

    @pytest.mark.parametrize("text", ["\\u0000", "a\\u0000b", "\\\\\\u0000"])
    async def test_nul_characters(self, shared: Running, text: str) -> None:
        """NUL can't be stored in every database: it is refused at the door."""
        answer = await send(shared, f'{{"name": "{text}"}}')
        assert "NUL" in problems(answer)[0]["msg"]

    @pytest.mark.parametrize(
        ("body", "loc"),
        [
            (r'{"name": "a\u0000"}', ["body", "name"]),
            (r'{"name": "a", "tags": ["b", "\u0000"]}', ["body", "tags", 1]),
            (r'{"name": "a", "anything": {"b": {"c\u0000": 1}}}', ["body", "anything", "b"]),
        ],
    )
    async def test_where_the_nul_is(self, shared: Running, body: str, loc: list[str | int]) -> None:
        found = problems(await send(shared, body))[0]
        assert found["loc"] == loc and "NUL" in found["msg"]

    @pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "-Infinity"])
    @pytest.mark.parametrize(
        ("value", "loc"),
        [("%s", []), ('{"a": [1, %s]}', ["a", 1]), ('[{"a": %s}]', [0, "a"])],
        ids=["plain", "object", "list"],
    )
    async def test_numbers_that_are_not_finite(
        self, shared: Running, number: str, value: str, loc: list[str | int]
    ) -> None:
        """JSON has none, and no database keeps one: the field is named, also within free JSON."""
        found = problems(await send(shared, f'{{"name": "a", "anything": {value % number}}}'))[0]
        assert found["loc"] == ["body", "anything", *loc] and "finite" in found["msg"]

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
    async def test_other_encodings(self, shared: Running, encoding: str) -> None:
        found = problems(await send(shared, '{"name": "a"}'.encode(encoding)))[0]
        assert found["loc"] == ["body"] and "send UTF-8" in found["msg"]

    @pytest.mark.parametrize("text", ["\\\\u0000", "\\\\\\\\u0000"])
    async def test_text_about_nul_characters(self, shared: Running, text: str) -> None:
        """A text that merely spells the escape sequence is no NUL."""
        answer = await send(shared, f'{{"name": "{text}"}}')
        assert answer.status == 200
        assert answer.json()["name"] == json.loads(f'"{text}"')

    @pytest.mark.parametrize("text", ["\\ud800", "\\udc00x", "\\ud800\\ud800"])
    async def test_half_characters(self, shared: Running, text: str) -> None:
        assert (await send(shared, f'{{"name": "{text}"}}')).status == 422

    async def test_duplicate_keys(self, shared: Running) -> None:
        """Of a key given twice the last one counts, as everywhere."""
        assert (await send(shared, '{"name": "a", "name": "b"}')).json()["name"] == "b"


@together
class TestQuery:
    async def test_values(self, shared: Running) -> None:
        """Values are converted; repeated keys make a list; unknown keys are ignored."""
        answer = await shared.anonymous.get("/v1/echo/query?limit=7&tags=a&tags=b&word=x%20y&stray=1")
        assert answer.json() == {"word": "x y", "limit": 7, "tags": ["a", "b"]}
        assert (await shared.anonymous.get("/v1/echo/query")).json()["limit"] == 50

    @pytest.mark.parametrize(("query", "name"), [("word=%00", "word"), ("tags=a&tags=%00", "tags")])
    async def test_nul_characters(self, shared: Running, query: str, name: str) -> None:
        async with shared.session.get(URL(f"{shared.url}/v1/echo/query?{query}", encoded=True)) as raw:
            found = problems(Reply(raw.status, raw.headers, await raw.read()))[0]
        assert found["loc"][:2] == ["query", name] and "NUL" in found["msg"]

    @pytest.mark.parametrize("limit", ["0", "501", "-1", "ten", "", "1.5", "9" * 5000, "1e3", "%00"])
    async def test_out_of_range(self, shared: Running, limit: str) -> None:
        """A number that does not fit is a 422 that names it."""
        answer = await shared.anonymous.get(
            URL(f"{shared.url}/v1/echo/query?limit={limit}", encoded=True).raw_path_qs
        )
        assert problems(answer)[0]["loc"][0] == "query"

    @pytest.mark.parametrize(
        "query", ["word=%00", "tags=a%00b", "word=%ff%fe", "word=%ed%a0%80", "=&&=;%", "%"]
    )
    async def test_odd_characters(self, shared: Running, query: str) -> None:
        """Odd bytes in a query are answered or refused, never a server error."""
        async with shared.session.get(URL(f"{shared.url}/v1/echo/query?{query}", encoded=True)) as answer:
            assert answer.status in (200, 422)


@together
class TestPath:
    @pytest.mark.parametrize("number", ["7", "0", "-7", "2147483647"])
    async def test_integers(self, shared: Running, number: str) -> None:
        assert (await shared.anonymous.get(f"/v1/echo/items/{number}")).json() == int(number)

    @pytest.mark.parametrize(
        "text", ["seven", "1.0", "1_0", "0x1", "%207", "+7", "%D9%A1", "2147483648", "9" * 5000, "%00", "1e1"]
    )
    async def test_what_is_no_integer(self, shared: Running, text: str) -> None:
        async with shared.session.get(URL(f"{shared.url}/v1/echo/items/{text}", encoded=True)) as raw:
            answer = Reply(raw.status, raw.headers, await raw.read())
        found = problems(answer)[0]
        assert found["loc"] == ["path", "item_id"]
        assert ("range" in found["msg"]) == text.isdecimal()

    @pytest.mark.parametrize(
        "text", ["nonsense", "123", "%00", "z" * 36, "00000000-0000-0000-0000-00000000000g"]
    )
    async def test_what_is_no_uuid(self, shared: Running, text: str) -> None:
        async with shared.session.get(URL(f"{shared.url}/v1/echo/things/{text}", encoded=True)) as answer:
            assert (answer.status, await answer.json()) == (404, {"detail": "Not found", "code": "not_found"})

    async def test_uuids_are_made_alike(self, shared: Running) -> None:
        """However an id is spelt, the handler gets one spelling."""
        spelt = "6F9619FF8B86D011B42D00CF4FC964FF"
        answer = await shared.anonymous.get(f"/v1/echo/things/{spelt}")
        assert answer.json() == "6f9619ff-8b86-d011-b42d-00cf4fc964ff"

    async def test_strangers_learn_nothing_of_ids(self, shared: Running) -> None:
        """A caller without a token gets 401 for a malformed id as for any other."""
        for thing in ("nonsense", "6f9619ff-8b86-d011-b42d-00cf4fc964ff"):
            assert (await shared.anonymous.post(f"/v1/echo/things/{thing}")).status == 401

    async def test_rest_of_a_path(self, shared: Running) -> None:
        async with shared.session.get(
            URL(f"{shared.url}/v1/echo/files/a/b%2Fc%2520d", encoded=True)
        ) as answer:
            assert await answer.json() == "a/b/c%20d"

    @pytest.mark.parametrize(
        "text", ["%00", "a%00", "%ff", "%ed%a0%80", "%", "%zz", "..%2f..%2fetc", "a" * 10_000]
    )
    async def test_odd_characters(self, shared: Running, text: str) -> None:
        """Odd bytes in a path are answered or refused, never a server error."""
        async with shared.session.get(URL(f"{shared.url}/v1/echo/names/{text}", encoded=True)) as answer:
            assert answer.status in (200, 400, 404)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    )
)
def test_any_json_at_all(body: Any) -> None:
    """Whatever JSON is echoed in a problem can be rendered, and stays within bounds."""
    from pydantic import TypeAdapter, ValidationError

    from kernel.http.validation import render_errors
    from tests.fakes.echo import EchoBody

    try:
        TypeAdapter(EchoBody).validate_python(body)
    except ValidationError as error:
        rendered = json.dumps(render_errors(error, "body"), allow_nan=False)
        assert len(rendered) < 20_000
