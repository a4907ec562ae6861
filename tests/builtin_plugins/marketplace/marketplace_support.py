"""What the tests of the marketplace share: listings, and a plugin that knows dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api as plugin_registry
from kernel.sdk import Plugin, hookimpl
from kernel.testing import Actor, Reply
from tests.builtin_plugins.tenancy.tenancy_support import fresh

PLUGINS = "/v1/marketplace/plugins"
SUBMISSIONS = "/v1/marketplace/submissions"
NOWHERE = "00000000-0000-4000-8000-000000000000"

Requires = dict[str, list[tuple[str, str]]]


def graph(requires: Requires) -> Plugin:
    """A plugin that knows what requires what: by id, a list of (id, name)."""

    class Known(Plugin):
        """Knows some dependencies."""

        name = "known"

        @hookimpl
        def find_requirements(
            self, session: Session, plugin_id: str
        ) -> Sequence[plugin_registry.RequiredPlugin]:
            return [plugin_registry.RequiredPlugin(one, name, 1) for one, name in requires.get(plugin_id, [])]

        @hookimpl
        def find_dependents(
            self, session: Session, plugin_id: str
        ) -> Sequence[plugin_registry.RequiredPlugin]:
            dependents = [key for key, needed in requires.items() if plugin_id in dict(needed)]
            return [plugin_registry.RequiredPlugin(one, one, 1) for one in dependents]

    return Known()


async def draft(actor: Actor, **fields: Any) -> dict[str, Any]:
    name = fresh("plugin")
    body = {"name": name, "display_name": name.title(), "author": "Ann", **fields}
    answer = await actor.post(PLUGINS, json=body)
    assert answer.status == 201, answer.body
    listing: dict[str, Any] = answer.json()
    return listing


async def move(actor: Actor, plugin_id: str, trigger: str) -> Reply:
    body = {"notes": "Add a license."} if trigger == "reject" else None
    return await actor.post(f"{SUBMISSIONS}/{plugin_id}/{trigger}", json=body)


async def bring(author: Actor, admin: Actor, status: str, **fields: Any) -> dict[str, Any]:
    """A listing of the author that has come as far as `status`."""
    listing = await draft(author, **fields)
    for trigger in WAYS[status]:
        answer = await move(author if trigger == "submit" else admin, listing["id"], trigger)
        assert answer.status == 200, answer.body
        listing = answer.json()
    return listing


WAYS = {
    "draft": (),
    "submitted": ("submit",),
    "in_review": ("submit", "claim"),
    "approved": ("submit", "claim", "approve"),
    "rejected": ("submit", "reject"),
    "archived": ("submit", "claim", "approve", "archive"),
}
