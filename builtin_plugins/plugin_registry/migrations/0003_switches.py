"""Also record enabled plugins, as some are off by default."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# Before this revision, every plugin was on by default: instances with news keep it.
_KEEP = """
INSERT INTO plugin_registry_switch (plugin, enabled, changed_at)
SELECT health.plugin, true, health.changed_at FROM plugin_registry_health AS health
WHERE health.plugin = 'news'
AND NOT EXISTS (SELECT 1 FROM plugin_registry_switch AS known WHERE known.plugin = health.plugin)
"""


def upgrade() -> None:
    op.rename_table("plugin_registry_switched_off", "plugin_registry_switch")
    op.add_column(
        "plugin_registry_switch",
        sa.Column("enabled", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.execute(_KEEP)


def downgrade() -> None:
    op.execute("DELETE FROM plugin_registry_switch WHERE enabled")
    op.drop_column("plugin_registry_switch", "enabled")
    op.rename_table("plugin_registry_switch", "plugin_registry_switched_off")
