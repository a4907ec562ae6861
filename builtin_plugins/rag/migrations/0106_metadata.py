"""Fields of documents, their values, and the rules of knowledge bases that give some."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, json_type

revision = "0106"
down_revision = "0105"
branch_labels = None
depends_on = None

_VALUES = "rag_metadata_value"
_SHADOWED = "rag_metadata_shadowed"
_RULES = "rag_metadata_rule"


def upgrade() -> None:
    op.create_table(
        "rag_metadata_field",
        sa.Column("knowledge_base_id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("many", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("description", sa.String(255), server_default="", nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("knowledge_base_id", "name", name=op.f("pk_rag_metadata_field")),
    )
    op.create_table(
        _VALUES,
        sa.Column("document_id", sa.String(36), nullable=False),
        sa.Column("field", sa.String(64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("knowledge_base_id", sa.String(36), nullable=False),
        sa.Column("text", sa.String(512), nullable=True),
        sa.Column("folded", sa.String(512), nullable=True),
        sa.Column("number", sa.Float(53), nullable=True),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("document_id", "field", "position", name=op.f(f"pk_{_VALUES}")),
    )
    for column in ("folded", "number"):
        columns = ["knowledge_base_id", "field", column, "document_id"]
        op.create_index(f"ix_{_VALUES}_{column}", _VALUES, columns)
    op.create_table(
        _SHADOWED,
        sa.Column("document_id", sa.String(36), nullable=False),
        sa.Column("field", sa.String(64), nullable=False),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("knowledge_base_id", sa.String(36), nullable=False),
        sa.Column("text", sa.String(512), nullable=True),
        sa.Column("folded", sa.String(512), nullable=True),
        sa.Column("number", sa.Float(53), nullable=True),
        sa.PrimaryKeyConstraint(
            *("document_id", "field", "origin", "position"), name=op.f(f"pk_{_SHADOWED}")
        ),
    )
    op.create_index(f"ix_{_SHADOWED}_field", _SHADOWED, ["knowledge_base_id", "field"])
    op.create_table(
        _RULES,
        sa.Column("knowledge_base_id", sa.String(36), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("pattern", sa.String(500), nullable=False),
        sa.Column("field", sa.String(64), nullable=False),
        sa.Column("value", json_type(), nullable=True),
        sa.Column("part", sa.String(64), nullable=True),
        sa.PrimaryKeyConstraint("knowledge_base_id", "position", name=op.f(f"pk_{_RULES}")),
    )
