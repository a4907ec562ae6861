"""Index prefixes of names; on PostgreSQL, search words without scanning a pending list."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_WORDS = "ix_marketplace_search_document"


def upgrade() -> None:
    op.create_index(
        "ix_marketplace_listing_status_name_key",
        "marketplace_listing",
        ["status", "name_key"],
        postgresql_ops={"name_key": "text_pattern_ops"},
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER INDEX {_WORDS} SET (fastupdate = off)")
        op.execute(f"SELECT gin_clean_pending_list('{_WORDS}'::regclass)")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER INDEX {_WORDS} SET (fastupdate = on)")
    op.drop_index("ix_marketplace_listing_status_name_key", "marketplace_listing")
