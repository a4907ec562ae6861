"""Groups of the sign-in as counterparts of groups at sources."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0103"
down_revision = "0102"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sources_source", sa.Column("sign_in_groups", sa.String(8), nullable=True))
    op.add_column(
        "sources_principal",
        sa.Column("has_sign_in_group", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    with op.batch_alter_table("sources_counterpart") as table:
        table.alter_column("target", existing_type=sa.String(8), type_=sa.String(16), existing_nullable=False)
        table.add_column(sa.Column("target_name", sa.String(255), nullable=True))
