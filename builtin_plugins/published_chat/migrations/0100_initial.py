"""Create the first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, json_type

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_endpoint()
    _create_session()
    _create_turn()
    _create_day()


def _create_endpoint() -> None:
    table = "published_chat_endpoint"
    op.create_table(
        table,
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("slug", sa.String(length=120), nullable=False),
        sa.Column("slug_key", sa.String(length=120), nullable=False),
        sa.Column("pipeline_id", sa.String(length=255), nullable=False),
        sa.Column("allowed_origins", sa.String(length=2000), nullable=True),
        sa.Column("rag_config", json_type(), nullable=False),
        sa.Column("rate_limit_per_minute", sa.Integer(), nullable=False),
        sa.Column("daily_questions", sa.Integer(), nullable=False),
        sa.Column("daily_tokens", sa.Integer(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("visibility", sa.String(length=16), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=True),
        sa.Column("organization_id", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
        sa.UniqueConstraint("slug_key", name=op.f(f"uq_{table}_slug_key")),
    )
    for column in ("created_at", "owner_id", "team_id", "organization_id"):
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column])


def _create_session() -> None:
    table = "published_chat_session"
    op.create_table(
        table,
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("endpoint_id", sa.String(length=36), nullable=False),
        sa.Column("origin", sa.String(length=255), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("last_activity", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["endpoint_id"],
            ["published_chat_endpoint.id"],
            name=op.f(f"fk_{table}_endpoint_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
    )
    op.create_index(f"ix_{table}_endpoint_id_last_activity", table, ["endpoint_id", "last_activity"])


def _create_turn() -> None:
    table = "published_chat_turn"
    op.create_table(
        table,
        sa.Column("turn_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("session_id", sa.String(length=36), nullable=False),
        sa.Column("conversation_id", sa.String(length=255), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("refused", sa.Boolean(), nullable=False),
        sa.Column("rating", sa.String(length=4), nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("rated_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["published_chat_session.id"],
            name=op.f(f"fk_{table}_session_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("turn_id", name=op.f(f"pk_{table}")),
    )
    for column in ("session_id", "rated_at"):
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column])


def _create_day() -> None:
    table = "published_chat_day"
    counts = ("questions", "answered", "refused", "tokens", "up", "down")
    op.create_table(
        table,
        sa.Column("endpoint_id", sa.String(length=36), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in counts),
        sa.ForeignKeyConstraint(
            ["endpoint_id"],
            ["published_chat_endpoint.id"],
            name=op.f(f"fk_{table}_endpoint_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("endpoint_id", "day", name=op.f(f"pk_{table}")),
    )
