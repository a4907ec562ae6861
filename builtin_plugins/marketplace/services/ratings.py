"""Ratings: one for each account and plugin; the aggregate is exact however many rate at once."""

from __future__ import annotations

import uuid

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from kernel.sdk import Caller, Principal, Unit, utc_now

from ..errors import NeverInstalled
from ..models import Installation, Rating
from ..schemas import RatingGiven, RatingOut, RatingPage, RatingRequest, RatingsQuery
from .records import average, find


def rate(unit: Unit, caller: Caller, plugin_id: str, body: RatingRequest) -> RatingGiven:
    """Give or change the caller's rating. Raises ListingNotFound, NeverInstalled."""
    listing = find(unit.session, caller.principal, plugin_id, lock=True)
    subject = caller.principal.subject
    ever = select(Installation.id).where(Installation.user_id == subject, Installation.plugin_id == plugin_id)
    if unit.session.scalar(ever) is None:
        raise NeverInstalled()
    query = select(Rating).where(Rating.plugin_id == plugin_id, Rating.user_id == subject)
    row = unit.session.scalar(query)
    now = utc_now()
    if row is None:
        row = Rating(id=str(uuid.uuid4()), plugin_id=plugin_id, user_id=subject, rating=0, created_at=now)
        unit.session.add(row)
        listing.rating_count += 1
    listing.rating_sum += body.rating - row.rating
    row.rating, row.review_text, row.updated_at = body.rating, body.review_text, now
    row.username = caller.principal.username
    unit.session.flush()
    fields = RatingOut.model_validate(row, from_attributes=True).model_dump()
    fields |= {"created_at": row.created_at, "updated_at": row.updated_at}
    return RatingGiven(**fields, rating_average=average(listing), rating_count=listing.rating_count)


def list_page(session: Session, principal: Principal, plugin_id: str, query: RatingsQuery) -> RatingPage:
    """A plugin's overall rating, and reviews, newest first. Raises ListingNotFound."""
    listing = find(session, principal, plugin_id)
    mine = Rating.plugin_id == plugin_id
    total = session.scalar(select(func.count()).where(mine)) or 0
    order = (Rating.created_at.desc(), Rating.id)
    page = select(Rating).where(mine).order_by(*order).limit(query.limit).offset(query.offset)
    reviews = [RatingOut.model_validate(row, from_attributes=True) for row in session.scalars(page)]
    return RatingPage(
        rating_average=average(listing),
        rating_count=listing.rating_count,
        reviews=reviews,
        count=len(reviews),
        total=total,
        limit=query.limit,
        offset=query.offset,
    )
