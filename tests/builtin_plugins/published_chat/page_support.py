"""What the tests of the published chat share: an owner with a chat, and pages whose visitors use it."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any

from kernel.testing import Actor, Reply, Running
from tests.builtin_plugins.rag.rag_support import ingest, make_base, make_pipeline
from tests.fakes.loaded_once import LoadedOnce

PLUGINS = (
    LoadedOnce,
    "models",
    "rag_methods",
    "extractive_answers",
    "conversations",
    "published_chat",
    "tenancy",
)
ROOMY = {
    "RATE_LIMIT_ENABLED": "true",
    "AUTH_RATE_LIMIT_PER_MINUTE": "100000",
    "RATE_LIMIT_PER_MINUTE": "100000",
    "RATE_LIMIT_ACCOUNT_PER_MINUTE": "100000",
    "PLATFORM_PUBLISHED_CHAT_ADDRESS_RATE": "100000",
}
PAGE = "https://www.example.org"
OTHER_PAGE = "https://shop.example.com"
HOTEL = "How much may a hotel cost per night?"
ENDPOINTS = "/v1/rag/endpoints"


@dataclass
class Shop:
    """A published chat and all that belongs to it."""

    running: Running
    owner: Actor
    base: str
    document: str
    pipeline: str
    endpoint: dict[str, Any]

    @property
    def slug(self) -> str:
        """The chat's slug."""
        return str(self.endpoint["slug"])

    @property
    def path(self) -> str:
        """The endpoint's own path."""
        return f"{ENDPOINTS}/{self.endpoint['id']}"

    def visitor(self, origin: str | None = PAGE) -> Visitor:
        """Somebody on a page of this origin."""
        return Visitor(self.running.anonymous, self.slug, origin)


@dataclass
class Visitor:
    """A page of an origin, with a visitor's token once it has one."""

    client: Actor
    slug: str
    origin: str | None = PAGE
    token: str | None = None

    def headers(self, **more: str) -> dict[str, str]:
        """What the page's browser sends."""
        made = dict(more)
        if self.origin is not None:
            made["Origin"] = self.origin
        if self.token is not None:
            made["Authorization"] = f"Bearer {self.token}"
        return made

    async def page(self) -> Reply:
        """The chat's page data."""
        return await self.client.get(f"/v1/chat/{self.slug}", headers=self.headers())

    async def session(self) -> Reply:
        """Begin or continue a session; keeps the token."""
        answer = await self.client.post(f"/v1/chat/{self.slug}/session", headers=self.headers())
        if answer.status == 200:
            self.token = answer.json()["token"]
        return answer

    async def ask(self, question: object = HOTEL, **fields: object) -> Reply:
        """Ask a question."""
        return await self.client.post(
            f"/v1/chat/{self.slug}/messages", json={"question": question, **fields}, headers=self.headers()
        )

    async def stream(self, question: str = HOTEL) -> list[tuple[str, Any]]:
        """Ask a question and read the events."""
        answer = await self.client.post(
            f"/v1/chat/{self.slug}/messages",
            json={"question": question},
            headers=self.headers(Accept="text/event-stream"),
        )
        assert answer.status == 200, answer.body
        return events_of(answer.body.decode())

    async def rate(self, turn_id: int, rating: str = "up", **fields: object) -> Reply:
        """Rate an answer."""
        return await self.client.post(
            f"/v1/chat/{self.slug}/feedback",
            json={"turn_id": turn_id, "rating": rating, **fields},
            headers=self.headers(),
        )


async def here(shop: Shop, origin: str = PAGE) -> Visitor:
    """A visitor with a session."""
    visitor = shop.visitor(origin)
    answer = await visitor.session()
    assert answer.status == 200, answer.body
    return visitor


def events_of(text: str) -> list[tuple[str, Any]]:
    """Server-sent events as (name, value)."""
    found = []
    for block in filter(None, text.split("\n\n")):
        name, data = block.split("\n", 1)
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def fresh_slug() -> str:
    """A slug that no other test uses."""
    return f"chat-{secrets.token_hex(4)}"


async def publish(owner: Actor, pipeline: str, **fields: object) -> dict[str, Any]:
    """A new endpoint; returns its record."""
    body = {
        "name": "Support",
        "slug": fresh_slug(),
        "pipeline_id": pipeline,
        "allowed_origins": PAGE,
        "rate_limit_per_minute": 600,
        **fields,
    }
    answer = await owner.post(ENDPOINTS, json=body)
    assert answer.status == 201, answer.body
    return dict(answer.json())


async def open_shop(running: Running, **fields: object) -> Shop:
    """A new owner with a handbook and a chat over it."""
    owner = await running.user()
    base = await make_base(owner)
    document = await ingest(running, owner, base)
    pipeline = await make_pipeline(owner, base)
    endpoint = await publish(owner, pipeline, **fields)
    return Shop(running, owner, base, document["document_id"], pipeline, endpoint)
