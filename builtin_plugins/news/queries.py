"""Queries about the news: headlines, figures, and whether the feeds can be read."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from kernel.sdk import (
    AUTHENTICATED,
    PUBLIC,
    Action,
    Context,
    Job,
    NoPayload,
    NotConfigured,
    Platform,
    Unhealthy,
    Unit,
)

from .collecting import collect
from .models import Feed, Item
from .settings import NewsSettings

_MOST_DAYS = 14


class NewsQuery(BaseModel):
    """Arguments of `get_news`."""

    feed: str | None = Field(None, max_length=64, description="The name of a feed; all of them by default.")
    limit: int = Field(5, ge=1, le=50, description="Headlines of each feed.")


class NoArguments(BaseModel):
    """An action without arguments."""


async def get_news(ctx: Context, query: NewsQuery) -> dict[str, Any]:
    """The newest headlines by feed; for an unknown feed, the error and those there are (wire-facts 6.6)."""
    feeds = list(ctx.settings_of(NewsSettings).by_name)
    if query.feed is not None and query.feed not in feeds:
        return {"feed": query.feed, "error": "There is no such feed", "available": feeds}
    names = [query.feed] if query.feed else feeds
    return {"headlines": await ctx.read(_headlines, names, query.limit)}


def _headlines(session: Session, feeds: list[str], limit: int) -> dict[str, list[str]]:
    headlines = {}
    for feed in feeds:
        newest = select(Item.title).where(Item.feed == feed).order_by(Item.published_at.desc(), Item.key)
        headlines[feed] = list(session.scalars(newest.limit(limit)))
    return headlines


async def refresh(ctx: Context, _nothing: NoArguments) -> dict[str, Any]:
    """Start reading the feeds, in the background."""
    await ctx.write(_enqueue)
    return {"refreshing": list(ctx.settings_of(NewsSettings).by_name)}


def _enqueue(unit: Unit) -> None:
    unit.enqueue(REFRESH, NoPayload())


async def _refresh(platform: Platform, _payload: NoPayload) -> None:
    await collect(platform)


REFRESH = Job("news.refresh", NoPayload, _refresh, retries=0)

ACTIONS = [
    Action(
        "get_news",
        "Get the latest headlines of the news feeds.",
        NewsQuery,
        get_news,
        access=PUBLIC,
        read_only=True,
        tool="get_news",
    ),
    Action(
        "refresh",
        "Read the news feeds now, in the background.",
        NoArguments,
        refresh,
        access=AUTHENTICATED,
        destructive=False,
        idempotent=True,
    ),
]


async def analyze(platform: Platform) -> dict[str, Any]:
    """Items and latest reading of each feed, and items a day."""
    names = list(platform.settings_of(NewsSettings).by_name)
    return await platform.database.read(_figures, names)


def _figures(session: Session, names: list[str]) -> dict[str, Any]:
    rows = {row.name: row for row in session.scalars(select(Feed).where(Feed.name.in_(names)))}
    counted = select(Item.feed, func.count(), func.max(Item.published_at)).group_by(Item.feed)
    items = {feed: (number, newest) for feed, number, newest in session.execute(counted)}
    feeds = {}
    for name in names:
        row, (number, newest) = rows.get(name), items.get(name, (0, None))
        feeds[name] = {
            "title": row.title if row else "",
            "items": number,
            "newest": newest.isoformat() if newest else None,
            "checked_at": row.checked_at.isoformat() if row and row.checked_at else None,
            "error": row.error if row else None,
        }
    return {"feeds": feeds, "items": sum(feed["items"] for feed in feeds.values()), "per_day": _days(session)}


def _days(session: Session) -> dict[str, int]:
    """The number of items on each of the latest days with any."""
    newest = select(Item.published_at).order_by(Item.published_at.desc()).limit(2_000)
    counted = Counter(f"{moment:%Y-%m-%d}" for moment in session.scalars(newest))
    return dict(sorted(counted.items(), reverse=True)[:_MOST_DAYS])


async def check_feeds(platform: Platform) -> None:
    """Raise Unhealthy when a feed could not be read at the latest collection."""
    names = list(platform.settings_of(NewsSettings).by_name)
    if not names:
        raise NotConfigured()
    wrong = await platform.database.read(_wrong, names)
    if wrong:
        raise Unhealthy(f"{len(wrong)} of {len(names)} feeds can't be read: {', '.join(wrong)}")


def _wrong(session: Session, names: list[str]) -> list[str]:
    query = select(Feed.name).where(Feed.name.in_(names), Feed.error.is_not(None)).order_by(Feed.name)
    return list(session.scalars(query))
