"""A page of a list and its total count, in a single statement that is built once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import CTE, Select, bindparam, func, select, true
from sqlalchemy.orm import Session

from kernel.libs.prepared import Prepared, Record, one_statement

Extend = Callable[[CTE, Select[Any]], Select[Any]]


def page_of(records: Select[Any], *order: str, extend: Extend | None = None) -> Prepared:
    """At most `limit` of the `records` from `offset` on, ordered by these of their columns, and the `total`.

    `limit` and `offset` are bound at execution. `extend(page, statement)` may join what only the rows of the
    page need. Run it with `read_page`.
    """
    ordered = records.order_by(*(records.selected_columns[name] for name in order))
    page = ordered.limit(bindparam("limit")).offset(bindparam("offset")).cte("page")
    total = records.with_only_columns(func.count().label("total"), maintain_column_froms=True).subquery(
        "every"
    )
    rows = select(page, total.c.total).select_from(total.outerjoin(page, true()))
    rows = rows if extend is None else extend(page, rows)
    return Prepared(rows.order_by(*(page.c[name] for name in order)))


@one_statement
def read_page(session: Session, page: Prepared, values: Mapping[str, Any]) -> tuple[list[Record], int]:
    """The rows of a page, and the total count. The column `id` must never be null."""
    rows = page.all(session, values)
    # If the page is empty, the total comes with a row of nulls.
    return [row for row in rows if row["id"] is not None], rows[0]["total"]
