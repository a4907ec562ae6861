"""Sources, their items and runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, json_type

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None

_SOURCE = "sources_source"
_ITEM = "sources_item"
_RUN = "sources_run"
_MARKED = sa.text("fingerprint IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        _SOURCE,
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("knowledge_base_id", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(50), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("settings", json_type(), nullable=False),
        sa.Column("filters", json_type(), nullable=False),
        sa.Column("schedule", sa.String(64), nullable=True),
        sa.Column("account_id", sa.Integer(), nullable=True),
        sa.Column("push_digest", sa.String(64), nullable=True),
        sa.Column("cursor", sa.Text(), nullable=True),
        sa.Column("next_at", UtcDateTime(), nullable=True),
        sa.Column("pushed_at", UtcDateTime(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("leaving", sa.String(8), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{_SOURCE}")),
        sa.UniqueConstraint("push_digest", name=op.f(f"uq_{_SOURCE}_push_digest")),
    )
    for column in ("knowledge_base_id", "next_at"):
        op.create_index(op.f(f"ix_{_SOURCE}_{column}"), _SOURCE, [column])
    op.create_table(
        _ITEM,
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("source_id", sa.String(36), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("path", sa.String(1000), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("stored_name", sa.String(255), nullable=True),
        sa.Column("etag", sa.String(255), nullable=True),
        sa.Column("listed_etag", sa.String(255), nullable=False),
        sa.Column("fingerprint", sa.String(255), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("media_type", sa.String(255), nullable=True),
        sa.Column("modified_at", UtcDateTime(), nullable=True),
        sa.Column("link", sa.Text(), nullable=True),
        sa.Column("details", json_type(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(500), nullable=True),
        sa.Column("document_id", sa.String(36), nullable=True),
        sa.Column("listed_by", sa.String(36), nullable=True),
        sa.Column("is_gone", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], [f"{_SOURCE}.id"], name=op.f(f"fk_{_ITEM}_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{_ITEM}")),
    )
    op.create_index(f"uq_{_ITEM}_digest", _ITEM, ["source_id", "digest"], unique=True)
    op.create_index(f"ix_{_ITEM}_state", _ITEM, ["source_id", "state", "id"])
    op.create_index(op.f(f"ix_{_ITEM}_document_id"), _ITEM, ["document_id"])
    op.create_index(
        f"ix_{_ITEM}_fingerprint",
        _ITEM,
        ["source_id", "fingerprint"],
        sqlite_where=_MARKED,
        postgresql_where=_MARKED,
    )
    counted = ("confirmed", "found", "added", "changed", "moved", "gone", "skipped", "failed")
    op.create_table(
        _RUN,
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("source_id", sa.String(36), nullable=False),
        sa.Column("trigger", sa.String(16), nullable=False),
        sa.Column("is_dry", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("job_id", sa.String(64), nullable=True),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.Column("resume_at", UtcDateTime(), nullable=True),
        sa.Column("listing", sa.String(36), nullable=True),
        sa.Column("cursor", sa.Text(), nullable=True),
        sa.Column("is_partial", sa.Boolean(), server_default=sa.false(), nullable=False),
        *(sa.Column(name, sa.Integer(), server_default="0", nullable=False) for name in counted),
        sa.Column("fetched_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("plan", json_type(), nullable=True),
        sa.ForeignKeyConstraint(
            ["source_id"], [f"{_SOURCE}.id"], name=op.f(f"fk_{_RUN}_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{_RUN}")),
    )
    op.create_index(f"ix_{_RUN}_source_id_started_at", _RUN, ["source_id", "started_at"])
    op.create_index(op.f(f"ix_{_RUN}_state"), _RUN, ["state"])
