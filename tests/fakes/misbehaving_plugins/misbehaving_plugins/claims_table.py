"""Claims a table that belongs to the kernel."""

from pathlib import Path

from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from kernel.sdk import Plugin, Tables, hookimpl


class Base(DeclarativeBase):
    pass


class Account(Base):
    __tablename__ = "kernel_account"

    id: Mapped[int] = mapped_column(primary_key=True)


class Claims(Plugin):
    name = "claims_table"

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent)
