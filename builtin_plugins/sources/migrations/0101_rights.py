"""Permissions at sources: who may read an item there, and who that is here."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, json_type

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None

_SOURCE = "sources_source"
_ITEM = "sources_item"
_PRINCIPAL = "sources_principal"
_COUNTERPART = "sources_counterpart"


def upgrade() -> None:
    for column in (
        sa.Column("is_guarded", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("rights_seconds", sa.Integer(), nullable=True),
        sa.Column("rights_at", UtcDateTime(), nullable=True),
        sa.Column("rights_due_at", UtcDateTime(), nullable=True),
        sa.Column("rights_mark", sa.Text(), nullable=True),
        sa.Column("rights_pass", sa.String(36), nullable=True),
        sa.Column("rights_problem", sa.Text(), nullable=True),
        sa.Column("is_closed", sa.Boolean(), server_default=sa.false(), nullable=False),
    ):
        op.add_column(_SOURCE, column)
    op.create_index(op.f(f"ix_{_SOURCE}_rights_due_at"), _SOURCE, ["rights_due_at"])
    op.add_column(_ITEM, sa.Column("readers", sa.Text(), nullable=True))
    op.add_column(_ITEM, sa.Column("granted_by", sa.String(36), nullable=True))
    op.create_table(
        _PRINCIPAL,
        *_named(_PRINCIPAL),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("email_key", sa.String(320), nullable=True),
        sa.Column("issuer", sa.String(512), nullable=True),
        sa.Column("subject", sa.String(512), nullable=True),
        sa.Column("people", json_type(), nullable=False),
        sa.Column("groups", json_type(), nullable=False),
        sa.Column("accounts", sa.Integer(), server_default="0", nullable=False),
    )
    op.create_index(f"uq_{_PRINCIPAL}_digest", _PRINCIPAL, ["source_id", "kind", "digest"], unique=True)
    op.create_table(
        _COUNTERPART,
        *_named(_COUNTERPART),
        sa.Column("target", sa.String(8), nullable=False),
        sa.Column("target_id", sa.Integer(), nullable=True),
    )
    op.create_index(f"ix_{_COUNTERPART}_digest", _COUNTERPART, ["source_id", "kind", "digest"])


def _named(table: str) -> tuple[sa.schema.SchemaItem, ...]:
    return (
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("source_id", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], [f"{_SOURCE}.id"], name=op.f(f"fk_{table}_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
    )
