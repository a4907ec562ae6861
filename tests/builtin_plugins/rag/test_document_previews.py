"""Documents as they look, over HTTP: for whom, with what headers, and one at a time for each account."""

from __future__ import annotations

import asyncio
import socket

import pytest
from yarl import URL

from builtin_plugins.rag.services.previews import PREVIEW_TURNS
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import make_base, path_of, somebody, upload

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _document(actor: Actor, base: str) -> str:
    return path_of(base, (await upload(actor, base)).json()["document_id"])


async def test_who_may_look(running: Running, ann: Actor) -> None:
    """Only who may read the document, even with the tag of the page; nobody while it is in the trash."""
    base = await make_base(ann, visibility="shared")
    path = await _document(ann, base)
    shown = await ann.get(f"{path}/preview")
    assert (shown.status, b"<h1>Travel handbook</h1>" in shown.body) == (200, True)
    known = {"If-None-Match": shown.headers["ETag"]}
    eve = await somebody(running)
    assert (await eve.get(f"{path}/preview", headers=known)).status == 304
    await ann.patch(f"/v1/rag/knowledge-bases/{base}", json={"visibility": "private"})
    assert (await eve.get(f"{path}/preview", headers=known)).status == 404
    await ann.delete(f"{path}?trash=true")
    assert (await ann.get(f"{path}/preview", headers=known)).status == 404


async def test_the_page_is_data(ann: Actor, base: str) -> None:
    """Opened by itself, it runs and loads nothing; no proxy keeps it."""
    shown = await ann.get(f"{await _document(ann, base)}/preview")
    policy = shown.headers["Content-Security-Policy"].split("; ")
    assert {"sandbox", "default-src 'none'", "frame-ancestors 'none'"} <= set(policy)
    assert shown.headers["X-Content-Type-Options"] == "nosniff"
    assert shown.headers["Cache-Control"] == "private, no-cache"


@pytest.mark.own_installation
async def test_an_account_takes_one_turn(running: Running, ann: Actor, base: str) -> None:
    """Whoever has a page made waits with the next one; others don't."""
    path = await _document(ann, base)
    ben = await somebody(running)
    other = await _document(ben, await make_base(ben))
    async with running.platform.resource(PREVIEW_TURNS).of_account(str(ann.user["id"])):
        waiting = asyncio.create_task(ann.get(f"{path}/preview"))
        for _ in range(3):
            assert (await ben.get(f"{other}/preview")).status == 200
        assert not waiting.done()
    assert (await waiting).status == 200


@pytest.mark.own_installation
async def test_who_does_not_read_a_page_gets_no_other(running: Running, ann: Actor, base: str) -> None:
    """So that no account can fill the server's memory with pages."""
    large = await upload(ann, base, "large.html", "<p>Boats leave the harbour at seven.</p>" * 200_000)
    path, small = path_of(base, large.json()["document_id"]), await _document(ann, base)
    ben = await somebody(running)
    other = await _document(ben, await make_base(ben))
    url = URL(running.url)
    with socket.socket() as unread:
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        unread.connect((url.host, url.port))
        loop = asyncio.get_running_loop()
        unread.setblocking(False)
        lines = (f"GET {path}/preview HTTP/1.1", f"Host: {url.host}", f"Authorization: Bearer {ann.token}")
        await loop.sock_sendall(unread, "\r\n".join((*lines, "", "")).encode())
        assert (await loop.sock_recv(unread, 15)).startswith(b"HTTP/1.1 200 OK")
        waiting = asyncio.create_task(ann.get(f"{small}/preview"))
        for _ in range(3):
            assert (await ben.get(f"{other}/preview")).status == 200
        assert not waiting.done()
    assert (await waiting).status == 200
    assert (await ann.delete(path)).status == 200  # the next test that runs all jobs would embed all of it
