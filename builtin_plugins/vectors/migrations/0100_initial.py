"""The tables of 0.1.0."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import json_type

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "vectors_collection",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("engine", sa.String(length=255), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("floor", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vectors_collection")),
        sa.UniqueConstraint("name", name=op.f("uq_vectors_collection_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "vectors_point",
        sa.Column(
            "label", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("collection_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("group_key", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("payload", json_type(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["vectors_collection.id"],
            name=op.f("fk_vectors_point_collection_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("label", name=op.f("pk_vectors_point")),
        sa.UniqueConstraint("collection_id", "id", name="uq_vectors_point_collection_id_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_vectors_point_collection_id_group_key_position",
        "vectors_point",
        ["collection_id", "group_key", "position"],
    )
    op.create_index(
        "ix_vectors_point_collection_id_version_label", "vectors_point", ["collection_id", "version", "label"]
    )
    op.create_table(
        "vectors_tombstone",
        sa.Column("label", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("collection_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["vectors_collection.id"],
            name=op.f("fk_vectors_tombstone_collection_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("label", name=op.f("pk_vectors_tombstone")),
    )
    op.create_index(
        "ix_vectors_tombstone_collection_id_version", "vectors_tombstone", ["collection_id", "version"]
    )
