"""Categories of the catalog."""

from __future__ import annotations

import uuid

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from kernel.sdk import Caller, Conflict, Unit, audit

from ..errors import CategoryNotFound
from ..models import Category, Listing
from ..schemas import Categories, CategoryCreate, CategoryOut
from ..states import PUBLIC


def list_all(session: Session) -> Categories:
    """Every category with the number of its approved plugins."""
    query = (
        select(Category, func.count(Listing.number))
        .outerjoin(Listing, (Listing.category_id == Category.id) & (Listing.status == PUBLIC))
        .group_by(Category.id)
        .order_by(Category.name, Category.id)
    )
    categories = [_render(row, number) for row, number in session.execute(query)]
    return Categories(categories=categories, count=len(categories))


def create(unit: Unit, caller: Caller, body: CategoryCreate) -> CategoryOut:
    """A new category. Raises Conflict for a slug that is taken."""
    unit.lock("marketplace.categories")
    if unit.session.scalar(select(Category.id).where(Category.slug == body.slug)) is not None:
        raise Conflict(f"A category '{body.slug}' already exists; choose another slug")
    category = Category(id=str(uuid.uuid4()), **body.model_dump())
    unit.session.add(category)
    after = {"slug": category.slug}
    audit(unit, "category.created", "category", category.id, after=after, origin=caller.origin)
    return _render(category, 0)


def remove(unit: Unit, caller: Caller, category_id: str) -> None:
    """Delete a category; its listings stay, in none. Raises CategoryNotFound."""
    category = unit.session.get(Category, category_id, with_for_update=True)
    if category is None:
        raise CategoryNotFound()
    unit.session.delete(category)
    before = {"slug": category.slug}
    audit(unit, "category.deleted", "category", category_id, before=before, origin=caller.origin)


def _render(row: Category, number: int) -> CategoryOut:
    return CategoryOut(
        id=row.id, name=row.name, slug=row.slug, description=row.description, plugin_count=number
    )
