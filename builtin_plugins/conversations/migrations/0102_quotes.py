"""Where in a cited passage the quoted sentences are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import json_type

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("conversations_citation", sa.Column("quotes", json_type(), nullable=True))
