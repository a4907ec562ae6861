"""A visitor's token × every route of the gateway: it opens the visitors' own routes and nothing else."""

from __future__ import annotations

import re
import time
from pathlib import Path

import jwt
import pytest

from kernel.gateway.app import gateway_app
from kernel.plugins.loading import installed
from kernel.testing import platforms
from tests.builtin_plugins.published_chat.page_support import PAGE, ROOMY, Visitor, here, open_shop
from tests.fakes.hash_embeddings import HashEmbeddings

OWN = {f"POST /v1/chat/{{slug}}/{name}" for name in ("session", "messages", "feedback")}
OWN_PROOF = {"POST /webhook/{path}"}  # a manifest says what its sender must prove; a token is nothing there
NOWHERE = "00000000-0000-4000-8000-000000000000"
_FORMS = {"uuid": NOWHERE, "int": "1", "path": "a/b", None: "unknown"}


@pytest.mark.asyncio
async def test_useless_elsewhere(tmp_path: Path) -> None:
    """401 at every other route but webhooks, public ones included, with and without the page's origin."""
    async with platforms(tmp_path) as start:
        names = [candidate.name for candidate in installed()]
        running = await start(*names, HashEmbeddings(), env=ROOMY)
        visitor = await here(await open_shop(running))
        opened, tried = [], 0
        for endpoint in gateway_app(running.platform).endpoints:
            label = f"{endpoint.route.method} {endpoint.template.openapi}"
            if label in OWN | OWN_PROOF:
                continue
            path = re.sub(r"{(\w+)(?::(\w+))?}", lambda found: _FORMS[found[2]], endpoint.template.path)
            for headers in (visitor.headers(), {"Authorization": f"Bearer {visitor.token}"}):
                answer = await running.anonymous.request(
                    endpoint.route.method, path, json={}, headers=headers
                )
                tried += 1
                if answer.status != 401:
                    opened.append(f"{label}: {answer.status} {answer.body[:100]!r}")
        assert tried > 300
        assert not opened, "\n".join(opened)


@pytest.mark.asyncio
async def test_forged_and_expired(tmp_path: Path) -> None:
    async with platforms(tmp_path) as start:
        plugins = (
            "embeddings",
            "models",
            "rag",
            "extractive_answers",
            "conversations",
            "published_chat",
            HashEmbeddings(),
        )
        running = await start(*plugins, env=ROOMY)
        shop = await open_shop(running)
        visitor = await here(shop)
        key = running.platform.secrets.get("published-chat") or ""
        claims = jwt.decode(visitor.token or "", key, algorithms=["HS256"], audience="published_chat")

        def bearer(token: str) -> Visitor:
            return Visitor(running.anonymous, shop.slug, PAGE, token)

        expired = {**claims, "exp": int(time.time()) - 60}
        old = bearer(jwt.encode(expired, key, "HS256"))
        assert (await old.ask()).json()["code"] == "visitor_token_invalid"
        assert (await old.session()).status == 200
        assert (await old.ask()).status == 200
        ancient = {**expired, "start": int(time.time()) - 25 * 3600}
        assert (await bearer(jwt.encode(ancient, key, "HS256")).session()).status == 401
        forged = (
            jwt.encode(claims, "another key that is long enough for HS256", "HS256"),
            jwt.encode(claims, "", "none"),
            jwt.encode({**claims, "aud": "other"}, key, "HS256"),
            jwt.encode({**claims, "ep": NOWHERE}, key, "HS256"),
            jwt.encode({name: claims[name] for name in claims if name != "sub"}, key, "HS256"),
        )
        for token in forged:
            for answer in (await bearer(token).ask(), await bearer(token).session()):
                assert (answer.status, answer.json()["code"]) == (401, "visitor_token_invalid")
