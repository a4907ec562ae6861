"""Full-text search: FTS5 on SQLite, tsvector on PostgreSQL, trigrams of names for misspellings.

Only approved listings are in the index; it is written in the transaction that changes the listing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ARRAY, BigInteger, bindparam, delete, func, insert, select, text
from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api as plugin_registry
from kernel.sdk import Principal, Unit

from ..models import ListedTool, Listing, NameGram
from ..schemas import ListingPage
from ..states import PUBLIC
from .records import page_from
from .words import grams, likeness, words

_LIKE_ENOUGH = 0.4
_MOST_ALIKE = 50
_MOST_QUERY_WORDS = 12

_MOST_NAMES = 200
_MOST_RANKED = 1_000

# Of words that are almost everywhere PostgreSQL would rank every listing, ten times as slowly as SQLite:
# it ranks the newest _MOST_RANKED hits, and the others follow, the newest first.
# bm25's weights of name, display name, tools, description; tsvector has the letters A to D.
_SQLITE = text(
    """
    SELECT rowid FROM marketplace_search
    WHERE marketplace_search MATCH :query AND rowid NOT IN :names
    ORDER BY bm25(marketplace_search, 10.0, 6.0, 3.0, 1.0), rowid
    LIMIT :limit OFFSET :offset
    """
).bindparams(bindparam("names", expanding=True))
_SQLITE_COUNT = text("SELECT count(*) FROM marketplace_search WHERE marketplace_search MATCH :query")
_SQLITE_NAMES = text(
    """
    SELECT number FROM marketplace_listing
    WHERE status = 'approved' AND name_key >= :name AND name_key < :name || char(1114111)
    ORDER BY length(name_key), name_key LIMIT :most
    """
)
# One array: a list of parameters would make another statement for each number of names.
_NAMES = bindparam("names", type_=ARRAY(BigInteger))
_FITS = "FROM marketplace_search WHERE document @@ CAST(:query AS tsquery)"
_POSTGRES = text(
    f"""
    WITH hits AS MATERIALIZED (SELECT number {_FITS})
    SELECT number, (SELECT count(*) FROM hits) FROM marketplace_search
    WHERE number = ANY (ARRAY(
        SELECT number FROM hits WHERE number <> ALL (:names) ORDER BY number DESC LIMIT {_MOST_RANKED}
    ))
    ORDER BY ts_rank('{{0.1, 0.3, 0.6, 1.0}}', document, CAST(:query AS tsquery), 1) DESC, number
    LIMIT :limit OFFSET :offset
    """
).bindparams(_NAMES)
_POSTGRES_OLDER = text(
    f"SELECT number {_FITS} AND number <> ALL (:names) ORDER BY number DESC LIMIT :limit OFFSET :offset"
).bindparams(_NAMES)
_POSTGRES_COUNT = text(f"SELECT count(*) {_FITS}")
_POSTGRES_NAMES = text(
    """
    SELECT number FROM marketplace_listing
    WHERE status = 'approved' AND name_key ~>=~ :name AND name_key ~<~ (:name || chr(1114111))
    ORDER BY length(name_key), name_key COLLATE "C" LIMIT :most
    """
)


def index(unit: Unit, listing: Listing) -> None:
    """Bring the index of one listing up to date; called with every change of it."""
    unit.session.flush()
    unit.notify(plugin_registry.LISTINGS_CHANGED, listing.id)
    forget(unit, listing.number)
    if listing.status != PUBLIC:
        return
    _add_words(unit.session, listing)
    rows = [
        {"gram": gram, "number": listing.number}
        for gram in sorted(grams(f"{listing.name} {listing.display_name}"))
    ]
    if rows:
        unit.session.execute(insert(NameGram), rows)


def derive(session: Session) -> None:
    """Refill the full-text index, as after a restore."""
    session.execute(text("DELETE FROM marketplace_search"))
    for listing in session.scalars(select(Listing).where(Listing.status == PUBLIC)):
        _add_words(session, listing)


def _add_words(session: Session, listing: Listing) -> None:
    fields = _fields(session, listing)
    if session.get_bind().dialect.name == "sqlite":
        values = {f"f{at}": " ".join(field) for at, field in enumerate(fields)}
        session.execute(
            text(
                "INSERT INTO marketplace_search (rowid, name, display_name, tools, description) "
                "VALUES (:number, :f0, :f1, :f2, :f3)"
            ),
            {"number": listing.number, **values},
        )
    else:
        session.execute(
            text("INSERT INTO marketplace_search (number, document) VALUES (:number, CAST(:d AS tsvector))"),
            {"number": listing.number, "d": _vector(fields)},
        )


def forget(unit: Unit, number: int) -> None:
    """Take a listing out of the index."""
    column = "rowid" if unit.is_sqlite else "number"
    unit.session.execute(text(f"DELETE FROM marketplace_search WHERE {column} = :number"), {"number": number})
    unit.session.execute(delete(NameGram).where(NameGram.number == number))


def _fields(session: Session, listing: Listing) -> list[list[str]]:
    """The words of name, display name, tools and description."""
    tools = session.execute(
        select(ListedTool.tool_name, ListedTool.description).where(
            ListedTool.plugin_id == listing.id, ListedTool.active.is_(True)
        )
    )
    tool_words = " ".join(f"{name} {description or ''}" for name, description in tools)
    return [
        words(part or "") for part in (listing.name, listing.display_name, tool_words, listing.description)
    ]


def _vector(fields: Sequence[list[str]]) -> str:
    """A tsvector as text: words with their positions, at most 16,383 of them (PostgreSQL's limit)."""
    places: dict[str, list[str]] = {}
    at = 0
    for weight, field in zip("ABCD", fields, strict=True):
        for word in field:
            at += 1
            positions = places.setdefault(word, [])
            if at < 16_000 and len(positions) < 200:
                positions.append(f"{at}{weight}")
    return " ".join(f"'{word}':{','.join(positions)}" for word, positions in places.items() if positions)


def search(session: Session, principal: Principal, q: str, bounds: tuple[int, int]) -> ListingPage:
    """Approved listings that match: the exact name first, then by relevance; similar names if none match."""
    terms = words(q)[:_MOST_QUERY_WORDS]
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    limit, offset = bounds
    if not terms:
        signs = _named(session, q, is_sqlite=is_sqlite)
        page = _load(session, signs[offset : offset + limit])
        return page_from(page, len(signs), bounds, principal)
    query = _fts5(terms) if is_sqlite else _tsquery(terms)
    numbers, total = _ranked(session, q, query, bounds, is_sqlite=is_sqlite)
    if total:
        return page_from(_load(session, numbers), total, bounds, principal)
    alike = _alike(session, q)
    return page_from(_load(session, alike[offset : offset + limit]), len(alike), bounds, principal)


def _ranked(
    session: Session, q: str, query: str, bounds: tuple[int, int], *, is_sqlite: bool
) -> tuple[list[int], int]:
    """Names that begin with the query, the shortest and so the exact one first; then by relevance.

    Also returns how many there are on all pages.
    """
    limit, offset = bounds
    named = _named(session, q, is_sqlite=is_sqlite)
    page = named[offset : offset + limit]
    total = 0
    if len(page) < limit:
        parameters = {"query": query, "names": named}
        rest = (limit - len(page), max(0, offset - len(named)))
        by_relevance = _by_bm25 if is_sqlite else _by_ts_rank
        more, total = by_relevance(session, parameters, *rest)
        page += more
    return page, total or _count(session, query, is_sqlite=is_sqlite)


def _named(session: Session, q: str, *, is_sqlite: bool) -> list[int]:
    """Listings whose names begin with the query, the shortest first, including names without letters."""
    values = {"name": name_key(q), "most": _MOST_NAMES}
    if not values["name"]:
        return []
    return [n for (n,) in session.execute(_SQLITE_NAMES if is_sqlite else _POSTGRES_NAMES, values)]


def _by_bm25(session: Session, parameters: dict[str, Any], limit: int, offset: int) -> tuple[list[int], int]:
    rows = session.execute(_SQLITE, {**parameters, "limit": limit, "offset": offset})
    return [number for (number,) in rows], 0


def _by_ts_rank(
    session: Session, parameters: dict[str, Any], limit: int, offset: int
) -> tuple[list[int], int]:
    """The listings, and how many there are in total; 0 without rows."""
    rows = session.execute(_POSTGRES, {**parameters, "limit": limit, "offset": offset}).all()
    numbers, total = [number for number, _ in rows], rows[0][1] if rows else 0
    if offset + limit > _MOST_RANKED:
        older = {**parameters, "limit": limit - len(numbers), "offset": max(offset, _MOST_RANKED)}
        numbers += [number for (number,) in session.execute(_POSTGRES_OLDER, older)]
    return numbers, total


def _count(session: Session, query: str, *, is_sqlite: bool) -> int:
    return int(session.scalar(_SQLITE_COUNT if is_sqlite else _POSTGRES_COUNT, {"query": query}) or 0)


def name_key(name: str) -> str:
    """A name for comparison: characters that look alike are equal, and invisible ones are ignored."""
    visible = (char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf")
    return " ".join("".join(visible).split()).casefold()


def _fts5(terms: Sequence[str]) -> str:
    return " ".join(f'"{word}"*' for word in terms)


def _tsquery(terms: Sequence[str]) -> str:
    return " & ".join(f"'{word}':*" for word in terms)


def _load(session: Session, numbers: Sequence[int]) -> list[Listing]:
    """The listings of `numbers` in their order.

    The status is compared as an expression: using its index, a database would scan the whole catalog.
    """
    is_public = Listing.status.concat("") == PUBLIC
    rows = session.scalars(select(Listing).where(Listing.number.in_(numbers), is_public))
    rows_by_number = {row.number: row for row in rows}
    return [rows_by_number[number] for number in numbers if number in rows_by_number]


def _alike(session: Session, q: str) -> list[int]:
    """Numbers of listings with names similar to `q`, the most similar first."""
    query_grams = grams(q)
    shared = (
        select(NameGram.number, func.count().label("shared"))
        .where(NameGram.gram.in_(sorted(query_grams)))
        .group_by(NameGram.number)
        .order_by(func.count().desc(), NameGram.number)
        .limit(_MOST_ALIKE)
    )
    numbers = [number for number, _ in session.execute(shared)]
    names = session.execute(
        select(Listing.number, Listing.name, Listing.display_name).where(Listing.number.in_(numbers))
    )
    scored = [
        (max(likeness(query_grams, grams(name)), likeness(query_grams, grams(display_name))), number)
        for number, name, display_name in names
    ]
    similar = [(score, number) for score, number in scored if score >= _LIKE_ENOUGH]
    return [number for score, number in sorted(similar, key=lambda pair: (-pair[0], pair[1]))]
