"""Plugins with tables and numbered migrations, written by the test itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from kernel.sdk import Plugin, Tables, hookimpl, plugin_base

_REVISION = '''"""A revision of a test."""

import sqlalchemy as sa
from alembic import op

revision = "{number:04d}"
down_revision = {previous}
branch_labels = None
depends_on = None


def upgrade() -> None:
{body}


def downgrade() -> None:
    pass
'''


def write_migrations(folder: Path, bodies: Sequence[str]) -> Path:
    """One numbered revision for each body of an `upgrade` function."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, body in enumerate(bodies, 1):
        previous = f'"{number - 1:04d}"' if number > 1 else None
        text = _REVISION.format(number=number, previous=previous, body=indent(dedent(body).strip(), "    "))
        (folder / f"{number:04d}_step.py").write_text(text)
    return folder


def plugin_with_tables(name: str, base: type[DeclarativeBase], migrations: Path, **attributes: Any) -> Plugin:
    """A plugin that owns the tables of `base`."""

    def register_tables(self: Plugin) -> Tables:
        return Tables(base, migrations)

    members = {"name": name, "register_tables": hookimpl(register_tables), **attributes}
    made: Plugin = type(name.title(), (Plugin,), members)()
    return made


def shelf_base(*, notes: bool = False) -> type[DeclarativeBase]:
    """Shelves and the books on them; a second version has notes on shelves."""
    base = plugin_base("shelf")

    class Shelf(base):  # type: ignore[valid-type,misc]
        __tablename__ = "shelf_shelf"

        id: Mapped[int] = mapped_column(primary_key=True)
        name: Mapped[str] = mapped_column(String(50 if not notes else 80))
        if notes:
            note: Mapped[str] = mapped_column(String(200), server_default="")

    class Book(base):  # type: ignore[valid-type,misc]
        __tablename__ = "shelf_book"

        id: Mapped[int] = mapped_column(primary_key=True)
        shelf_id: Mapped[int] = mapped_column(ForeignKey(Shelf.id, ondelete="CASCADE"))

    return base


SHELF_FIRST = """
op.create_table(
    "shelf_shelf",
    sa.Column("id", sa.Integer(), nullable=False),
    sa.Column("name", sa.String(length=50), nullable=False),
    sa.PrimaryKeyConstraint("id", name=op.f("pk_shelf_shelf")),
)
op.create_table(
    "shelf_book",
    sa.Column("id", sa.Integer(), nullable=False),
    sa.Column("shelf_id", sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(
        ["shelf_id"], ["shelf_shelf.id"], name=op.f("fk_shelf_book_shelf_id"), ondelete="CASCADE"
    ),
    sa.PrimaryKeyConstraint("id", name=op.f("pk_shelf_book")),
)
"""
SHELF_NOTES = """
with op.batch_alter_table("shelf_shelf") as batch:
    batch.alter_column("name", type_=sa.String(length=80), existing_type=sa.String(length=50), nullable=False)
    batch.add_column(sa.Column("note", sa.String(length=200), nullable=False, server_default=""))
"""
BROKEN = """
op.execute("UPDATE shelf_shelf SET name = 'half-way'")
op.execute("SELECT * FROM shelf_nowhere")
"""
