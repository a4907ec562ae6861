"""List tools from an index, in place of one that the unique constraint already covers."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_COLUMNS = ["plugin_id", "tool_name", "active", "required_tier"]


def upgrade() -> None:
    op.create_index("ix_marketplace_tool_listed", "marketplace_tool", _COLUMNS)
    op.drop_index("ix_marketplace_tool_plugin_id", "marketplace_tool")


def downgrade() -> None:
    op.create_index("ix_marketplace_tool_plugin_id", "marketplace_tool", ["plugin_id"])
    op.drop_index("ix_marketplace_tool_listed", "marketplace_tool")
