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
    found = [_render(row, number) for row, number in session.execute(query)]
    return Categories(categories=found, count=len(found))


def create(unit: Unit, caller: Caller, wanted: CategoryCreate) -> CategoryOut:
    """A new category. Raises Conflict for a slug that is taken."""
    unit.lock("marketplace.categories")
    if unit.session.scalar(select(Category.id).where(Category.slug == wanted.slug)) is not None:
        raise Conflict(f"A category '{wanted.slug}' already exists; choose another slug")
    made = Category(id=str(uuid.uuid4()), **wanted.model_dump())
    unit.session.add(made)
    after = {"slug": made.slug}
    audit(unit, "category.created", "category", made.id, after=after, origin=caller.origin)
    return _render(made, 0)


def remove(unit: Unit, caller: Caller, category_id: str) -> None:
    """Delete a category; its listings stay, in none. Raises CategoryNotFound."""
    found = unit.session.get(Category, category_id, with_for_update=True)
    if found is None:
        raise CategoryNotFound()
    unit.session.delete(found)
    before = {"slug": found.slug}
    audit(unit, "category.deleted", "category", category_id, before=before, origin=caller.origin)


def _render(row: Category, number: int) -> CategoryOut:
    return CategoryOut(
        id=row.id, name=row.name, slug=row.slug, description=row.description, plugin_count=number
    )
