"""The table of owners' secrets."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from kernel.auth.models import Account
from kernel.db.base import UtcDateTime, utc_now
from kernel.db.tables import Base, BigId


class OwnerSecret(Base):
    """An encrypted secret of an account, an organization or a plugin; deleted with its account."""

    __tablename__ = "kernel_owner_secret"
    __table_args__ = (
        UniqueConstraint("owner_kind", "owner_id", "name", name="uq_kernel_owner_secret_owner_name"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    owner_kind: Mapped[str] = mapped_column(String(16))
    owner_id: Mapped[str] = mapped_column(String(255))
    account_id: Mapped[int | None] = mapped_column(ForeignKey(Account.id, ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(255))
    key_id: Mapped[str] = mapped_column(String(16), index=True)
    nonce: Mapped[bytes] = mapped_column(LargeBinary)
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
