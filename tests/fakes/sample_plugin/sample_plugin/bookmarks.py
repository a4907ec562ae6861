"""The behaviour behind the routes and the action; knows no HTTP."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from kernel.sdk import Conflict, Platform, Unit
from sample_plugin.models import Bookmark
from sample_plugin.schemas import BookmarkCreate
from sample_plugin.settings import BookmarksSettings


class Full(Conflict):
    code = "bookmarks_full"
    default_detail = "There is no room for another bookmark; raise BOOKMARKS_LIMIT"


class Known(Conflict):
    code = "bookmark_exists"
    default_detail = "This address has a bookmark already"


async def count(platform: Platform) -> int:
    """How many bookmarks there are."""
    return await platform.database.read(_count)


def _count(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(Bookmark)) or 0


async def add(platform: Platform, wanted: BookmarkCreate) -> Bookmark:
    """Keep a bookmark. Raises Full or Known."""
    try:
        return await platform.database.write(_add, wanted, platform.settings_of(BookmarksSettings).limit)
    except IntegrityError:
        raise Known() from None


def _add(unit: Unit, wanted: BookmarkCreate, limit: int) -> Bookmark:
    if _count(unit.session) >= limit:
        raise Full()
    bookmark = Bookmark(**wanted.model_dump())
    unit.session.add(bookmark)
    return bookmark


async def page(platform: Platform, limit: int, offset: int) -> tuple[Sequence[Bookmark], int]:
    """Bookmarks by age, and how many there are."""
    return await platform.database.read(_page, limit, offset)


def _page(session: Session, limit: int, offset: int) -> tuple[Sequence[Bookmark], int]:
    query = select(Bookmark).order_by(Bookmark.id).limit(limit).offset(offset)
    return session.scalars(query).all(), _count(session)


async def find(platform: Platform, words: str) -> Sequence[Bookmark]:
    """Bookmarks whose title or note holds all of the words."""
    query = select(Bookmark).order_by(Bookmark.id)
    for word in words.split():
        query = query.where(
            Bookmark.title.icontains(word, autoescape=True) | Bookmark.note.icontains(word, autoescape=True)
        )
    return await platform.database.read(lambda session: session.scalars(query.limit(50)).all())
