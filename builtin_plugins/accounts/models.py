"""Tables of accounts: addresses that somebody has proven. Accounts themselves are the kernel's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, plugin_base, utc_now

Base: Any = plugin_base("accounts")


class VerifiedAddress(Base):
    """The e-mail address of an account that somebody has proven to be its own.

    It counts as long as the account has this address. `proof` is ``provider``, ``mail`` or ``operator``.
    """

    __tablename__ = "accounts_verified_address"

    account_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    email_key: Mapped[str] = mapped_column(String(320), index=True)
    proof: Mapped[str] = mapped_column(String(16))
    verified_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
