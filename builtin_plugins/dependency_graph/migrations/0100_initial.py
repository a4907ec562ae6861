"""Create the first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "dependency_graph_edge",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("plugin_id", sa.String(length=100), nullable=False),
        sa.Column("depends_on", sa.String(length=100), nullable=False),
        sa.Column("dependency_type", sa.String(length=16), nullable=False),
        sa.Column("depends_on_type", sa.String(length=16), nullable=False),
        sa.Column("version_constraint", sa.String(length=200), nullable=True),
        sa.Column("plugin_name", sa.String(length=200), nullable=True),
        sa.Column("depends_on_name", sa.String(length=200), nullable=True),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dependency_graph_edge")),
        sa.UniqueConstraint(
            "plugin_id",
            "depends_on_type",
            "depends_on",
            name=op.f("uq_dependency_graph_edge_plugin_id_depends_on_type_depends_on"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_dependency_graph_edge_depends_on"), "dependency_graph_edge", ["depends_on"])
