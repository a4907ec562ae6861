"""The groups that the provider names for accounts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None

_STATEMENT = "oidc_group_statement"
_MEMBER = "oidc_group_member"


def upgrade() -> None:
    op.create_table(
        _STATEMENT,
        sa.Column("account_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("made_at", UtcDateTime(), nullable=False),
        sa.Column("problem", sa.String(16), nullable=True),
        sa.PrimaryKeyConstraint("account_id", name=op.f(f"pk_{_STATEMENT}")),
    )
    op.create_index(op.f(f"ix_{_STATEMENT}_made_at"), _STATEMENT, ["made_at"])
    op.create_table(
        _MEMBER,
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            [f"{_STATEMENT}.account_id"],
            name=op.f(f"fk_{_MEMBER}_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("account_id", "name", name=op.f(f"pk_{_MEMBER}")),
    )
    op.create_index(op.f(f"ix_{_MEMBER}_name"), _MEMBER, ["name"])
