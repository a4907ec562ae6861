"""Pages, blog posts and attachments of spaces: listed without their bodies, read one by one."""

from __future__ import annotations

import html
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from yarl import URL

from builtin_plugins.source_confluence.editions import Edition, Space
from builtin_plugins.source_confluence.settings import ConfluenceSettings
from builtin_plugins.sources.api import (
    ItemFault,
    ItemUnsuitable,
    ItemVanished,
    Listing,
    ListingEnd,
    ListingIncomplete,
    SourceItem,
)

_CDATA: Final = ("<![CDATA[", "]]>")
_PARAMETER: Final = ("<ac:parameter", "</ac:parameter>")
_ATTACHMENT: Final = "attachment"
_GATEWAY: Final = "api.atlassian.com"


@dataclass(frozen=True, slots=True)
class WikiContent:
    """A page or blog post as a listing has it: `entry` is what Confluence says of it."""

    space: Space
    kind: str
    id: str
    entry: Mapping[str, Any]

    @property
    def ancestors(self) -> Sequence[Mapping[str, Any]]:
        """What it is below, from the top down. Raises ListingIncomplete."""
        ancestors = self.entry.get("ancestors")
        if not isinstance(ancestors, list) or not all(
            isinstance(one, dict) and one.get("id") for one in ancestors
        ):
            raise ListingIncomplete(f"Confluence does not say where {self.id} is")
        return ancestors


class WikiSource:
    """Everything is known by the id that Confluence gives it."""

    def __init__(self, edition: Edition, settings: ConfluenceSettings) -> None:
        self.edition = edition
        self._settings = settings
        self.is_exact = False
        """Whether a body is read only in the version that was listed: rights were read after that."""

    async def documents(self, since: str | None) -> Listing:
        """All content of the spaces. Raises SourceFault."""
        for space in await self.edition.spaces(self._settings.spaces):
            async with aclosing(self.contents(space)) as contents:
                async for content in contents:
                    yield self._page(content)
                    if self._settings.attachments:
                        for attachment in await self.attachments(content):
                            yield self._attachment(content, attachment)
        yield ListingEnd()

    async def contents(self, space: Space) -> AsyncGenerator[WikiContent, None]:
        """Pages and blog posts of a space. Raises SourceFault."""
        for kind in ("page", "blogpost") if self._settings.blog_posts else ("page",):
            async with aclosing(self.edition.entries(self.edition.listing(space, kind))) as entries:
                async for entry in entries:
                    if not entry.get("id"):
                        raise ListingIncomplete("Confluence lists a page without an id")
                    if _is_in(entry, space):
                        yield WikiContent(space, kind, str(entry["id"]), entry)

    async def attachments(self, content: WikiContent) -> Sequence[Mapping[str, Any]]:
        """Those of a content: as listed with it, if these are all. Raises SourceFault."""
        children = content.entry.get("children")
        listed = children.get(_ATTACHMENT) if isinstance(children, dict) else None
        if not isinstance(listed, dict) or not isinstance(listed.get("results"), list):
            raise ListingIncomplete(f"Confluence does not say what is attached to {content.id}")
        results: list[Mapping[str, Any]] = listed["results"]
        if not is_whole(listed):
            results = await self.edition.all_of(self.edition.attachments(content.kind, content.id))
        if not all(isinstance(one, dict) and one.get("id") for one in results):
            raise ListingIncomplete(f"Confluence does not say what is attached to {content.id}")
        return results

    def _page(self, content: WikiContent) -> SourceItem:
        return SourceItem(
            identity=content.id,
            etag=_version(content.entry),
            path=f"{_place(content)}{_part(content.entry)}.html",
            modified=_moment(content.entry),
            media_type="text/html",
            link=self._link(content.entry),
            details={"space": content.space.key, "kind": content.kind},
        )

    def _attachment(self, content: WikiContent, entry: Mapping[str, Any]) -> SourceItem:
        extensions = entry.get("extensions")
        about = {**entry, **extensions} if isinstance(extensions, dict) else entry
        size = about.get("fileSize")
        return SourceItem(
            identity=str(entry["id"]),
            etag=_version(entry),
            path=f"{_place(content)}{_part(content.entry)}/{_part(entry)}",
            size=size if isinstance(size, int) else None,
            modified=_moment(entry),
            media_type=about.get("mediaType") or None,
            link=self._link(entry),
            details={"space": content.space.key, "kind": _ATTACHMENT, "page": content.id},
        )

    def _link(self, entry: Mapping[str, Any]) -> str | None:
        links = entry.get("_links")
        path = links.get("webui") if isinstance(links, dict) else None
        if not path or URL(self._settings.url).host == _GATEWAY:
            return None
        return f"{self._settings.url}{path}"

    @asynccontextmanager
    async def content(self, item: SourceItem) -> AsyncIterator[AsyncIterator[bytes]]:
        """A body in storage format, or an attachment. Raises ItemFault, SourceFault.

        In other formats, Confluence fills in pages and lists that this account may see, and readers may not.
        """
        kind = item.details.get("kind", "")
        if kind == _ATTACHMENT:
            place = item.details.get("page", ""), item.identity, item.name, item.etag
            async with self.edition.api.content(self.edition.download(*place)) as pieces:
                yield pieces
            return
        answer = await self.edition.api.read(self.edition.body(kind, item.identity))
        if answer is None:
            raise ItemVanished("It was deleted since it was listed")
        if self.is_exact and _version(answer) != item.etag:
            raise ItemFault("It was changed since it was listed")
        yield _whole(_document(answer))


def is_whole(part: Mapping[str, Any]) -> bool:
    """Whether a list within an answer holds all there is."""
    links, size, limit = part.get("_links"), part.get("size"), part.get("limit")
    has_next = isinstance(links, dict) and bool(links.get("next"))
    return not has_next and not (isinstance(size, int) and isinstance(limit, int) and size >= limit)


def _is_in(entry: Mapping[str, Any], space: Space) -> bool:
    """Whether a content is in a space now: a search answers from an index, which notes later what was moved,
    archived or deleted. Raises ListingIncomplete.
    """
    place = entry.get("space")
    if not isinstance(place, dict) or not place.get("key"):
        raise ListingIncomplete("Confluence does not say in which space something is")
    return bool(place["key"] == space.key and entry.get("status", "current") == "current")


def _document(answer: Mapping[str, Any]) -> bytes:
    """A page of HTML: the text of macros stays, their parameters and names go. Raises ItemUnsuitable."""
    try:
        text = str(answer["body"]["storage"]["value"])
    except (LookupError, TypeError):
        raise ItemUnsuitable("Confluence sends no text for it") from None
    text = _without_parameters(_with_plain_text(text))
    title = html.escape(str(answer.get("title") or ""))
    head = f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{title}</title></head>\n'
    return f"{head}<body>{text}</body></html>\n".encode(errors="replace")


def _with_plain_text(text: str) -> str:
    """CDATA sections, such as code, as HTML has them."""
    parts, place = list[str](), 0
    opening, closing = _CDATA
    while (start := text.find(opening, place)) >= 0:
        end = text.find(closing, start)
        if end < 0:
            break
        parts += [text[place:start], html.escape(text[start + len(opening) : end], quote=False)]
        place = end + len(closing)
    return "".join([*parts, text[place:]])


def _without_parameters(text: str) -> str:
    """Without the parameters of macros: nobody reads them on the page."""
    parts, place = list[str](), 0
    opening, closing = _PARAMETER
    while (start := text.find(opening, place)) >= 0:
        end = text.find(">", start) + 1
        if end and text[end - 2] != "/":
            close = text.find(closing, end)
            end = close + len(closing) if close >= 0 else 0
        if not end:
            break
        parts.append(text[place:start])
        place = end
    return "".join([*parts, text[place:]])


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _version(entry: Mapping[str, Any]) -> str:
    version = entry.get("version")
    number = version.get("number") if isinstance(version, dict) else None
    if not isinstance(number, int):
        raise ListingIncomplete("Confluence does not say which version something is of")
    return str(number)


def _moment(entry: Mapping[str, Any]) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(entry["version"].get("when") or entry["version"]["createdAt"]))
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
    return moment if moment.tzinfo is not None else None


def _place(content: WikiContent) -> str:
    above = ["blog"] if content.kind == "blogpost" else [_part(one) for one in content.ancestors]
    return "".join(f"{one}/" for one in [content.space.key, *above])


def _part(entry: Mapping[str, Any]) -> str:
    """A title as a part of a path."""
    return str(entry.get("title") or entry.get("id")).replace("/", "\N{DIVISION SLASH}")
