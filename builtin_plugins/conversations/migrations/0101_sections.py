"""The headings above a cited passage, which its citation names."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("conversations_citation", sa.Column("section", sa.String(length=500), nullable=True))
