"""Pages of rows that begin behind or end before a row, which stay right while rows come and go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from kernel.sdk import Unprocessable

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class CursorPage:
    """At most `limit` rows behind the id `after`, or those just before the id `before`."""

    limit: int
    newest_first: bool = True
    after: str | None = None
    before: str | None = None


def read_cursor_page(
    session: Session,
    table: type[Row],
    moment: InstrumentedAttribute[Any],
    key: InstrumentedAttribute[Any],
    within: ColumnElement[bool],
    page: CursorPage,
    *only: ColumnElement[bool],
) -> tuple[Sequence[Row], bool]:
    """The rows of a page in order of `moment` and `key`, and whether there are more in its direction.

    A cursor may be any row `within` the list, also one that `only` leaves out. Raises Unprocessable for
    another.
    """
    is_backwards = page.before is not None and page.after is None
    query = select(table).where(within, *only)
    for field, cursor in (("after", page.after), ("before", page.before)):
        if cursor is None:
            continue
        at = session.scalar(select(moment).where(key == cursor, within))
        if at is None:
            raise Unprocessable.field(("query", field), "names nothing in this list", cursor[:64])
        if (field == "after") == page.newest_first:
            query = query.where(or_(moment < at, and_(moment == at, key < cursor)))
        else:
            query = query.where(or_(moment > at, and_(moment == at, key > cursor)))
    is_descending = page.newest_first != is_backwards
    order = (moment.desc(), key.desc()) if is_descending else (moment.asc(), key.asc())
    rows = list(session.scalars(query.order_by(*order).limit(page.limit + 1)))
    page_rows = rows[: page.limit]
    return (page_rows[::-1] if is_backwards else page_rows), len(rows) > page.limit
