"""Several requests in one, as Google takes them: multipart, each part a request or an answer of HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from email.message import Message
from email.parser import BytesParser
from typing import Final

from yarl import URL

from builtin_plugins.sources.api import BatchedAnswer, JsonApi, ListingIncomplete

MOST_CALLS: Final = 100
"""The most that Google takes in one."""
_BOUNDARY: Final = "batch_platform"


async def send_batch(api: JsonApi, address: URL, urls: Sequence[URL]) -> Mapping[URL, BatchedAnswer]:
    """The answers to GET requests, in no order. Raises ListingIncomplete, SourceFault."""
    parts = [
        f"--{_BOUNDARY}\r\nContent-Type: application/http\r\nContent-ID: <{number}>\r\n\r\n"
        f"GET {url.raw_path_qs} HTTP/1.1\r\nAccept: application/json\r\n\r\n\r\n"
        for number, url in enumerate(urls)
    ]
    sent = "".join([*parts, f"--{_BOUNDARY}--\r\n"]).encode()
    content, media_type = await api.exchange(address, sent, f"multipart/mixed; boundary={_BOUNDARY}")
    head = f"Content-Type: {media_type}\r\n\r\n".encode()
    answers = BytesParser().parsebytes(head + content).get_payload()
    try:
        return dict(_answer(urls, one) for one in answers if isinstance(one, Message))
    except (LookupError, ValueError, AttributeError):
        raise ListingIncomplete("Google's answer to a batch is not understood") from None


def _answer(urls: Sequence[URL], part: Message) -> tuple[URL, BatchedAnswer]:
    number = str(part["Content-ID"]).strip("<>").removeprefix("response-")
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        raise ValueError("a part is no answer")
    line, _, rest = payload.lstrip().partition(b"\r\n")
    head, _, body = rest.partition(b"\r\n\r\n")
    headers = BytesParser().parsebytes(head, headersonly=True)
    answer = json.loads(body) if body.strip() else None
    return urls[int(number)], BatchedAnswer(int(line.split()[1]), headers["Retry-After"], answer)
