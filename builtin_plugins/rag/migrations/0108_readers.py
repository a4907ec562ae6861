"""Who may read a document: audiences, their readers, and the accounts that these stand for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0108"
down_revision = "0107"
branch_labels = None
depends_on = None

_DOCUMENT = "rag_document"
_AUDIENCE = "rag_audience"
_READER = "rag_audience_reader"
_MEMBER = "rag_reader_member"


def upgrade() -> None:
    op.create_table(
        _AUDIENCE,
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("holder", sa.String(100), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("everybody", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{_AUDIENCE}")),
    )
    op.create_index(f"uq_{_AUDIENCE}_holder_digest", _AUDIENCE, ["holder", "digest"], unique=True)
    everybody = sa.text("everybody")
    op.create_index(
        *(f"ix_{_AUDIENCE}_everybody", _AUDIENCE, ["id"]),
        sqlite_where=everybody,
        postgresql_where=everybody,
    )
    op.create_table(
        _READER,
        sa.Column("reader", sa.String(500), nullable=False),
        sa.Column("audience_id", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("reader", "audience_id", name=op.f(f"pk_{_READER}")),
    )
    op.create_index(f"ix_{_READER}_audience_id", _READER, ["audience_id"])
    op.create_table(
        _MEMBER,
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("reader", sa.String(500), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "reader", name=op.f(f"pk_{_MEMBER}")),
    )
    op.create_index(f"ix_{_MEMBER}_reader", _MEMBER, ["reader"])
    op.create_table(
        "rag_member_version",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rag_member_version")),
    )
    op.add_column(_DOCUMENT, sa.Column("audience_id", sa.String(36), nullable=True))
    readable = ["knowledge_base_id", "audience_id", "id"]
    op.create_index("ix_rag_document_readable", _DOCUMENT, readable)
    guarded = sa.text("audience_id IS NOT NULL")
    op.create_index(
        *("ix_rag_document_audience_id", _DOCUMENT, ["audience_id"]),
        sqlite_where=guarded,
        postgresql_where=guarded,
    )
