"""No table: the store makes it where PostgreSQL has the extension. The revision tells whose it is."""

from __future__ import annotations

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing to do; see `builtin_plugins.pgvector.setup`."""
