"""Whether a model proposes values of a field."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0113"
down_revision = "0112"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "rag_metadata_field",
        sa.Column("propose", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
