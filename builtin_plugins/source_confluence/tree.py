"""What pages of the cloud are below: pages, folders, whiteboards, databases and embeds.

Restrictions of all of these are inherited, and nothing documents that `ancestors` of the first version names
them. https://developer.atlassian.com/cloud/confluence/rest/v2
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from builtin_plugins.source_confluence.editions import Edition, Space
from builtin_plugins.sources.api import RouteRefused

_ROUTES: Final = {
    "page": "pages",
    "folder": "folders",
    "whiteboard": "whiteboards",
    "database": "databases",
    "embed": "embeds",
}
_PAGE: Final = "250"
_TOP: Final = ""


class PageTree:
    """Of one reading: pages are listed, and each other level is asked once for what it is below."""

    def __init__(self, edition: Edition) -> None:
        self._edition = edition
        self._parents = dict[str, str | None]()
        self._kinds = dict[str, str]()

    async def add(self, space: Space) -> None:
        """List the pages of a space. Raises SourceFault."""
        url = self._edition.route(f"/api/v2/spaces/{quote(space.id)}/pages", {"limit": _PAGE})
        async for entry in self._edition.entries(url):
            self._note(str(entry.get("id")), entry)

    async def above(self, page: str) -> list[str] | None:
        """The ids of all levels, from the top down; None if one can't be read. Raises SourceFault."""
        chain = list[str]()
        parent = await self._parent(page)
        while parent and parent not in chain:
            chain.append(parent)
            parent = await self._parent(parent)
        return chain[::-1] if parent == _TOP else None

    async def _parent(self, content: str) -> str | None:
        if content not in self._parents:
            self._note(content, await self._read_level(content))
        return self._parents[content]

    async def _read_level(self, content: str) -> Mapping[str, Any]:
        """What the route of a level says; nothing if it can't be read, or there is no such route."""
        place = _ROUTES.get(self._kinds.get(content, "page"))
        if place is None:
            return {}
        try:
            answer = await self._edition.api.read(
                self._edition.route(f"/api/v2/{place}/{quote(content, safe='')}")
            )
        except RouteRefused:
            return {}
        return answer if isinstance(answer, dict) else {}

    def _note(self, content: str, entry: Mapping[str, Any]) -> None:
        """Note the parent of a content: None if the entry does not say it."""
        parent, kind = entry.get("parentId", _TOP), entry.get("parentType")
        if parent is None and kind in (None, "page"):
            self._parents[content] = _TOP
        else:
            self._parents[content] = str(parent) if parent and kind else None
        if parent and kind:
            self._kinds[str(parent)] = str(kind)
