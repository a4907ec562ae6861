"""Record which invites were sent by e-mail, for requests that are repeated."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Not in a batch, which on SQLite would recreate the table without AUTOINCREMENT.
    op.add_column(
        "tenancy_invite", sa.Column("email_sent", sa.Boolean(), nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    with op.batch_alter_table("tenancy_invite", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_column("email_sent")
